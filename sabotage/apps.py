"""The Django application."""

from django.apps import AppConfig


class SabotageConfig(AppConfig):
    """The attacks and the table of what they found."""

    name = "sabotage"
    default_auto_field = "django.db.models.BigAutoField"
