"""connections: what all processes together may open, against what the server allows."""

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from audit import page
from jobworker import connection_budget


@page.needs("workqueue.view_node", "workqueue.view_setting", platform=True)
def connections(request: HttpRequest) -> HttpResponse:
    """The page."""
    found = connection_budget.look()
    return page.render(
        request,
        "jobworker/connections.html",
        title="Connection budget",
        group="Global Settings",
        lead="Every process has a pool of its own. What all of them may open must fit into what the database serves.",
        crumbs=(("Job Worker", reverse("admin:job_worker")),),
        live=True,
        budget=found,
    )
