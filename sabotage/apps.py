"""The Django application: fires planned attacks when a commit brings their run to its step."""

from django.apps import AppConfig


class SabotageConfig(AppConfig):
    """The attacks and the table of what they found."""

    name = "sabotage"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from engine.signals import run_changed

        run_changed.connect(_on_run_changed)


def _on_run_changed(*, run_id: str) -> None:
    from sabotage.planned import plans  # at the first commit: starting Django imports no attack

    plans.on_commit(run_id)
