"""override: what operators ask of a row of the timetable: run now, another cadence.

Called by the admin, the commands and the API. Both are rows that the master reads with
its next look, and a Change in the same transaction; the master is woken when it commits.
"""

from datetime import timedelta

from django.conf import settings
from django.db import transaction

from audit import clock, ledger, words
from audit.text import gate
from scheduler import cadence as cadences
from scheduler.election import wake_servers
from scheduler.exceptions import HandlerPaused, InvalidCadence
from scheduler.models import Schedule
from scheduler.plan import ON_DEMAND, pause_of
from scheduler.tick import FAST
from workqueue import live, registry
from workqueue.live import PauseRow
from workqueue.models import Tenant
from workqueue.registry import Handler

DAY = timedelta(days=1)


def run_now(
    key: str, *, who: str, origin: str, why: str, confirmed: bool = False
) -> bool:
    """Ask the master to tick a row at its next pass. False: it has been asked already.

    Raises UnknownHandler; HandlerPaused where it is paused and that was not `confirmed`:
    its items would wait until the pause is over.
    """
    row = registry.row(key)
    pause = pause_of(key, live=live.refresh(), now=clock.now())
    if pause and not confirmed:
        raise HandlerPaused(_asks_first(row, pause))
    with transaction.atomic():
        _see(key)
        mine = Schedule.objects.filter(key=key, run_requested_at=None)
        if not mine.update(
            run_requested_at=clock.DatabaseNow(),
            run_requested_by=who,
            run_requested_why=gate(why),
        ):
            return False
        ledger.change(
            who=who,
            origin=origin,
            subject=f"handler:{key}",
            verb="run now",
            new={"run": "asked for"},
            why=why,
        )
        wake_servers()
    return True


def change_cadence(key: str, *, cadence: str, who: str, origin: str, why: str) -> bool:
    """Let a row tick at another cadence; "" = the timetable's own. False: it does already.

    Raises UnknownHandler, and InvalidCadence with a sentence for the form.
    """
    row = registry.row(key)
    cadence = " ".join(cadence.split())
    if cadence == row.cadence:
        cadence = ""
    if cadence:
        check(cadence, row=row)
    with transaction.atomic():
        _see(key)
        schedule = Schedule.objects.select_for_update().get(key=key)
        old, schedule.cadence = schedule.cadence, cadence
        if old == cadence:
            return False
        schedule.cadence_who, schedule.cadence_why = who, gate(why)
        schedule.cadence_at = clock.now()
        schedule.save(
            update_fields=["cadence", "cadence_who", "cadence_why", "cadence_at"]
        )
        default = row.cadence or ON_DEMAND
        ledger.change(
            who=who,
            origin=origin,
            subject=f"handler:{key}",
            verb="changed cadence",
            old=old or default,
            new=cadence or default,
            why=why,
        )
        wake_servers()
    return True


def is_fast(cadence: str) -> bool:
    """Whether its ticks enqueue only for tenants that have work. Raises InvalidCadence."""
    return cadences.parse(cadence, settings.SERVER_TIME_ZONE).period < FAST


def cost(cadence: str, *, row: Handler) -> str:
    """What a cadence asks of the workers here, in a sentence. Raises InvalidCadence."""
    period = cadences.parse(cadence, settings.SERVER_TIME_ZONE).period
    each, whom = 1, "for the platform"
    if row.scope == "tenant":
        each = Tenant.objects.active().filter(is_platform=False).count()
        whom = f"with your {words.plural(each, 'tenant')}"
    elif row.scope != "platform":
        whom = "for each pair that it lists"
    a_second, a_day = each / period.total_seconds(), round(each * (DAY / period))
    often = f"{a_second:,.1f} items/s, ".replace(".0 ", " ") if a_second >= 0.1 else ""
    probed = (
        "Under 10\N{NO-BREAK SPACE}s a tick asks first who has work, and enqueues for those alone. "
        if period < FAST
        else ""
    )
    return f"{probed}{cadence} is at most {often}{words.plural(a_day, 'run')} a day {whom}."


def check(cadence: str, *, row: Handler) -> None:
    """Whether a row may tick at this cadence. Raises InvalidCadence."""
    period = cadences.parse(cadence, settings.SERVER_TIME_ZONE).period
    if is_fast(cadence) and registry.due(row.key) is None:
        raise InvalidCadence(
            f"{row.title} cannot say who has work, so it would run for every tenant every "
            f"{period / timedelta(seconds=1):g}\N{NO-BREAK SPACE}s. Enter 10s or more."
        )


def _see(key: str) -> None:
    """Have a Schedule row, also before any master has seen the timetable's."""
    Schedule.objects.get_or_create(key=key, defaults={"since": clock.now()})


def _asks_first(row: Handler, pause: PauseRow) -> str:
    until = (
        f"until {pause.until:%Y-%m-%d %H:%M} UTC"
        if pause.until
        else "until somebody ends the pause"
    )
    what = "Everything" if pause.scope == "everything" else row.title
    return (
        f"{what} is paused {until}, by {pause.who}: “{pause.reason}”. "
        "Confirm to enqueue it all the same: its items wait until the pause is over."
    )
