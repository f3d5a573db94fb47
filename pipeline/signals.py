"""What the pipeline tells whoever listens: ids, never values."""

import logging

from django.dispatch import Signal

from pipeline.models import Run

log = logging.getLogger(__name__)

# Sent after the commit, with run_id: str, workspace_id: str and length: int (envelopes so far).
run_changed = Signal()


def announce(run: Run) -> None:
    """Say that a run changed. A listener that fails is logged: the commit stands."""
    if not run_changed.receivers:
        return
    answers = run_changed.send_robust(
        sender=Run, run_id=str(run.id), workspace_id=str(run.workspace_id), length=run.length
    )
    for listener, answer in answers:
        if isinstance(answer, Exception):
            log.error("%r failed: %s", listener, type(answer).__name__)
