"""What the environment says becomes values, or one clear sentence per variable."""

from pathlib import Path

import pytest

from project import configuration

pytestmark = pytest.mark.once
PRODUCTION = {
    "DJANGO_ENV": "production",
    "SECRET_KEY": "x" * 60,
    "DATABASE_URL": "postgresql://a:b@c/d",
}


def read(tmp_path: Path, **environment: str) -> configuration.Configuration:
    return configuration.read(environment, dotenv=tmp_path / ".env")


def test_a_laptop_needs_no_variable(tmp_path):
    found = read(tmp_path)
    assert found.problems == ()
    assert found.PORT == 8000
    assert found["PORT"].source == "default"
    assert found.SECRET_KEY is None
    assert found["SECRET_KEY"].source == "unset"


def test_production_names_each_variable_that_it_misses(tmp_path):
    first, second = sorted(read(tmp_path, DJANGO_ENV="production").problems)
    assert first.startswith("DATABASE_URL is not set; DJANGO_ENV=production needs it")
    assert second.startswith("SECRET_KEY is not set; DJANGO_ENV=production needs it")


def test_production_has_defaults_of_its_own(tmp_path):
    found = read(tmp_path, **PRODUCTION)
    assert found.problems == ()
    assert (found.HTTPS, found.BIND) == (True, "0.0.0.0")  # noqa: S104


@pytest.mark.parametrize(
    ("name", "text", "right"),
    [
        ("PORT", "0", "PORT '0' must be a whole number from 1 to 65535"),
        ("PORT", "80a", "PORT '80a' must be a whole number"),
        ("PORT", "٨٠٨٠", "must be a whole number"),
        ("WORKER_DRAIN_TIMEOUT_S", "-1", "from 0 to 3600 (seconds)"),
        (
            "FALCON_MODE",
            "work",
            "FALCON_MODE 'work' must be one of all, api, web, worker",
        ),
        ("DJANGO_ENV", "prod", "must be one of development, production, test"),
        ("SERVER_TIME_ZONE", "Mars/Olympus", "is no time zone"),
        ("SERVER_TIME_ZONE", "../../etc/passwd", "is no time zone"),
        ("EMAIL_FROM", "\udcff\udcfe", "EMAIL_FROM is no text in UTF-8"),
        ("DATABASE_LISTEN", "maybe", "DATABASE_LISTEN 'maybe' must be on or off"),
        ("BASE_URL", "millrace.example.com", "must be an address such as https://"),
        ("ARCHIVE_ROOT", "archive", "must be an absolute path"),
        ("FIELD_KEY", "short", "FIELD_KEY must be 32 bytes in URL-safe base64"),
        ("EMAIL_URL", "mail.example.com", "must be smtp://"),
        ("BASE_URL", "https://a.de\nb", "must be one line"),
        ("HEARTBEAT_TOKEN", "a\tb", "must be one line"),
    ],
)
def test_a_bad_value_is_named_with_what_would_be_right(tmp_path, name, text, right):
    (problem,) = read(tmp_path, **{name: text}).problems
    assert problem.startswith(name)
    assert right in problem


@pytest.mark.parametrize(
    "text",
    [
        "postgres",
        "mysql://a:secret@b/c",
        "postgresql://a:secret@c:port/d",
        "postgresql://a:secret@b/",
        "sqlite://:memory:",
        "sqlite://",
    ],
)
def test_a_wrong_database_address_is_refused_without_showing_it(tmp_path, text):
    (problem,) = read(tmp_path, DATABASE_URL=text).problems
    assert problem.startswith(
        "DATABASE_URL is no address of a database; write postgresql://"
    )
    assert "secret" not in problem


def test_all_problems_are_told_at_once(tmp_path):
    assert (
        len(read(tmp_path, PORT="x", FALCON_MODE="y", SERVER_TIME_ZONE="z").problems)
        == 3
    )


def test_blanks_around_a_value_are_no_part_of_it(tmp_path):
    assert read(tmp_path, PORT=" 81 ").PORT == 81


def test_an_empty_variable_is_an_unset_one(tmp_path):
    assert read(tmp_path, PORT="").PORT == 8000


def test_a_file_can_hold_the_value(tmp_path):
    (tmp_path / "key").write_text("from a file\n")
    found = read(tmp_path, SECRET_KEY_FILE=str(tmp_path / "key"))
    assert found.SECRET_KEY == "from a file"
    assert found["SECRET_KEY"].source == str(tmp_path / "key")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (problem,) = read(tmp_path, SECRET_KEY_FILE="/not/there").problems
    assert (
        problem
        == "SECRET_KEY cannot be read from SECRET_KEY_FILE=/not/there: No such file or directory"
    )


def test_dotenv_counts_where_the_environment_is_silent(tmp_path):
    (tmp_path / ".env").write_text("PORT=81\nLOG_FORMAT=json\n# a remark\n")
    found = read(tmp_path, LOG_FORMAT="text")
    assert (found.PORT, found["PORT"].source) == (81, ".env")
    assert found.LOG_FORMAT == "text"


def test_tests_do_not_read_dotenv(tmp_path):
    (tmp_path / ".env").write_text("PORT=81\n")
    assert read(tmp_path, DJANGO_ENV="test").PORT == 8000


def test_the_folder_of_a_socket_can_stand_in_a_database_address(tmp_path):
    found = read(
        tmp_path, DATABASE_URL="postgresql://me@%2Fvar%2Frun/name?sslmode=require"
    )
    assert found.DATABASE_URL["HOST"] == "/var/run"
    assert found.DATABASE_URL["OPTIONS"] == {"sslmode": "require"}


def test_an_email_address_becomes_a_mailer(tmp_path):
    found = read(tmp_path, EMAIL_URL="smtp+tls://me:p%40ss@mail.example.com")
    options = found.EMAIL_URL["OPTIONS"]
    assert (
        options["host"],
        options["port"],
        options["password"],
        options["use_tls"],
    ) == (
        "mail.example.com",
        587,
        "p@ss",
        True,
    )
