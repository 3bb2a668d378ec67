"""Settings: the only reader of the environment."""

import os
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

import environ

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.FileAwareEnv()

# --- which installation
DJANGO_ENV = os.environ.get("DJANGO_ENV", "development")
SECRET_KEY = os.environ.get("SECRET_KEY", "development")
DEBUG = False
ALLOWED_HOSTS = ["*"]
SERVER_TIME_ZONE = TIME_ZONE = os.environ.get("SERVER_TIME_ZONE", "UTC")
USE_TZ = True

# --- applications
DOMAIN_APPS: list[str] = []
INSTALLED_APPS = [
    "project.apps.ProjectConfig",
    "scheduler",
    *DOMAIN_APPS,
    "workqueue",
    "audit",
    "django_tables2",
    "django_filters",
    "django_htmx",
    "project.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
]

# --- web
ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
STATIC_URL = "static/"

# --- database
DATABASES = {"default": env.db("DATABASE_URL", default=f"sqlite:///{BASE_DIR / 'millrace.sqlite3'}")}
# The folder of a Unix socket stands in a URL with its slashes as %2F.
DATABASES["default"]["HOST"] = unquote(DATABASES["default"].get("HOST") or "")
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,  # seconds
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
DATABASE_LISTEN = True
DB_POOL_SIZE: int | None = None  # connections; None: what the role needs
DB_MAX_OVERFLOW: int | None = None

# --- engine
KEEP_ALIVE = timedelta(seconds=env.int("FALCON_SERVER_KEEP_ALIVE_SECONDS", default=25))
WORKER_DRAIN_TIMEOUT = timedelta(seconds=env.int("WORKER_DRAIN_TIMEOUT_S", default=20))
WORKQUEUE_HANDLERS = "scheduler.timetable.TIMETABLE"
WORKQUEUE_HANDLERS_PACKAGE = "scheduler.handlers"
AUDIT_NAMES = "workqueue.names"  # who knows what handlers and tenants are called
