"""The addresses. What a mode does not serve does not exist there."""

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, path
from django.views.generic import RedirectView

from project.modes import MODES

urlpatterns: list[URLPattern | URLResolver] = []
if MODES[settings.FALCON_MODE].admin:
    urlpatterns = [
        path("", RedirectView.as_view(pattern_name="admin:index")),
        path("admin/", admin.site.urls),
    ]

# Pages for what went wrong.
handler400 = "project.errors.bad_request"
handler403 = "project.errors.forbidden"
handler404 = "project.errors.not_found"
handler500 = "project.errors.failed"
