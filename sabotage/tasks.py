"""Celery tasks: attacks on copies, and planned attacks."""

import logging
import threading
from itertools import count

from celery import shared_task
from celery.signals import worker_ready
from kombu.exceptions import OperationalError

from engine.clock import sleep_ms
from engine.worker.messages import of_known
from sabotage.ablation import copies
from sabotage.models import Attack
from sabotage.planned import plans

log = logging.getLogger(__name__)

SWEEP_EVERY_MS = 2_000
RESEND_TURNS = 15  # of sweeps: half a minute


@shared_task  # type: ignore[untyped-decorator]
def attack_copy(attack_id: str) -> None:
    """Make an attack again on a copy without its guards."""
    with of_known(Attack):
        copies.carry_out(attack_id)


@shared_task  # type: ignore[untyped-decorator]
def fire_planned(plan_id: str) -> None:
    """Fire a planned attack whose run has reached its step."""
    plans.carry_out(plan_id)


@shared_task  # type: ignore[untyped-decorator]
def sweep_plans() -> None:
    """Find planned attacks that no worker has taken."""
    plans.sweep()


@shared_task  # type: ignore[untyped-decorator]
def resend_copies() -> None:
    """Find copies that were asked for, and that no worker has taken."""
    copies.resend()


@worker_ready.connect  # type: ignore[untyped-decorator]
def start_sweeping(**_signal: object) -> None:
    """Have every worker ask for a sweep now and then, for as long as it lives."""
    threading.Thread(target=_sweep_forever, name="plans", daemon=True).start()


def _sweep_forever() -> None:
    for turn in count():
        sleep_ms(SWEEP_EVERY_MS)
        due = [sweep_plans] if turn % RESEND_TURNS else [sweep_plans, resend_copies]
        try:
            for task in due:
                task.apply_async(expires=SWEEP_EVERY_MS / 1000, retry=False)
        except OperationalError:
            log.warning("the queue does not answer; the next sweep of plans is tried as usual")
