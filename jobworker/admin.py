"""admin: what the job worker deploys, on the admin's own lists."""

import json
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet, Value
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from audit import mask, words
from audit.admin import RecordedAdmin
from audit.secret import UnreadableSecret
from audit.templatetags import millrace
from audit.text import gate_json
from jobworker import board, registry
from jobworker.models import Deployment, Image, Job
from workqueue import access
from workqueue.own import OwnTenants

STATES = {
    Deployment.Status.PROVISIONING: "job_running",
    Deployment.Status.ACTIVE: "succeeded",
    Deployment.Status.FAILED: "failed",
    Deployment.Status.DESTROYING: "job_running",
    Deployment.Status.DESTROYED: "stopped",
}


class Made(OwnTenants):
    """What jobs made. Only jobs add, change and remove it."""

    actions = None
    list_per_page = 50
    job_column = "last_job"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """With whether the job's page opens for this reader: jobs are archived."""
        jobs = Job.objects.filter(pk=OuterRef(self.job_column))
        opens = request.user.has_perm("jobworker.view_job")
        kept: Any = Exists(jobs) if opens else Value(False)
        mine: QuerySet[Any] = super().get_queryset(request).annotate(job_opens=kept)
        return mine

    def has_add_permission(self, request: HttpRequest) -> bool:
        """A job does."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A job does."""
        return False

    @admin.display(description="Created", ordering="created_at")
    def created_shown(self, obj: Any) -> str:
        """When a job made it."""
        return millrace.exact(obj.created_at)

    @admin.display(description="Tenant", ordering="tenant_slug")
    def of_tenant(self, obj: Any) -> str:
        """The slug as it was."""
        return words.shown(obj.tenant_slug)


@admin.register(Deployment)
class DeploymentAdmin(Made, RecordedAdmin):
    """Clusters and databases: what is there, what came of it, until when."""

    empty_says = "A cluster or a database stands here from the moment that a job begins to make it. Queue > Jobs > New job submits one."  # admin/change_list.html

    list_display = (
        "name_shown",
        "of_tenant",
        "kind",
        "state",
        "resources",
        "until_shown",
        "protected",
        "job_shown",
    )
    list_filter = ("status", "kind", "protected")
    search_fields = ("name", "tenant_slug")
    fields = (
        "name_shown",
        "of_tenant",
        "kind",
        "module",
        "state",
        "reason",
        "resources",
        "variables_shown",
        "outputs_shown",
        "delete_after",
        "protected",
        "job_shown",
        "destroy",
        "created_shown",
        "created_by",
        "changed_shown",
    )
    readonly_fields = tuple(
        name for name in fields if name not in ("delete_after", "protected")
    )

    def formfield_for_dbfield(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """What the two fields mean."""
        texts = {
            "delete_after": "The sweep destroys it after this moment, and warns its owners a day and an hour ahead. Empty: never.",
            "protected": "Never destroyed by the sweep; a job of its own still can.",
        }
        if db_field.name in texts:
            kwargs["help_text"] = texts[db_field.name]
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Destroy is for those who may submit its job, what a job said for those who may see it."""
        may = obj is not None and access.may(
            request, "jobworker.submit_job", obj.tenant_id
        )
        failed = obj is not None and obj.status == Deployment.Status.FAILED
        shown = {"destroy": may, "reason": failed and obj.job_opens}
        return [name for name in self.fields if shown.get(name, True)]

    @admin.display(description="Delete after", ordering="delete_after")
    def until_shown(self, obj: Deployment) -> str:
        """When the sweep destroys it."""
        return millrace.exact(obj.delete_after) if obj.delete_after else "never"

    @admin.display(description="Changed", ordering="changed_at")
    def changed_shown(self, obj: Deployment) -> str:
        """When a job changed it last."""
        return millrace.exact(obj.changed_at)

    @admin.display(description="Name", ordering="name")
    def name_shown(self, obj: Deployment) -> str:
        """As it was asked for."""
        return words.shown(obj.name)

    @admin.display(description="State", ordering="status")
    def state(self, obj: Deployment) -> SafeString:
        """A word with its icon."""
        found = STATES.get(Deployment.Status(obj.status), "")
        return millrace.status(found, str(obj.get_status_display()))

    @admin.display(description="Reason")
    def reason(self, obj: Deployment) -> str:
        """Why it failed, as its last job says."""
        job = Job.objects.filter(pk=obj.last_job).first() if obj.last_job else None
        return words.shown(job.error if job else "", limit=600) or words.UNKNOWN

    @admin.display(description="Variables")
    def variables_shown(self, obj: Deployment) -> SafeString | str:
        """Given to its module."""
        return _listed(board.named(obj.variables)) or "none"

    @admin.display(description="Outputs")
    def outputs_shown(self, obj: Deployment) -> SafeString | str:
        """Of its module; of the sensitive ones the names alone."""
        plain = board.named(obj.outputs)
        try:
            hidden = [(name, mask.MASK) for name in _names(obj.secret_outputs)]
        except UnreadableSecret as problem:
            hidden = [("", str(problem))]
        return _listed([*plain, *hidden]) or "none yet"

    @admin.display(description="Last job")
    def job_shown(self, obj: Any) -> SafeString | str:
        """The job that worked on it last."""
        return _job(obj.last_job, opens=obj.job_opens)

    @admin.display(description="Destroy")
    def destroy(self, obj: Deployment) -> SafeString | str:
        """Where its destroy job is submitted."""
        type = f"{obj.kind}_destroy"
        if obj.status == Deployment.Status.DESTROYED:
            return "nothing is left of it"
        if type not in registry.types():
            return words.UNKNOWN
        address = reverse("admin:job_submit", args=[type])
        return format_html(
            '<a class="button" href="{}?tenant={}&amp;name={}">Destroy…</a>',
            address,
            obj.tenant_slug,
            obj.name,
        )


@admin.register(Image)
class ImageAdmin(Made):
    """What builds made."""

    job_column = "source_job"

    empty_says = "An image stands here when its build has ended. Queue > Jobs > New job > packer_build makes one."  # admin/change_list.html

    list_display = (
        "name_shown",
        "version",
        "build",
        "of_tenant",
        "provider",
        "job_shown",
        "created_shown",
    )
    list_filter = ("provider",)
    search_fields = ("name", "version", "tenant_slug")
    fields = (
        "name_shown",
        "version",
        "build",
        "of_tenant",
        "provider",
        "external_id",
        "files_shown",
        "sha256",
        "job_shown",
        "created_shown",
        "created_by",
    )
    readonly_fields = fields

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A build does."""
        return False

    @admin.display(description="Name", ordering="name")
    def name_shown(self, obj: Image) -> str:
        """As it was asked for."""
        return words.shown(obj.name)

    @admin.display(description="Files")
    def files_shown(self, obj: Image) -> SafeString | str:
        """Where the worker keeps them, with size and checksum."""
        rows = obj.files if isinstance(obj.files, list) else []
        return _listed([("", board.told(gate_json(each))) for each in rows]) or "none"

    @admin.display(description="Built by")
    def job_shown(self, obj: Any) -> SafeString | str:
        """Its build."""
        return _job(obj.source_job, opens=obj.job_opens)


def _job(id: UUID | None, *, opens: bool) -> SafeString | str:
    """A job by its id; a link while its page opens."""
    if id is None:
        return words.UNKNOWN
    text = f"job {str(id)[:8]}…"
    address = reverse("admin:job", args=[id])
    return format_html('<a href="{}">{}</a>', address, text) if opens else text


def _listed(pairs: list[tuple[str, str]]) -> SafeString:
    if not pairs:
        return mark_safe("")
    return format_html_join(
        mark_safe("<br>"),
        "{}<code>{}</code>",
        (
            (f"{words.shown(name)} " if name else "", words.shown(value, limit=600))
            for name, value in pairs
        ),
    )


def _names(stored: str) -> list[str]:
    """The names of what is kept encrypted."""
    try:
        found = json.loads(stored or "{}")
    except ValueError:
        return []
    return [str(name) for name in found] if isinstance(found, dict) else []
