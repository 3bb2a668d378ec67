from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig as StockAdminConfig


class ProjectConfig(AppConfig):
    name = "project"

    def ready(self) -> None:
        """Register the checks."""
        from project import checks, protections  # noqa: F401


class AdminConfig(StockAdminConfig):
    default_site = "project.admin_site.MillraceAdminSite"
