"""The job worker's pages. Every address is named here."""

from django.urls import path

from audit.views import downloads, removes, saves
from jobworker.views import act, connections, job, job_worker, jobs, new

urlpatterns = [
    path("job-worker/", job_worker.job_worker, name="job_worker"),
    path("connections/", connections.connections, name="connections"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/new/", new.choose, name="job_new"),
    path("jobs/new/<slug:type>/", new.submit, name="job_submit"),
    path("jobs/export/<slug:form>/", downloads(jobs.JOBS), name="jobs_export"),
    path("jobs/views/", saves(jobs.JOBS), name="jobs_save_view"),
    path(
        "jobs/views/<int:view_id>/remove/",
        removes(jobs.JOBS),
        name="jobs_remove_view",
    ),
    path("jobs/<uuid:job_id>/", job.job, name="job"),
    path("jobs/<uuid:job_id>/cancel/", act.cancel, name="job_cancel"),
    path("jobs/<uuid:job_id>/adopt/", act.adopt, name="job_adopt"),
    path("jobs/<uuid:job_id>/lines/", job.lines, name="job_lines"),
    path("jobs/<uuid:job_id>/transcript/", job.download, name="job_transcript"),
]
