from django.apps import AppConfig


class DeploymentsConfig(AppConfig):
    name = "scheduler.handlers.deployments"
    label = "deployments"
    verbose_name = "Deployments"
    default_auto_field = "django.db.models.BigAutoField"
