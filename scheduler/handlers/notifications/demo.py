"""demo: channels and ten minutes of messages for the demo's tenants.

Called by `start --demo` through its dotted path, with the address of a mail server that
takes everything but what is for `nobody@`. Each start brings ten minutes anew.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from audit import clock
from scheduler.handlers.notifications.models import Channel
from scheduler.handlers.notifications.notify import notify, notify_admins
from workqueue.models import Tenant

SPAN = timedelta(minutes=10)
EVERY = timedelta(seconds=20)
REFUSED = timedelta(seconds=40)  # from the start: soon enough to be seen
CHANNEL = "operations"
PEOPLE = ("anna", "boris", "chidi", "dana", "emeka")
NEWS = (
    (
        "Nightly report is ready",
        "The report of last night is ready: 14 pages, nothing unusual.",
    ),
    (
        "Certificate expires in 14 days",
        "The certificate of shop.{domain} expires in 14 days.",
    ),
    (
        "Backup finished",
        "The backup of the database finished after 4 min 38 s: 12.4 GB.",
    ),
    (
        "Disk is 85 % full",
        "The disk of files-2.{domain} is 85 % full; it grew by 3 % this week.",
    ),
    (
        "New sign-in",
        "A new sign-in from Lagos. If that was not you, change your password.",
    ),
    ("Invoice 2041 is paid", "Invoice 2041 was paid today. Nothing is left to do."),
    ("Maintenance on Sunday", "On Sunday from 02:00 to 04:00 search will be slow."),
)


def demo(tenants: Sequence[Tenant], smtp_host: str, smtp_port: int) -> None:
    """Fill channels and notifications; what is there already stays."""
    now = clock.now()
    for number, tenant in enumerate(tenants):
        channel, _ = Channel.objects.update_or_create(
            tenant=tenant,
            name=CHANNEL,
            defaults={
                "kind": Channel.Kind.EMAIL,
                "config": {
                    "host": smtp_host,
                    "port": smtp_port,
                    "from_address": f"operations@{domain(tenant)}",
                    "from_name": f"{tenant.name} operations",
                },
            },
        )
        # Tenants take turns, so that every pass of the timetable finds somebody's.
        _news(channel, now=now, first=timedelta(seconds=5 * number))
        _refused(channel, now=now)
        notify_admins(
            tenant,
            title=f"The demo of {tenant.name} has started",
            body=f"{tenant.name} sends an e-mail every {EVERY.seconds} s for {SPAN.seconds // 60}"
            " minutes. One of them is refused: its run is Partial.",
            dedupe_key=f"demo-started:{now:%Y%m%d%H%M}",
        )


def domain(tenant: Tenant) -> str:
    """Of the tenant's people; .example belongs to nobody."""
    return f"{tenant.slug}.example"


def _news(channel: Channel, *, now: datetime, first: timedelta) -> None:
    for number in range(SPAN // EVERY):
        subject, text = NEWS[number % len(NEWS)]
        person = PEOPLE[number % len(PEOPLE)]
        _one(
            channel,
            key=f"{now:%Y%m%d%H%M}:{number}",
            recipient=f"{person}@{domain(channel.tenant)}",
            subject=subject,
            text=text.format(domain=domain(channel.tenant)),
            at=now + first + number * EVERY,
        )


def _refused(channel: Channel, *, now: datetime) -> None:
    """Two at the same instant, so that one run has both: a mailbox that is gone, and one that is not."""
    for person in ("nobody", PEOPLE[0]):
        _one(
            channel,
            key=f"{now:%Y%m%d%H%M}:refused:{person}",
            recipient=f"{person}@{domain(channel.tenant)}",
            subject="Your account is reviewed",
            text="Your account was reviewed, as every quarter. Nothing changed.",
            at=now + REFUSED,
        )


def _one(
    channel: Channel, *, key: str, recipient: str, subject: str, text: str, at: datetime
) -> None:
    notify(
        channel,
        recipient=recipient,
        subject=subject,
        body_text=text,
        dedupe_key=f"demo:{key}",
        not_before=at,
    )
