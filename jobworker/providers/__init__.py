"""The outside world of long jobs: programs, and what they ask of us.

process runs a program under its guard and reads its output (lines); terraform and
packer know one program each (terraform_lines, packer_lines: what it says); state is
Terraform's backend, workspace the folder it works in, left what a broken job left of
both; provision, follow and images write what came of it on the rows. Job types
(jobworker/jobs) only say what they want.

What is true after a `kill -9` of the job worker. Its end of the guard's pipe closes:
the guard interrupts the program (SIGINT to its group), keeps its output flowing so that
it can say so, and kills what is left ten seconds later. No process stays. Terraform
finds its backend gone, so it writes what it has made to errored.tfstate in its
workspace, and its lock stays in our table: no other job touches the deployment until
somebody adopts the broken one (follow), which makes that file the state and takes the
lock away; once the broken one is archived, the next job does both (left). Packer removes
what it had begun to make. Killed by force (SIGKILL, or the whole machine), Terraform
writes nothing: the state is then as it was stored last, and what was being made at that
moment has to be looked for at the provider.

Where it is kept. Workspaces: `JOB_ROOT/workspaces`, removed after success, else pruned
after 7 days (30 with an errored.tfstate) by the next job or sweep on that host. Images:
`JOB_ROOT/images`. States: our database, encrypted, the last 20 of a deployment.
"""
