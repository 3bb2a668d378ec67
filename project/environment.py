"""The registry of environment variables: type, unit, bounds, default, who needs it.

Read once, by settings.py. `showconfig`, the checks and docs/settings.md are made
from this table, so a variable cannot exist without being explained. Each can also
be given as NAME_FILE, the path of a file that holds the value.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from project.kinds import KINDS

EVERYWHERE = ("all", "api", "web", "worker", "jobworker")
SERVING = ("all", "api", "web")  # modes with a port
MIGRATING = ("all", "api")
RUNNING_JOBS = ("all", "jobworker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One thing that an installation may say before its database is known."""

    name: str
    kind: str  # a key of KINDS
    purpose: str  # one sentence
    default: str = ""  # "" = unset
    production: str | None = None  # default in production, where it differs
    unit: str = ""
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    modes: tuple[str, ...] = EVERYWHERE  # FALCON_MODE in which it is looked at
    required: bool = False  # in production
    secret: bool = False
    unset: str = ""  # what happens without a value, where the default does not say it

    def default_in(self, environment: str) -> str:
        """The default in DJANGO_ENV."""
        if environment == "production" and self.production is not None:
            return self.production
        return self.default

    def parse(self, text: str) -> object:
        """The value that `text` stands for. ValueError: a sentence that says what would be right."""
        if any(ord(character) < 32 or ord(character) == 127 for character in text):
            raise ValueError("must be one line, without control characters")
        value = KINDS[self.kind](text)
        if self.choices and value not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}")
        if isinstance(value, int) and not isinstance(value, bool):
            self._check_bounds(value)
        return value

    def _check_bounds(self, value: int) -> None:
        below = self.low is not None and value < self.low
        if below or (self.high is not None and value > self.high):
            raise ValueError(
                f"must be a whole number from {self.low} to {self.high}{self.of_unit}"
            )

    @property
    def of_unit(self) -> str:
        """' (seconds)', or nothing."""
        return f" ({self.unit})" if self.unit else ""


SECTIONS: dict[str, tuple[Variable, ...]] = {
    "Installation": (
        Variable(
            name="DJANGO_ENV",
            kind="text",
            choices=("development", "production", "test"),
            default="development",
            purpose="What this installation is; production demands secrets, TLS and a database address.",
        ),
        Variable(
            name="FALCON_MODE",
            kind="text",
            choices=EVERYWHERE,
            default="all",
            purpose="Which processes `start` runs.",
        ),
        Variable(
            name="SERVER_TIME_ZONE",
            kind="zone",
            default="UTC",
            purpose="The time zone of the timetable's `daily`, `monthly` and cron rows, and of the pages.",
        ),
        Variable(
            name="LOG_FORMAT",
            kind="text",
            choices=("text", "json"),
            default="text",
            purpose="How log lines are written on standard error.",
        ),
        Variable(
            name="LOG_LEVEL",
            kind="text",
            choices=("DEBUG", "INFO", "WARNING", "ERROR"),
            default="INFO",
            purpose="The least severe log line that is written.",
        ),
    ),
    "Secrets": (
        Variable(
            name="SECRET_KEY",
            kind="text",
            required=True,
            secret=True,
            purpose="Signs sessions and one-time links.",
            unset="Outside production one is made and kept in millrace.private beside the database.",
        ),
        Variable(
            name="SECRET_KEY_FALLBACKS",
            kind="list",
            secret=True,
            purpose="Former SECRET_KEYs, separated by commas: still accepted, no longer used.",
        ),
        Variable(
            name="FIELD_KEY",
            kind="fernet",
            secret=True,
            purpose="Fernet keys, separated by commas, that encrypt secrets in the database; the first encrypts.",
            unset="Keys are derived from SECRET_KEY and SECRET_KEY_FALLBACKS.",
        ),
    ),
    "Web": (
        Variable(
            name="BASE_URL",
            kind="url",
            modes=EVERYWHERE,
            purpose="Where people reach the admin: in links of e-mails, and the origin that forms are accepted from.",
            unset="http://localhost and PORT.",
        ),
        Variable(
            name="PORT",
            kind="integer",
            low=1,
            high=65535,
            default="8000",
            modes=SERVING,
            purpose="The port that the web process listens on.",
        ),
        Variable(
            name="BIND",
            kind="text",
            default="127.0.0.1",
            production="0.0.0.0",  # noqa: S104 - a container's own network
            modes=SERVING,
            purpose="The address that the web process listens on.",
        ),
        Variable(
            name="ALLOWED_HOSTS",
            kind="hosts",
            modes=SERVING,
            purpose="Host names that requests may ask for, separated by commas. Probes answer to any.",
            unset="The host of BASE_URL, localhost, 127.0.0.1 and [::1].",
        ),
        Variable(
            name="HTTPS",
            kind="switch",
            default="off",
            production="on",
            modes=SERVING,
            purpose="Redirect to https, send HSTS and mark cookies secure. Off only for plain-HTTP labs.",
        ),
        Variable(
            name="TRUST_PROXY",
            kind="switch",
            default="off",
            modes=SERVING,
            purpose="Believe X-Forwarded-Proto and X-Forwarded-For. On only behind a proxy that always sets them.",
        ),
        Variable(
            name="PROXY_COUNT",
            kind="integer",
            low=1,
            high=10,
            default="1",
            modes=SERVING,
            purpose="With TRUST_PROXY: how many proxies add to X-Forwarded-For. Failed sign-ins are counted by the address before them.",
        ),
        Variable(
            name="WEB_PROCESSES",
            kind="integer",
            low=1,
            high=64,
            default="1",
            production="2",
            modes=SERVING,
            purpose="Processes that serve web requests.",
        ),
        Variable(
            name="WEB_THREADS",
            kind="integer",
            low=1,
            high=64,
            default="8",
            modes=SERVING,
            purpose="Threads in each of them.",
        ),
        Variable(
            name="ACCESS_LOG",
            kind="switch",
            default="off",
            production="on",
            modes=SERVING,
            purpose="Log a line for each web request but probes and scrapes.",
        ),
        Variable(
            name="METRICS_TOKEN",
            kind="text",
            secret=True,
            modes=MIGRATING,
            purpose="The bearer token without which /metrics says nothing.",
            unset="In production /metrics answers 403, elsewhere it is open.",
        ),
    ),
    "Database": (
        Variable(
            name="DATABASE_URL",
            kind="database",
            required=True,
            secret=True,
            purpose="postgresql://user:password@host:5432/name, or sqlite:////path/of/file.",
            unset="Outside production: millrace.sqlite3 in the project's folder.",
        ),
        Variable(
            name="DATABASE_DIRECT_URL",
            kind="database",
            secret=True,
            modes=MIGRATING,
            purpose="The same database without a pooler between, for migrations and their lock.",
            unset="DATABASE_URL.",
        ),
        Variable(
            name="DATABASE_WAIT_S",
            kind="integer",
            unit="seconds",
            low=0,
            high=3600,
            default="60",
            purpose="How long `start` waits for a database that does not answer yet.",
        ),
        Variable(
            name="DATABASE_LISTEN",
            kind="switch",
            default="on",
            purpose="Wake processes by LISTEN/NOTIFY. Off behind a pooler in transaction mode; polling stays.",
        ),
        Variable(
            name="DB_POOL_SIZE",
            kind="integer",
            unit="connections",
            low=1,
            high=1000,
            purpose="Connections that each process keeps. With DB_MAX_OVERFLOW it is the pool: a worker runs at most pool - 4 items at once, a job worker (pool - 4) / 2 jobs that are awake.",
            unset="What the process needs: web 5, scheduler 2, worker WORKER_CONCURRENCY + 4, job worker 5.",
        ),
        Variable(
            name="DB_MAX_OVERFLOW",
            kind="integer",
            unit="connections",
            low=0,
            high=1000,
            purpose="Connections beyond DB_POOL_SIZE in a rush.",
            unset="What the process needs: web 5, scheduler 2, worker 0, job worker 5.",
        ),
    ),
    "Engine": (
        Variable(
            name="FALCON_SERVER_KEEP_ALIVE_SECONDS",
            kind="integer",
            unit="seconds",
            low=2,
            high=600,
            default="25",
            purpose="A server that did not report for this long is stopped; workers and job workers are given 2.4 times as long.",
        ),
        Variable(
            name="WORKER_DRAIN_TIMEOUT_S",
            kind="integer",
            unit="seconds",
            low=0,
            high=3600,
            default="20",
            purpose="How long a worker or job worker that is told to stop may finish what it has begun. Programs of jobs are interrupted 8 s before its end. Raise the grace period of your platform first.",
        ),
        Variable(
            name="MILLRACE_WAKE_SOCKET",
            kind="folder",
            purpose="Folder of the sockets by which processes of one `start` wake each other; `start` sets it.",
        ),
    ),
    "Outside world": (
        Variable(
            name="EMAIL_URL",
            kind="email",
            secret=True,
            purpose="smtp://, smtp+tls:// or smtp+ssl://user:password@host:port, where e-mails are handed over.",
            unset="Outside production e-mails become files in var/mail; in production they fail and say so.",
        ),
        Variable(
            name="EMAIL_FROM",
            kind="sender",
            default="Millrace <millrace@localhost>",
            purpose="The sender of e-mails.",
        ),
        Variable(
            name="HEARTBEAT_URL",
            kind="url",
            secret=True,
            purpose="Where the instance reports that it is alive. A path of a ping address is a secret.",
            unset="Nothing is reported.",
        ),
        Variable(
            name="HEARTBEAT_STYLE",
            kind="text",
            choices=("json", "ping"),
            default="json",
            purpose="json: one POST of figures; ping: the Healthchecks ping protocol.",
        ),
        Variable(
            name="HEARTBEAT_TOKEN",
            kind="text",
            secret=True,
            purpose="Bearer token of the report.",
        ),
        Variable(
            name="JOB_ROOT",
            kind="folder",
            modes=RUNNING_JOBS,
            purpose="Folder of the job worker's workspaces and of the images that it built.",
            unset="var/jobs in the project's folder.",
        ),
        Variable(
            name="JOB_MODULES",
            kind="folder",
            purpose="Folder of your own modules, <kind>/<name> (cluster, database, image), beside those shipped.",
            unset="Only the modules that are shipped.",
        ),
        Variable(
            name="TF_PLUGIN_CACHE_DIR",
            kind="folder",
            modes=RUNNING_JOBS,
            purpose="Folder in which Terraform keeps the providers that modules of yours need.",
            unset="It keeps none: each job downloads what it needs.",
        ),
        Variable(
            name="ARCHIVE_ROOT",
            kind="folder",
            purpose="Folder of the archive files.",
            unset="var/archive in the project's folder.",
        ),
        Variable(
            name="ARCHIVE_MAX_SECONDS",
            kind="integer",
            unit="seconds",
            low=1,
            high=3300,
            default="480",
            purpose="How long one archival run works before it ends its file and asks to be run again. After 3600 it would fail by its time limit.",
        ),
    ),
}

VARIABLES: tuple[Variable, ...] = tuple(
    v for section in SECTIONS.values() for v in section
)
PREFIXES = ("FALCON_", "WORKER_", "DB_", "DATABASE_", "HEARTBEAT_")  # ours


def unknown(names: Iterable[str]) -> list[str]:
    """Names that look like ours and are not: misspelt ones do nothing, silently."""
    known = {v.name for v in VARIABLES} | {f"{v.name}_FILE" for v in VARIABLES}
    return sorted(n for n in names if n.startswith(PREFIXES) and n not in known)
