"""Celery tasks of the invoices: each calls the function that does the work."""

from celery import shared_task

from engine.worker import drive as driving
from pipeline.after_payment import far_side


@shared_task(name=far_side.LOOK)  # type: ignore[untyped-decorator]
def look(run_id: str) -> None:
    """Record what became of a run's payment, and go on with a run that waited for it."""
    far_side.record_changes(run_id)
    if driving.owes(run_id):
        driving.take_turns()
