"""health: is the container well? For HEALTHCHECK: `python -m project.health`, exit 0 or 1.

Asks the process that has the mode's port whether it was ready once. Modes without a
port beat in the database instead, and `workerhealth` reads that. Neither is unwell
because the database went away: a restart would not bring it back. Loads no Django for
a mode with a port, which would cost more than the question.
"""

import subprocess
import sys
from http.client import HTTPConnection, HTTPException

from project import settings
from project.modes import MANAGE, MODES

PATIENCE = 4  # seconds
UNAVAILABLE = 69  # exit code of workerhealth: the database does not answer
ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - who listens everywhere, listens here


def main() -> None:
    """Look, print, exit."""
    mode = MODES[settings.FALCON_MODE]
    if mode.serves:
        problem = ask(ANY.get(settings.BIND, settings.BIND), settings.PORT)
        print(problem or "ok")  # noqa: T201
        sys.exit(bool(problem))
    kinds = [f"--kind={process.name}" for process in mode.processes]
    command = [*MANAGE, "workerhealth", *kinds]
    code = subprocess.run(command, cwd=settings.BASE_DIR, check=False).returncode  # noqa: S603 - ours
    sys.exit(0 if code == UNAVAILABLE else code)


def ask(host: str, port: int) -> str:
    """What /startupz says against it; "" = all is well."""
    web = HTTPConnection(host, port, timeout=PATIENCE)
    try:
        web.request("GET", "/startupz")
        answer = web.getresponse()
        text = answer.read(1000).decode(errors="replace").strip()
    except (OSError, HTTPException) as problem:
        return f"nothing answers on {host}, port {port}: {problem}"
    finally:
        web.close()
    return "" if answer.status == 200 else text


if __name__ == "__main__":
    main()
