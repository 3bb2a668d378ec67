from django.apps import AppConfig
from django.core.checks import register


class SchedulerConfig(AppConfig):
    name = "scheduler"
    verbose_name = "Scheduler"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks. Starts nothing: no loop begins at import."""
        from scheduler import checks

        register(checks.check_timetable)
        register(checks.check_bootstrap)
