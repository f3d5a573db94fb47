"""The Django application of the invoices: their tables, and the application that it installs."""

from django.apps import AppConfig


class InvoicesConfig(AppConfig):
    name = "pipeline"
    label = "invoices"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from engine.application import install
        from pipeline.application import INVOICES

        install(INVOICES)
