"""The Django application, which installs the refund desk."""

from django.apps import AppConfig


class RefundDeskConfig(AppConfig):
    """It has no tables."""

    name = "tests.engine.refund_desk"
    label = "refund_desk"

    def ready(self) -> None:
        """Install the application."""
        from engine.application import install
        from tests.engine.refund_desk.application import RefundDesk

        install(RefundDesk())
