from django.apps import AppConfig


class WorkqueueConfig(AppConfig):
    name = "workqueue"
    verbose_name = "Queue"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks. Nothing is started: no thread, no connection."""
        from workqueue import checks  # noqa: F401
