"""Channels, what goes through them, and what readers find in the admin."""

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q

from audit.clock import DatabaseNow
from audit.secret import EncryptedTextField, SecretsLater, UnreadableSecret
from audit.text import gate
from scheduler.handlers.notifications.channels import border

MAX_ATTEMPTS = 8  # then failed: one bad address must not cost for ever
MAX_BROKEN = 5  # in a row; then the channel is disabled
ERROR_LIMIT = 2_000  # characters


class ChannelQuerySet(models.QuerySet["Channel"]):
    """Questions about channels."""

    def usable(self) -> "ChannelQuerySet":
        """Enabled, not paused now, and of a kind that this release can speak."""
        return self.filter(
            Q(paused_until=None) | Q(paused_until__lte=DatabaseNow(once=True)),
            is_enabled=True,
            kind__in=list(border.MODULES),
        )

    def with_work(self) -> "ChannelQuerySet":
        """Those with a row due now."""
        due = Notification.objects.filter(
            channel=OuterRef("pk"), next_attempt_at__lte=DatabaseNow(once=True)
        )
        return self.filter(Exists(due))


ChannelManager = SecretsLater.from_queryset(ChannelQuerySet)


class Channel(models.Model):
    """A way to reach people, set up by a tenant."""

    class Kind(models.TextChoices):
        """What it speaks; each has its module in channels/."""

        # SMTP, to one address a message.
        EMAIL = "email", "E-mail"
        # A line under the bell of the admin's header, for one user.
        WEB = "web", "Web"

    tenant = models.ForeignKey("workqueue.Tenant", models.DB_CASCADE, related_name="+")
    name = models.CharField(max_length=64)
    kind = models.CharField(max_length=16, choices=Kind)
    config = models.JSONField(
        default=dict, blank=True
    )  # fields of its module's ConfigForm
    secret = EncryptedTextField(default="", blank=True)  # password or token
    is_enabled = models.BooleanField("enabled", default=True)
    paused_until = models.DateTimeField(
        null=True, blank=True
    )  # the other side asked for it
    consecutive_failures = models.PositiveIntegerField(
        default=0
    )  # of the channel itself
    disabled_reason = models.TextField(default="", blank=True)
    last_error = models.TextField(default="", blank=True)  # of the channel itself
    last_sent_at = models.DateTimeField(null=True, blank=True)

    objects = ChannelManager()

    class Meta:
        ordering = ["tenant", "name"]
        permissions = [("test_channel", "Can send a test through a channel")]
        constraints = [
            # Transcripts and the list call a channel by its name.
            models.UniqueConstraint(
                fields=["tenant", "name"], name="channel_name_per_tenant"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def endpoint(self) -> border.Endpoint:
        """The channel as its module sees it."""
        secret, fault = "", ""
        try:
            secret = self.secret
        except UnreadableSecret as problem:
            fault = str(problem)
        return border.Endpoint(
            kind=self.kind,
            name=self.name,
            tenant_id=self.tenant_id,
            tenant=self.tenant.slug,
            config=self.config if isinstance(self.config, dict) else {},
            secret=secret,
            fault=fault,
        )

    def has_secret(self) -> bool:
        """Whether one is stored, readable or not."""
        return Channel.objects.filter(pk=self.pk).exclude(secret="").exists()

    def worked(self) -> None:
        """A message went through: what failed in a row is over."""
        Channel.objects.filter(pk=self.pk).update(
            last_sent_at=DatabaseNow(), consecutive_failures=0, last_error=""
        )

    def unreachable(self, error: str) -> None:
        """Nobody answered. Not counted: that ends by itself."""
        Channel.objects.filter(pk=self.pk).update(
            last_error=gate(error, limit=ERROR_LIMIT)
        )

    def pause(self, span: timedelta) -> None:
        """Send nothing for `span`, counted by the database's clock."""
        Channel.objects.filter(pk=self.pk).update(paused_until=DatabaseNow() + span)
        self.refresh_from_db(fields=["paused_until"])

    def broke(self, error: str) -> bool:
        """Count a failure of the channel itself. True: this one disabled it."""
        error = gate(error, limit=ERROR_LIMIT)
        mine = Channel.objects.filter(pk=self.pk)
        mine.update(
            consecutive_failures=F("consecutive_failures") + 1, last_error=error
        )
        full = mine.filter(is_enabled=True, consecutive_failures__gte=MAX_BROKEN)
        return full.update(is_enabled=False, disabled_reason=error) == 1


class NotificationQuerySet(models.QuerySet["Notification"]):
    """Questions about notifications."""

    def terminal(self) -> "NotificationQuerySet":
        """Those that nobody will send any more, unless an operator says so."""
        return self.exclude(finished_at=None)

    def retriable(self) -> "NotificationQuerySet":
        """Those that an operator may have sent again."""
        return self._at_rest("pending", "failed", "suppressed")

    def suppressible(self) -> "NotificationQuerySet":
        """Those that an operator may keep from being sent."""
        return self._at_rest("pending", "failed")

    def _at_rest(self, *states: str) -> "NotificationQuerySet":
        # A send that died leaves its row claimed, and a channel that was disabled
        # meanwhile has no run that would take it up.
        died = Q(state="sending", claimed_until__lte=DatabaseNow(once=True))
        return self.filter(died | Q(state__in=states))


class Notification(models.Model):
    """One message to one recipient through one channel."""

    class State(models.TextChoices):
        """Where it is."""

        # Waits for next_attempt_at; claim takes it.
        PENDING = "pending", "Waiting"
        # A run has claimed it, until claimed_until; then it may be claimed again.
        SENDING = "sending", "Sending"
        # The other side took it. Terminal.
        SENT = "sent", "Sent"
        # Refused, or tried eight times. Terminal, until an operator retries it.
        FAILED = "failed", "Failed"
        # Muted, or an operator does not want it sent. Terminal, until he retries it.
        SUPPRESSED = "suppressed", "Suppressed"

    tenant = models.ForeignKey(
        "workqueue.Tenant", models.DB_CASCADE, related_name="+", db_index=False
    )
    channel = models.ForeignKey(
        Channel, models.DB_CASCADE, related_name="notifications"
    )
    event_id = models.BigIntegerField(
        null=True, blank=True
    )  # audit.Event, as a plain value
    recipient = (
        models.TextField()
    )  # address or username, as the channel's kind needs it
    subject = models.TextField(default="", blank=True)
    body_text = models.TextField(default="", blank=True)
    body_html = models.TextField(default="", blank=True)
    payload = models.JSONField(
        default=dict, blank=True
    )  # url, reply_to, template, context
    dedupe_key = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    attempts = models.PositiveIntegerField(
        default=0
    )  # starts, the present one included
    # When it may be claimed; while it is being sent, when it may be claimed again. Null
    # in terminal states, so that "due" is one comparison and one small index.
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    claim_id = models.UUIDField(null=True, blank=True)  # the run that tried it last
    provider_id = models.CharField(max_length=255, default="", blank=True)
    last_error = models.TextField(default="", blank=True)
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)  # when it became terminal

    objects = NotificationQuerySet.as_manager()

    class Meta:
        permissions = [
            ("retry_notification", "Can retry a notification"),
            ("suppress_notification", "Can suppress a notification"),
        ]
        constraints = [
            # Telling twice of one thing makes one message: creators insert without looking.
            models.UniqueConstraint(
                fields=["tenant", "dedupe_key"],
                name="notification_dedupe_key_per_tenant",
            ),
            # A live row without a time would never be sent; a terminal one with a time, again.
            models.CheckConstraint(
                name="notification_due_while_live",
                condition=Q(
                    state__in=["pending", "sending"],
                    next_attempt_at__isnull=False,
                    finished_at=None,
                )
                | Q(
                    state__in=["sent", "failed", "suppressed"],
                    next_attempt_at=None,
                    finished_at__isnull=False,
                ),
            ),
        ]
        indexes = [
            # due() walks the first, claim the second: both hold live rows only. The
            # condition is on the column compared, which both planners can follow.
            models.Index(
                fields=["next_attempt_at", "tenant"],
                name="notification_due",
                condition=Q(next_attempt_at__isnull=False),
            ),
            models.Index(
                fields=["channel", "next_attempt_at", "id"],
                name="notification_due_by_channel",
                condition=Q(next_attempt_at__isnull=False),
            ),
            # The lists, newest first: of one tenant, and of all.
            models.Index(
                fields=["tenant", "created_at", "id"], name="notification_by_tenant"
            ),
            models.Index(fields=["created_at", "id"], name="notification_by_creation"),
            # What is old enough to be archived.
            models.Index(
                fields=["tenant", "finished_at", "id"],
                name="notification_terminal",
                condition=Q(finished_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"notification {self.pk} to {self.recipient[:80]}"

    def sent(self, provider_id: str) -> bool:
        """The other side took it. False, here and below: another run has claimed it since."""
        return self._settle(
            state=self.State.SENT,
            provider_id=gate(provider_id, limit=255)[:255],
            last_error="",
            next_attempt_at=None,
            sent_at=DatabaseNow(),
            finished_at=DatabaseNow(),
        )

    def failed(self, error: str) -> bool:
        """It will not be tried again by itself."""
        return self._settle(
            state=self.State.FAILED,
            last_error=gate(error, limit=ERROR_LIMIT),
            next_attempt_at=None,
            finished_at=DatabaseNow(),
        )

    def deferred(self, error: str, *, attempts: int, delay: timedelta) -> bool:
        """Again after `delay`; so many attempts count."""
        return self._settle(
            state=self.State.PENDING,
            attempts=attempts,
            last_error=gate(error, limit=ERROR_LIMIT),
            next_attempt_at=DatabaseNow() + delay,
        )

    def retry(self) -> bool:
        """Send it with the next run, from the first attempt. False: it is sent, or being sent."""
        return self._move(
            Notification.objects.retriable(),
            state=self.State.PENDING,
            attempts=0,
            next_attempt_at=DatabaseNow(),
            finished_at=None,
        )

    def suppress(self) -> bool:
        """Do not send it. False: it is sent, being sent, or suppressed already."""
        return self._move(
            Notification.objects.suppressible(),
            state=self.State.SUPPRESSED,
            next_attempt_at=None,
            finished_at=DatabaseNow(),
        )

    def _settle(self, **values: object) -> bool:
        mine = Notification.objects.filter(
            pk=self.pk, state=self.State.SENDING, claim_id=self.claim_id
        )
        return mine.update(claimed_until=None, **values) == 1

    def _move(self, may: NotificationQuerySet, **values: object) -> bool:
        return may.filter(pk=self.pk).update(claimed_until=None, **values) == 1


class WebNotificationQuerySet(models.QuerySet["WebNotification"]):
    """Questions about a reader's own messages."""

    def own(
        self, user_id: int, *, tenants: frozenset[int] | None
    ) -> "WebNotificationQuerySet":
        """Of one reader, and of tenants that he may still see (None: all)."""
        mine = self.filter(user_id=user_id)
        return mine if tenants is None else mine.filter(tenant_id__in=tenants)

    def unread(self) -> "WebNotificationQuerySet":
        """Those that the badge counts."""
        return self.filter(read_at=None)

    def mark_read(self) -> int:
        """Take them off the badge; the first time is kept. Returns how many were unread."""
        return self.unread().update(read_at=DatabaseNow())


class WebNotification(models.Model):
    """A message to one user, shown in the admin."""

    tenant = models.ForeignKey("workqueue.Tenant", models.DB_CASCADE, related_name="+")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.DB_CASCADE, related_name="+", db_index=False
    )
    # One each, so that a repeated delivery adds nothing.
    notification = models.OneToOneField(
        Notification, models.DB_CASCADE, related_name="+"
    )
    title = models.TextField()
    body = models.TextField(default="", blank=True)
    url = models.TextField(
        default="", blank=True
    )  # "": none; a path of the admin or https
    created_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True, blank=True)

    objects = WebNotificationQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(
                fields=["user", "created_at", "id"], name="webnotification_by_user"
            ),
            # The badge stands on every page.
            models.Index(
                fields=["user", "tenant"],
                name="webnotification_unread",
                condition=Q(read_at=None),
            ),
        ]

    def __str__(self) -> str:
        return self.title
