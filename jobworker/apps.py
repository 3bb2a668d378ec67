from django.apps import AppConfig


class JobworkerConfig(AppConfig):
    name = "jobworker"
    verbose_name = "Deployments"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks and the invariants. Nothing is started: no thread, no connection."""
        from jobworker import checks  # noqa: F401
        from jobworker.invariants import RULES
        from jobworker.leaving import keeps
        from workqueue import invariants, tenancy

        invariants.add(RULES)
        tenancy.keep_while(keeps)
