"""again: ask why, then enqueue the item of one run that ended badly once more."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from audit import page, queries
from workqueue import access, registry, verbs
from workqueue.verbs import REPEAT


@page.needs("audit.view_run", REPEAT.permission, methods=page.ASKS)
def again(request: HttpRequest, claim_id: UUID) -> HttpResponse:
    """One row's form of a retry of all that match."""
    run = queries.run(claim_id, tenants=page.tenants(request))
    if run is None:
        raise Http404
    access.require(request, REPEAT.permission, [run.tenant_id])
    why = " ".join(request.POST.get("why", "").split())
    problem = verbs.reason_problem(why) if request.method == "POST" else ""
    if request.method != "POST" or problem:
        return page.render(
            request,
            "workqueue/again.html",
            title=REPEAT.question.format(what="this run"),
            group="Audit",
            crumbs=(("Scheduler Audit Logs", reverse("admin:runs")),),
            status=400 if problem else 200,
            quiet=True,
            run=run,
            handler_title=registry.title(run.handler),
            consequence=REPEAT.consequence,
            button=REPEAT.button.format(what="this run"),
            keep=REPEAT.keep,
            why=why,
            problem=problem,
        )
    who = request.user.get_username()
    tenants = page.tenants(request)
    [result] = REPEAT.run([claim_id], who=who, origin="admin", why=why, tenants=tenants)
    if result.done:
        messages.success(request, f"Retried: {result.text}.")
    else:
        messages.warning(request, f"Nothing was enqueued: {result.text}.")
    return redirect("admin:run", claim_id)
