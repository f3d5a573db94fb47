"""Celery's tasks of the laboratory."""

from celery import shared_task

from sabotage import copies


@shared_task  # type: ignore[untyped-decorator]
def attack_copy(attack_id: str) -> None:
    """Make an attack again on a throw-away copy without its guards."""
    copies.carry_out(attack_id)
