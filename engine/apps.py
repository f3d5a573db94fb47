"""The Django application of the engine; its old label keeps the names of its tables."""

from django.apps import AppConfig


class EngineConfig(AppConfig):
    """The tables of every run."""

    name = "engine"
    label = "pipeline"
    default_auto_field = "django.db.models.BigAutoField"
