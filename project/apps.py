from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig as StockAdminConfig


class ProjectConfig(AppConfig):
    name = "project"


class AdminConfig(StockAdminConfig):
    default_site = "project.admin_site.MillraceAdminSite"
