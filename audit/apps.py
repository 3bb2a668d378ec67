from django.apps import AppConfig
from django.db.backends.signals import connection_created


class AuditConfig(AppConfig):
    name = "audit"
    verbose_name = "Audit"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Give SQLite the two functions that PostgreSQL's statements use."""
        from audit import clock

        connection_created.connect(clock.register_functions)
