"""welcome: a newcomer's administrator, and the few lines that say where to go."""

from django.conf import settings
from django.contrib.auth.models import User

from project import private

USERNAME = "admin"


def administrator() -> str | None:
    """Make the first administrator; return the password, None if there was one already.

    Outside production only: there `manage.py createsuperuser` is an operator's act.
    """
    if settings.PRODUCTION or User.objects.filter(is_superuser=True).exists():
        return None
    password = private.values(settings.PRIVATE_FOLDER)["ADMINISTRATOR_PASSWORD"]
    User.objects.create_superuser(USERNAME, email="", password=password)
    return password


def banner(*, password: str | None, more: dict[str, str]) -> str:
    """What is printed at the start. `more`: further lines, title to text."""
    kept = settings.PRIVATE_FOLDER / private.NAME
    lines = {
        "Address": f"{settings.BASE_URL}/",
        "Administrator": USERNAME,
        "Password": f"{password}  (kept in {kept})"
        if password
        else f"as printed at the first start; kept in {kept}",
        **more,
        "To stop": "Ctrl-C; workers finish what they have begun",
    }
    width = max(map(len, lines))
    body = "\n".join(f"  {title:<{width}}  {text}" for title, text in lines.items())
    return f"\nMillrace\n\n{body}\n\n"
