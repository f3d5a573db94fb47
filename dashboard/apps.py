"""The Django application: connects the broadcast when it is loaded, and knows the gate's codes."""

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    """The pages, and the signal that makes them live."""

    name = "dashboard"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from dashboard.web import broadcast
        from gate import replies
        from pipeline.steps import reasons

        broadcast.connect()
        reasons.add(replies.REASONS)
