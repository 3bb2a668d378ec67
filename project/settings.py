"""Settings: the only reader of the environment. The registry is project/environment.py."""

import os
import tomllib
from base64 import urlsafe_b64encode
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.utils.csp import CSP

from project import configuration, private

BASE_DIR = Path(__file__).resolve().parent.parent
CONFIGURATION = configuration.read(os.environ, dotenv=BASE_DIR / ".env")
if CONFIGURATION.problems:
    configuration.refuse(CONFIGURATION.problems)
env = CONFIGURATION

# --- which installation
VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"][
    "version"
]
DJANGO_ENV: str = env.DJANGO_ENV
PRODUCTION = DJANGO_ENV == "production"
TESTING = DJANGO_ENV == "test"
FALCON_MODE: str = env.FALCON_MODE
DEBUG = False  # pages with a traceback are for nobody; the log has it
SERVER_TIME_ZONE = TIME_ZONE = env.SERVER_TIME_ZONE
USE_TZ = True
VAR = BASE_DIR / "var"  # what a laptop's installation keeps besides its database

# --- database
_database: dict[str, Any] = env.DATABASE_URL or {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": str(BASE_DIR / "millrace.sqlite3"),
}
SQLITE = _database["ENGINE"].endswith("sqlite3")
SQLITE_FILE: Path | None = BASE_DIR / _database["NAME"] if SQLITE else None
if SQLITE:
    _database["NAME"] = str(SQLITE_FILE)
    _database["OPTIONS"] = {
        **_database.get("OPTIONS", {}),
        # Take the write lock at BEGIN: a transaction that read first would fail when it writes.
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,  # seconds
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
else:
    _database["OPTIONS"] = {
        "connect_timeout": 5,  # seconds
        # A peer that vanished without a word is noticed within half a minute.
        "keepalives": 1,
        "keepalives_idle": 15,  # seconds
        "keepalives_interval": 5,  # seconds
        "keepalives_count": 3,
        **_database.get("OPTIONS", {}),
    }
    _database["CONN_MAX_AGE"] = 0  # the pool keeps connections
    _database["DISABLE_SERVER_SIDE_CURSORS"] = not env.DATABASE_LISTEN
DATABASES = {"default": _database}
DATABASE_LISTEN: bool = env.DATABASE_LISTEN
DATABASE_DIRECT_URL: str = env["DATABASE_DIRECT_URL"].text
DATABASE_WAIT = timedelta(seconds=env.DATABASE_WAIT_S)
DB_POOL_SIZE: int | None = env.DB_POOL_SIZE  # connections; None: what the role needs
DB_MAX_OVERFLOW: int | None = env.DB_MAX_OVERFLOW
# Indexes of the ledger carry columns along, which SQLite ignores, as it may.
SILENCED_SYSTEM_CHECKS = ["models.W040"] if SQLITE else []
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- secrets
PRIVATE_FOLDER = SQLITE_FILE.parent if SQLITE_FILE else BASE_DIR
if TESTING:
    SECRET_KEY: str = env.SECRET_KEY or "for tests only"
else:
    SECRET_KEY = env.SECRET_KEY or private.values(PRIVATE_FOLDER)["SECRET_KEY"]
SECRET_KEY_FALLBACKS: list[str] = env.SECRET_KEY_FALLBACKS or []


def _derived(key: str) -> str:
    return urlsafe_b64encode(
        sha256(b"millrace fields:" + key.encode()).digest()
    ).decode()


FIELD_KEYS: list[str] = env.FIELD_KEY or [
    _derived(key) for key in (SECRET_KEY, *SECRET_KEY_FALLBACKS)
]

# --- applications
DOMAIN_APPS: list[str] = [
    "scheduler.handlers.archival",
    "scheduler.handlers.deployments",
    "scheduler.handlers.instance",
    "scheduler.handlers.notifications",
    "scheduler.handlers.operations",
]
INSTALLED_APPS = [
    "project.apps.ProjectConfig",
    "scheduler",
    *DOMAIN_APPS,
    "jobworker",
    "workqueue",
    "audit",
    "django_tables2",
    "django_filters",
    "django_htmx",
    "axes",
    "project.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
]

# --- web
PORT: int = env.PORT
BIND: str = env.BIND
BASE_URL_IS_SET = bool(env.BASE_URL)
BASE_URL: str = env.BASE_URL or f"http://localhost:{PORT}"
ALLOWED_HOSTS: list[str] = env.ALLOWED_HOSTS or [
    *({urlsplit(env.BASE_URL).hostname} if env.BASE_URL else ()),
    *("localhost", "127.0.0.1", "[::1]"),
]
CSRF_TRUSTED_ORIGINS = [BASE_URL] if env.BASE_URL else []
WEB_PROCESSES: int = env.WEB_PROCESSES
WEB_THREADS: int = env.WEB_THREADS
ACCESS_LOG: bool = env.ACCESS_LOG
METRICS_TOKEN: str = env.METRICS_TOKEN or ""
ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
MIDDLEWARE = [
    "project.probes.Probes",  # first: they answer to any host, without TLS, session and database
    "project.request_id.RequestId",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "project.headers.PermissionsPolicy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "project.visible.VisibleControls",
    "workqueue.middleware.TenantScope",
    "project.reader.Times",
    "axes.middleware.AxesMiddleware",  # last: it answers for the sign-in form
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.csp",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "scheduler.handlers.notifications.bell.bell",
            ]
        },
    }
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"

# --- static files
STATIC_URL = "/static/"
# A laptop serves them from where they stand.
STATIC_ROOT: Path | None = BASE_DIR / "static" / "collected" if PRODUCTION else None
WHITENOISE_USE_FINDERS = not PRODUCTION
WHITENOISE_AUTOREFRESH = TESTING  # else each of a thousand test clients reads all files
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

# --- security
SECURE_CSP: dict[str, list[str]] = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF, CSP.NONCE],
    "style-src": [CSP.SELF, CSP.NONCE],
    "img-src": [CSP.SELF, "data:"],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}
HTTPS: bool = env.HTTPS
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0  # a year
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if env.TRUST_PROXY else None
)
TRUSTED_PROXIES: int = env.PROXY_COUNT if env.TRUST_PROXY else 0
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_AGE = 12 * 3600  # seconds: a working day
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "project.errors.old_form"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",  # first: refuses before passwords are compared
    "django.contrib.auth.backends.ModelBackend",
]
AXES_ENABLED = True
AXES_FAILURE_LIMIT = 5  # of one user name from one address
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
# Trying on during a lock would make it last for ever.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_HTTP_RESPONSE_CODE = 429
AXES_LOCKOUT_CALLABLE = "project.login.locked"
AXES_CLIENT_IP_CALLABLE = "project.login.client_address"
AXES_DISABLE_ACCESS_LOG = True  # grows without end; users have a last_login
AXES_ENABLE_ADMIN = False  # project.admin shows them, to the platform's staff only
AXES_VERBOSE = False
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
if TESTING:  # a slow hash is the point of the others, and most of the time of a test
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# --- log
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {"()": "project.logs.Text"},
        "json": {"()": "project.logs.Json"},
    },
    "filters": {"outside_attempts": {"()": "audit.capture.OutsideAttempts"}},
    "handlers": {
        # Standard error: what commands print on standard output is data.
        "console": {
            "class": "logging.StreamHandler",
            "level": env.LOG_LEVEL,
            "formatter": env.LOG_FORMAT,
            "filters": ["outside_attempts"],
        },
        "transcript": {"class": "audit.capture.TranscriptHandler", "level": "INFO"},
    },
    "root": {
        "level": "DEBUG" if env.LOG_LEVEL == "DEBUG" else "INFO",
        "handlers": ["console", "transcript"],
    },
    "loggers": {
        "django": {"level": "INFO"},  # its own handlers are replaced by the root's
        "django.server": {"handlers": [], "propagate": True},
        # A line per statement or request; addresses of reports are secrets.
        "httpx": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},
        "psycopg.pool": {"level": "ERROR"},
        "mail.log": {"level": "WARNING"},  # the demo's mail server
        # Warns of every HEAD that Django answers.
        "gunicorn.http.wsgi": {"level": "ERROR"},
    },
}

# --- e-mail
DEFAULT_FROM_EMAIL: str = env.EMAIL_FROM
MAILERS: dict[str, dict[str, Any]] = {}
if env.EMAIL_URL:
    MAILERS["default"] = env.EMAIL_URL
elif TESTING:
    MAILERS["default"] = {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}
elif not PRODUCTION:
    MAILERS["default"] = {
        "BACKEND": "django.core.mail.backends.filebased.EmailBackend",
        "OPTIONS": {"file_path": str(VAR / "mail")},
    }

# --- engine
KEEP_ALIVE = timedelta(seconds=env.FALCON_SERVER_KEEP_ALIVE_SECONDS)
WORKER_DRAIN_TIMEOUT = timedelta(seconds=env.WORKER_DRAIN_TIMEOUT_S)
WAKE_SOCKET: str = env.MILLRACE_WAKE_SOCKET or ""  # folder; "": no sockets
WORKQUEUE_HANDLERS = "scheduler.timetable.TIMETABLE"
WORKQUEUE_HANDLERS_PACKAGE = "scheduler.handlers"
JOBWORKER_TYPES = "jobworker.dispatch.JOB_TYPES"
JOBWORKER_JOBS_PACKAGE = "jobworker.jobs"
JOB_ROOT = Path(env.JOB_ROOT or VAR / "jobs")
JOB_MODULES: str = env.JOB_MODULES or ""
TF_PLUGIN_CACHE_DIR: str = env.TF_PLUGIN_CACHE_DIR or ""
AUDIT_NAMES = "workqueue.names"
# What operators set while everything runs.
DECLARATIONS = (
    "workqueue.policy.WORKER_NODE_CONFIGURATION",
    "jobworker.caps.DECLARATION",
)

# --- handlers
HEARTBEAT_URL: str = env.HEARTBEAT_URL or ""
HEARTBEAT_STYLE: str = env.HEARTBEAT_STYLE
HEARTBEAT_TOKEN: str = env.HEARTBEAT_TOKEN or ""
ARCHIVE_ROOT = Path(env.ARCHIVE_ROOT or VAR / "archive")
ARCHIVE_MAX_SECONDS: int = env.ARCHIVE_MAX_SECONDS
STORAGES["archive"] = {
    "BACKEND": "django.core.files.storage.FileSystemStorage",
    "OPTIONS": {"location": str(ARCHIVE_ROOT), "base_url": None},
}
