from django.apps import AppConfig
from django.db.backends.signals import connection_created


class AuditConfig(AppConfig):
    name = "audit"
    verbose_name = "Audit"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Give SQLite the functions of PostgreSQL's statements; mask what settings keep secret."""
        from audit import clock, secret

        connection_created.connect(clock.register_functions)
        secret.register_settings()
