"""Archival policies with a preview, and archive files: verify, download, restore."""

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from audit import clock, page, words
from audit.admin import ReadOnlyAdmin, RecordedAdmin
from audit.templatetags import millrace
from scheduler.handlers.archival import restore, store
from scheduler.handlers.archival.archivable import title, types
from scheduler.handlers.archival.exceptions import ArchiveError
from scheduler.handlers.archival.models import ArchivalPolicy, ArchiveFile
from scheduler.handlers.archival.preview import preview
from scheduler.handlers.archival.verify import verify
from workqueue import access
from workqueue.own import OwnTenants

GROUP = "Archival"
VIEW = "archival.view_archivefile"
VERIFY_SECONDS = 10  # of one request, for many files; one may take longer


@admin.register(ArchivalPolicy)
class ArchivalPolicyAdmin(OwnTenants, RecordedAdmin):
    """How long what is kept. Defaults belong to the platform's staff and stay: disable them."""

    empty_says = "Without a policy nothing is archived or deleted. The defaults are made when a master begins its term."  # admin/change_list.html

    list_display = (
        "type_shown",
        "of_tenant",
        "keep_days",
        "action",
        "archive_keep_days",
        "state",
    )
    list_filter = ("record_type", "action", "is_enabled")
    list_select_related = ("tenant",)
    list_per_page = 50
    search_fields = ("record_type", "tenant__slug")
    actions = None
    readonly_fields = ("would_archive",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ArchivalPolicy]:
        """The reader's tenants, and the defaults, which hold for them too."""
        tenants = page.tenants(request)
        if tenants is None:
            return super().get_queryset(request)
        return ArchivalPolicy.objects.filter(
            Q(tenant_id__in=tenants) | Q(tenant=None)
        ).order_by(*self.get_ordering(request))

    def get_readonly_fields(
        self, request: HttpRequest, obj: ArchivalPolicy | None = None
    ) -> tuple[str, ...]:
        """What a policy is about does not change."""
        return ("type_shown", "of_tenant", *self.readonly_fields) if obj else ()

    def get_fields(
        self, request: HttpRequest, obj: ArchivalPolicy | None = None
    ) -> Any:
        """The preview last; there is none before the first save."""
        rules = ["keep_days", "action", "archive_keep_days", "is_enabled"]
        if obj is None:
            return ["record_type", "tenant", *rules]
        shown = ["type_shown", "of_tenant", *rules]
        # What a default would do counts the rows of everybody.
        everybody = obj.tenant_id is None and page.tenants(request) is not None
        return shown if everybody else [*shown, "would_archive"]

    def formfield_for_dbfield(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Types by the names that operators know."""
        if db_field.name == "record_type":
            choices = [(rows.name, rows.title) for rows in types().values()]
            return forms.ChoiceField(choices=choices)
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def formfield_for_foreignkey(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Only the platform's staff make defaults."""
        if db_field.name == "tenant":
            kwargs["required"] = access.administered(request) is not None
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_delete_permission(
        self, request: HttpRequest, obj: ArchivalPolicy | None = None
    ) -> bool:
        """A default would come back with the next master."""
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or obj.tenant_id is not None)

    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        """Save it, and say at once what it would do."""
        super().save_model(request, obj, form, change)
        if obj.is_enabled:
            messages.info(request, self.would_archive(obj))

    @admin.display(description="Type", ordering="record_type")
    def type_shown(self, obj: ArchivalPolicy) -> str:
        """As operators call it."""
        return title(obj.record_type)

    @admin.display(description="Tenant", ordering="tenant__slug")
    def of_tenant(self, obj: ArchivalPolicy) -> str:
        """The slug, or that it is the default."""
        if obj.tenant is None:
            return "Default, for all without a policy of their own"
        return words.shown(obj.tenant.slug)

    @admin.display(description="State", ordering="is_enabled")
    def state(self, obj: ArchivalPolicy) -> SafeString:
        """A word with its icon."""
        word = ("running", "Enabled") if obj.is_enabled else ("stopped", "Disabled")
        return millrace.status(*word)

    @admin.display(description="Preview")
    def would_archive(self, obj: ArchivalPolicy) -> str:
        """Rows past it at this moment."""
        found = preview(obj, now=clock.now())
        if found is None:
            return f"Nothing: this release knows no type “{obj.record_type}”."
        verb = "archive" if obj.action == ArchivalPolicy.Action.ARCHIVE else "delete"
        whose = "" if obj.tenant_id else " of all tenants without a policy of their own"
        return (
            f"Would {verb} now: {found.told()} rows{whose}, those that ended before"
            f" {words.exact(found.before)}."
        )


@admin.register(ArchiveFile)
class ArchiveFileAdmin(ReadOnlyAdmin, OwnTenants):
    """Files, newest first. Nobody edits them; what can be done stands on each one's page."""

    empty_says = "The Record Archival Handler writes the first file once rows are older than an enabled policy keeps them."  # admin/change_list.html

    list_display = ("what", "tenant", "span", "counted", "size", "written", "state")
    list_filter = ("record_type", "created_at")
    list_per_page = 50
    search_fields = ("path", "tenant", "first_id", "last_id")
    change_form_template = "archival/file.html"
    actions = ("verify_selected",)
    fields = (
        "path",
        "tenant",
        "type_shown",
        "span",
        "counted",
        "size",
        "first_id",
        "last_id",
        "sha256_raw",
        "sha256_file",
        "written",
        "state",
    )
    readonly_fields = ("type_shown", "span", "counted", "size", "written", "state")

    def get_urls(self) -> list[URLPattern]:
        """The verbs beside the stock pages."""
        verbs = {
            "verify": (self.verify, page.DOES),
            "download": (self.download, page.READS),
            "restore": (self.restore, page.ASKS),
        }
        return [
            *(
                self._address(verb, view, methods)
                for verb, (view, methods) in verbs.items()
            ),
            *super().get_urls(),
        ]

    def _address(self, verb: str, view: Any, methods: tuple[str, ...]) -> URLPattern:
        needs = page.needs(VIEW, f"archival.{verb}_archivefile", methods=methods)
        return path(
            f"<int:pk>/{verb}/",
            self.admin_site.admin_view(needs(view)),
            name=f"archival_archivefile_{verb}",
        )

    def verify(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Read it again and say what came of it."""
        file = self._file(request, pk, verb="verify")
        verdict = verify(file, now=clock.now())
        level = messages.ERROR if verdict.bad else messages.SUCCESS
        messages.add_message(request, level, f"{verdict.path}: {verdict.text}.")
        return redirect("admin:archival_archivefile_change", pk)

    def download(self, request: HttpRequest, pk: int) -> FileResponse:
        """The file as it lies there."""
        file = self._file(request, pk, verb="download")
        try:
            content = store.opened(file.path)
        except ArchiveError as problem:
            raise Http404(str(problem)) from None
        response = FileResponse(
            content,
            as_attachment=True,
            filename=file.path.rpartition("/")[2],
            content_type="application/gzip",
        )
        response["X-Content-Type-Options"] = "nosniff"
        return response

    def restore(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Say what will happen and ask why; then put the rows back."""
        file = self._file(request, pk, verb="restore")
        error = ""
        if request.method == "POST":
            try:
                done = restore.into_table(
                    file,
                    who=request.user.get_username(),
                    origin="admin",
                    why=request.POST.get("why", "")[:1000].replace("\x00", ""),
                    now=clock.now(),
                )
            except ArchiveError as problem:
                error = str(problem)
            else:
                text = f"{done.inserted:,} of {done.rows:,} rows are back in the table, the others were there."
                messages.success(request, text)
                return redirect("admin:archival_archivefile_changelist")
        return page.render(
            request,
            "archival/restore.html",
            title="Restore into the table",
            lead=file.path,
            group=GROUP,
            crumbs=(
                ("Archive files", reverse("admin:archival_archivefile_changelist")),
                (
                    file.path.rpartition("/")[2],
                    reverse("admin:archival_archivefile_change", args=[pk]),
                ),
            ),
            file=file,
            what=title(file.record_type),
            error=error,
        )

    @admin.action(description="Verify the selected files", permissions=["verify"])
    def verify_selected(
        self, request: HttpRequest, queryset: QuerySet[ArchiveFile]
    ) -> None:
        """One sentence for all, one more for each that is not whole."""
        mine = [file for file in queryset if _may(request, "verify", file)]
        verdicts, until = [], clock.steady() + VERIFY_SECONDS
        for file in mine:
            verdicts.append(verify(file, now=clock.now()))
            if clock.steady() >= until:
                break
        whole = sum(verdict.word == "ok" for verdict in verdicts)
        messages.success(request, f"{whole} of {len(verdicts)} files are whole.")
        for verdict in verdicts:
            if verdict.bad:
                messages.error(request, f"{verdict.path}: {verdict.text}.")
        if left := len(mine) - len(verdicts):
            was = "was" if left == 1 else "were"
            text = f"{left:,} of the {len(mine):,} selected files {was} not read, for want of time: manage.py archive verify reads all."
            messages.warning(request, text)

    def has_verify_permission(self, request: HttpRequest) -> bool:
        """For the action."""
        return access.may_somewhere(request, "archival.verify_archivefile")

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Which verbs the page offers."""
        verbs = ("verify", "download", "restore")
        file = context["original"]
        context["may"] = {verb: _may(request, verb, file) for verb in verbs}
        context["group"] = GROUP
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description="Type", ordering="record_type")
    def type_shown(self, obj: ArchiveFile) -> str:
        """As operators call it."""
        return title(obj.record_type)

    @admin.display(description="File", ordering="path")
    def what(self, obj: ArchiveFile) -> str:
        """'Events, September 2026': its name is long, and says no more."""
        return f"{title(obj.record_type)}, {localtime(obj.min_at, UTC):%B %Y}"

    @admin.display(description="Rows ended", ordering="min_at")
    def span(self, obj: ArchiveFile) -> SafeString:
        """From the oldest row to the youngest."""
        first, last = _when(obj.min_at), _when(obj.max_at)
        return format_html("{} to {}", first, last)

    @admin.display(description="Written", ordering="created_at")
    def written(self, obj: ArchiveFile) -> str:
        """When it was registered, and its rows left the table."""
        return _when(obj.created_at)

    @admin.display(description="Size", ordering="bytes")
    def size(self, obj: ArchiveFile) -> str:
        """'211 B', '1.2 MB'."""
        return size(obj.bytes)

    @admin.display(description="Rows", ordering="rows")
    def counted(self, obj: ArchiveFile) -> str:
        """With its thousands told apart."""
        return words.number(obj.rows)

    @admin.display(description="State")
    def state(self, obj: ArchiveFile) -> SafeString:
        """Whether it is there, and when it was last found whole."""
        if obj.deleted_at:
            return millrace.status("stopped", f"Removed {_day(obj.deleted_at)}")
        if obj.restored_at:
            return millrace.status("running", f"Restored {_day(obj.restored_at)}")
        if obj.verified_at:
            return millrace.status("succeeded", f"Whole on {_day(obj.verified_at)}")
        return millrace.status("standby", "Written")

    def _file(self, request: HttpRequest, pk: int, *, verb: str) -> ArchiveFile:
        file: ArchiveFile = get_object_or_404(self.get_queryset(request), pk=pk)
        if not _may(request, verb, file):
            raise PermissionDenied
        return file


def size(number: int) -> str:
    """A number of bytes in the largest unit that leaves one digit before the point."""
    value, units = float(number), ["B", "kB", "MB", "GB"]
    while value >= 1000 and len(units) > 1:
        value, units = value / 1000, units[1:]
    digits = 0 if units[0] == "B" or value >= 100 else 1
    return f"{value:.{digits}f}{words.SPACE}{units[0]}"


def _day(moment: datetime) -> str:
    return f"{localtime(moment):%-d %b %Y}"


def _when(moment: datetime) -> str:
    return millrace.when({"now": clock.now()}, moment)


def _may(request: HttpRequest, verb: str, file: ArchiveFile) -> bool:
    return access.may(request, f"archival.{verb}_archivefile", file.tenant_id)
