"""tables: the list of notifications in the house look."""

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from audit import words
from audit.tables import TEXT_SHOWN, Table, column
from audit.templatetags import millrace
from scheduler.handlers.notifications.models import MAX_ATTEMPTS, Notification

# The ledger's icons; "failed" is the same word there.
LOOKS = {
    Notification.State.PENDING: "pending",
    Notification.State.SENDING: "executing",
    Notification.State.SENT: "succeeded",
    Notification.State.FAILED: "failed",
    Notification.State.SUPPRESSED: "cancelled",
}


def state(row: Notification) -> SafeString:
    """Icon and word; a waiting one that failed before is marked as a failure is."""
    again = row.state == Notification.State.PENDING and row.attempts
    look = "partial" if again else LOOKS.get(Notification.State(row.state), row.state)
    word = "Waiting to retry" if again else row.get_state_display()
    return millrace.status(look, word)


class NotificationTable(Table):
    """Notifications, newest first."""

    mark = column("Select", td="mr-hide", hidden=True)
    created = column("Created", td="end nl mr-nowrap", newest_first=True)
    state = column("State", td="first nl")
    subject = column("Subject", td="w", th="wide")
    recipient = column("Recipient", td="name mail")
    channel = column("Channel", td="name")
    tenant = column("Tenant", td="nl name")
    attempts = column("Attempts", td="n", th="n")
    result = column("Result", td="w last")

    caption = "Notifications, newest first"

    class Meta(Table.Meta):
        pass

    def render_mark(self, record: Notification) -> SafeString:
        """A box that belongs to the form below the list."""
        return format_html(
            '<input type="checkbox" name="id" value="{}" form="act" aria-label="Select notification {}">',
            record.pk,
            record.pk,
        )

    def render_created(self, record: Notification) -> str:
        """When somebody had something to say."""
        return self.when(record.created_at)

    def render_state(self, record: Notification) -> SafeString:
        """Icon and word."""
        return state(record)

    def render_subject(self, record: Notification) -> SafeString:
        """The subject, which is the link to its page."""
        address = reverse("admin:notifications_notification_change", args=[record.pk])
        subject = words.shown(record.subject) or f"Notification {record.pk}"
        return format_html('<a href="{}">{}</a>', address, subject)

    def render_recipient(self, record: Notification) -> str:
        """Address or username."""
        return words.shown(record.recipient)

    def render_channel(self, record: Notification) -> str:
        """The channel's name."""
        return words.shown(record.channel.name)

    def render_tenant(self, record: Notification) -> str:
        """The slug."""
        return words.shown(record.tenant.slug)

    def render_attempts(self, record: Notification) -> str:
        """So many of so many."""
        return (
            f"{record.attempts} of {MAX_ATTEMPTS}" if record.attempts else words.UNKNOWN
        )

    def render_result(self, record: Notification) -> SafeString:
        """What came of it, and what comes next."""
        error = ""
        if record.last_error:
            error = format_html(
                '<span class="err">{}</span>',
                words.shown(record.last_error, limit=TEXT_SHOWN),
            )
        if record.sent_at:
            return format_html("sent {}", self.when(record.sent_at))
        if record.next_attempt_at and record.state == Notification.State.PENDING:
            below = format_html('<span class="sub">next {}</span>', self._next(record))
            return format_html("<div>{}{}</div>", error, below)
        return format_html("<div>{}</div>", error or words.UNKNOWN)

    def _next(self, record: Notification) -> str:
        due = record.next_attempt_at
        if not record.channel.is_enabled:
            return "when its channel is enabled"
        return "with the next run" if due is None or due <= self.now else self.when(due)
