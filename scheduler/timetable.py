"""The timetable: a row per handler. The whole menu on one page."""

from datetime import timedelta

from django.conf import settings
from django.db.models import Q

from workqueue.registry import ACTIVE, DAILY_RETRY, Condition, Handler

# A condition on rows, not a missing row: the tick then says why nothing was enqueued.
HEARTBEAT_SET = Condition(
    reason="HEARTBEAT_URL is not set",
    setting="HEARTBEAT_URL",
    holds=lambda _: Q() if settings.HEARTBEAT_URL else Q(pk=-1),
)

TIMETABLE: tuple[Handler, ...] = (
    Handler(
        key="notifications.deliver",
        title="Notification Handler",
        purpose="Sends the notifications that are due, through each tenant's channels.",
        cadence="15s",
        time_limit=timedelta(minutes=12),
    ),
    Handler(
        key="archival.apply_policies",
        title="Record Archival Handler",
        purpose="Moves rows past their archival policy into files, or deletes them.",
        cadence="daily 23:00",
        retry=DAILY_RETRY,
    ),
    Handler(
        key="instance.report_heartbeat",
        title="Heartbeat",
        purpose="Tells a central service that this installation is alive.",
        cadence="30m",
        scope="platform",
        eligible=(ACTIVE, HEARTBEAT_SET),
    ),
    Handler(
        key="instance.sum_up",
        title="Metrics Handler",
        purpose="Sums up the runs of each minute and hour for the Metrics page.",
        cadence="1m",
        scope="platform",
        time_limit=timedelta(minutes=5),
        keep_empty=timedelta(days=1),
    ),
    Handler(
        key="deployments.sweep",
        title="Auto-delete Sweep",
        purpose="Submits the job that ends deployments whose time is over.",
        cadence="10m",
        scope="platform",
        time_limit=timedelta(minutes=1),
    ),
    Handler(
        key="operations.bulk",
        title="Bulk Operation",
        purpose="Does what an operator asked for to every row of a list, one by one.",
        cadence=None,
        scope="scheduler.handlers.operations.bulk.unfinished",
        retry=DAILY_RETRY,
    ),
)
