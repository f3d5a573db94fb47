"""The Django application: hears of commits once it is loaded, for planned attacks."""

from django.apps import AppConfig


class SabotageConfig(AppConfig):
    """The attacks and the table of what they found."""

    name = "sabotage"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from sabotage.planned import plans

        plans.connect()
