from django.apps import AppConfig


class ArchivalConfig(AppConfig):
    name = "scheduler.handlers.archival"
    label = "archival"
    verbose_name = "Archival"
    default_auto_field = "django.db.models.BigAutoField"
