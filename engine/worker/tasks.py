"""Celery tasks: each calls the function that does the work."""

import logging
import threading
from collections import Counter
from itertools import count

from celery import Task, shared_task
from celery.signals import worker_ready
from django.conf import settings
from django.db.models import Q
from kombu.exceptions import OperationalError

from engine.application import installed
from engine.clock import now_ms, sleep_ms
from engine.models import Run
from engine.ops import log_files
from engine.privacy import expiry
from engine.privacy.crypto_shred import destroy_orphans
from engine.runtime import agents, api, queue, step_times
from engine.runtime.queue import call_worker, place_of, wake
from engine.store import actors, leases
from engine.worker import alerts
from engine.worker import drive as driving
from engine.worker.messages import of_known
from nanovm_core.core.events import DeliveryReceived
from nanovm_core.core.lifecycle import ACTIVE, WAITING

log = logging.getLogger(__name__)

SWEEP_EVERY_MS = 2_000
TIDY_TURNS = 1_800  # of sweeps: an hour
SWEEP_AFTER_MS = 3_000  # an effect that is owed for longer, and due, is swept up
UNKNOWN = -1  # the length of a run, in a message that does not say it


@shared_task(name=queue.DRIVE)  # type: ignore[untyped-decorator]
def drive(run_id: str, program: str, length: int = UNKNOWN) -> None:
    """Answer for the run that a message names; then drive whichever run's turn it is."""
    is_answered = True
    with of_known(Run):
        is_answered = dismissed(run_id, program, length)
    driving.take_turns("" if is_answered else run_id)


@shared_task(name=queue.TURN)  # type: ignore[untyped-decorator]
def turn() -> None:
    """Drive whichever run's turn it is."""
    driving.take_turns()


@shared_task(name=queue.SWEEP)  # type: ignore[untyped-decorator]
def sweep() -> None:
    """Wake the runs that no worker drives although something is due; the applications look too."""
    found = Counter[str]()
    for run_id in stranded():
        if not driving.owes(run_id):  # its row does not name it: the kernel puts it back
            wake(run_id)
        found[queue.of_tool(place_of(run_id).tool)] += 1
    for to, runs in found.items():
        for _ in range(min(runs, settings.NANOVM_WORKER_THREADS)):
            call_worker(to)
    agents.go_on()
    for each in installed():
        each.sweep()
    alerts.tell()


@shared_task(name=queue.TIDY)  # type: ignore[untyped-decorator]
def tidy() -> None:
    """Delete secrets and files of runs that were never stored, and old data."""
    destroy_orphans()
    expiry.erase_unused()
    for each in installed():
        each.tidy()


def deliver(run_id: str, program: str) -> None:
    """Handle one message where there is no queue: it drives the run that it names, and no other."""
    if not dismissed(run_id, program):
        driving.drive(run_id)


def dismissed(run_id: str, program: str, length: int = UNKNOWN) -> bool:
    """Let the kernel refuse or absorb a message by which nothing is to be driven.

    ``program`` is the hash that the sender believes the run has. ``length``: that of the run when
    it was sent; a run that went on since had its turn by another message, and this is no
    duplicate: it is counted, and not sealed.
    """
    now = place_of(run_id)
    if program == now.program and driving.owes(run_id):
        return False
    if program == now.program and UNKNOWN < length < now.length:
        leases.absorb(run_id)
    else:
        api.submit(run_id, [DeliveryReceived(program=program)], actor="queue")
    return True


def stranded() -> list[str]:
    """The running runs that no worker drives, though one has to.

    An effect has been due for a while, its row does not name it, what is under way is to be asked
    after, or a deadline has passed: that of an effect or a wait, or of a pause before the next
    attempt.
    """
    at_ms = now_ms()
    due = Q(owed_ms__lt=at_ms - SWEEP_AFTER_MS, due_ms__lte=at_ms)
    owing = Q(due | Q(owed_key="") | Q(due_ms=None), state=ACTIVE) | Q(due, state=WAITING)
    found = Run.objects.filter(owing | Q(deadline_ms__lte=at_ms), ended_ms=None)
    found = found.filter(workspace__successor=None)  # a restore closes a log for good
    free = found.exclude(until_ms__gt=at_ms)
    return sorted(str(run_id) for run_id in free.values_list("id", flat=True))


@worker_ready.connect  # type: ignore[untyped-decorator]
def begin(**_signal: object) -> None:
    """Prepare the applications and take turns; the main agent's worker has the sweeps made.

    An application with slow tools is prepared where these are used. A sweep is queued every
    SWEEP_EVERY_MS until the worker ends.
    """
    step_times.put_off()
    for each in installed():
        if not each.slow_tools or any(map(actors.is_own, each.slow_tools)):
            each.worker_started()
    for _ in range(settings.NANOVM_WORKER_THREADS):
        call_worker()  # its predecessor may have left runs behind
    if settings.NANOVM_AGENT not in ("", actors.main()):
        return
    _ask_for(tidy)
    _ask_for(sweep)
    threading.Thread(target=_sweep_forever, name="sweep", daemon=True).start()


def _sweep_forever() -> None:
    for turn in count(1):
        sleep_ms(SWEEP_EVERY_MS)
        if turn % TIDY_TURNS == 0:
            _ask_for(tidy)
        try:  # here, not as a task: the queue may be what fills them
            log_files.rotate(settings.NANOVM_DATA / "logs")
        except OSError as error:
            log.warning("the log files cannot be rotated: %s", error.strerror)
        _ask_for(sweep)


def _ask_for(task: Task) -> None:
    try:
        task.apply_async(expires=SWEEP_EVERY_MS / 1000, retry=False)
    except OperationalError:
        log.warning("the queue does not answer; the next sweep is tried as usual")
