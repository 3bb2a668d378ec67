"""jobworker: the long ones. Jobs of minutes to hours, as many at once as the database can serve.

The life of a job: pending, running, then succeeded, failed or cancelled. Its row stays
until archival; its attempt is an `audit.Run` of the same claim id, its output the
transcript of that run.

Tiers. Jobs are not alike: a build works, an export waits for somebody else's computer.
Each type has a tier (dispatch.py), each tier a cap, and the total a cap of its own, so
that a two-hour export never keeps the only slot from a two-second sweep. Caps are live
settings; what is used of them is clamped to what the connection pool serves, and the
status card says so.

Who decides. Claiming is one conditional UPDATE whose row count is the lock; it also
matches the version of the caps, so nothing is ever claimed under caps that were
changed meanwhile. One job of an exclusive group at a time is the database's rule.
Tenants take turns in each tier.

Failures. A job that its worker abandoned is failed, never requeued: what it began
outside goes on, and a second start would do it twice. The text names it, and Adopt
follows it where the type can. Nothing looks alive without a live claimant: whoever
lives fails what a stopped process held (reconcile.py).

Reading order: dispatch > submit > claim > run > the audit files; supervisor is the
loop, keeper stores output, drain ends, report tells.
"""
