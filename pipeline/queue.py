"""Waking a run: one queue message, whose loss the sweep makes good."""

import logging

from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

from pipeline import sql
from pipeline.models import Run

log = logging.getLogger(__name__)

DRIVE = "pipeline.tasks.drive"
_PROGRAM = "SELECT program_hash FROM pipeline_run WHERE id = %s"


def wake(run_id: str, in_ms: int = 0) -> None:
    """Queue a message that makes a worker drive this run: its id and its program's hash.

    Without a queue (a command that drives runs itself) nothing is sent. Where the queue does
    not answer, the run waits for the sweep.
    """
    if not settings.REDIS_URL:
        return
    program = program_of(run_id)
    try:
        current_app.send_task(
            DRIVE, args=[str(run_id), program], countdown=in_ms / 1000, retry=False
        )
    except OperationalError:
        log.warning("the queue does not answer; the sweep will find run %s", run_id)


def program_of(run_id: str) -> str:
    """The hash of the program that a run goes by, as its row has it.

    Raises:
        Run.DoesNotExist: where there is no such run.
    """
    for (program,) in sql.execute(_PROGRAM, (sql.key_of(str(run_id)),)):
        return str(program)
    raise Run.DoesNotExist(f"There is no run {run_id}.")
