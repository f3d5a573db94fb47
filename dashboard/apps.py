"""The Django application: connects the broadcast when it is loaded."""

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    """The pages, and the signal that makes them live."""

    name = "dashboard"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from dashboard.web import broadcast

        broadcast.connect()
