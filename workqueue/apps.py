from django.apps import AppConfig


class WorkqueueConfig(AppConfig):
    name = "workqueue"
    verbose_name = "Queue"
    default_auto_field = "django.db.models.BigAutoField"
