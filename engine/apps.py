"""The Django application of the engine. Its label is of before it was one: tables keep theirs."""

from django.apps import AppConfig


class EngineConfig(AppConfig):
    """The tables of every run."""

    name = "engine"
    label = "pipeline"
    default_auto_field = "django.db.models.BigAutoField"
