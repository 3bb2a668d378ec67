from django.apps import AppConfig


class InstanceConfig(AppConfig):
    name = "scheduler.handlers.instance"
    label = "instance"
    verbose_name = "Instance"
    default_auto_field = "django.db.models.BigAutoField"
