"""The Django application of the gate, which installs the operator's programs."""

from django.apps import AppConfig


class GateConfig(AppConfig):
    name = "gate"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.conf import settings

        from gate.application import SHIPPED, install_from

        for folder in filter(None, (SHIPPED, settings.NANOVM_GATE)):
            install_from(folder)
