"""Waking a run: one queue message, whose loss the sweep makes good."""

import logging

from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

from pipeline.models import Run

log = logging.getLogger(__name__)

DRIVE = "pipeline.tasks.drive"


def wake(run_id: str, in_ms: int = 0) -> None:
    """Queue a message that makes a worker drive this run: its id and its program's hash.

    Without a queue (a command that drives runs itself) nothing is sent. Where the queue does
    not answer, the run waits for the sweep.
    """
    if not settings.REDIS_URL:
        return
    program = Run.objects.values_list("program_hash", flat=True).get(id=run_id)
    try:
        current_app.send_task(
            DRIVE, args=[str(run_id), program], countdown=in_ms / 1000, retry=False
        )
    except OperationalError:
        log.warning("the queue does not answer; the sweep will find run %s", run_id)
