from django.apps import AppConfig


class JobworkerConfig(AppConfig):
    name = "jobworker"
    verbose_name = "Deployments"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks. Nothing is started: no thread, no connection."""
        from jobworker import checks  # noqa: F401
