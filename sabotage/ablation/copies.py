"""Requests an attack on a copy, carries it out in a worker, and stores the outcome."""

from collections.abc import Callable, Mapping
from typing import Any

from celery import current_app
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

from pipeline.clock import now_ms
from pipeline.signals import announce
from pipeline.vault import secret_store
from sabotage.ablation.copy_process import SECONDS_MAX, CopyError, run_copy
from sabotage.ablation.guards import Claim, claim_of
from sabotage.injectors import INJECTORS
from sabotage.kit.injector import Value
from sabotage.models import Attack

TASK = "sabotage.tasks.attack_copy"
ASKED, RUNNING, DONE, FAILED = "asked", "running", "done", "failed"
KEPT = ("verdict", "rule", "integrity", "got_through", "without", "changes")
KEPT_EVIDENCE = ("headline", "after", "end", "breaches", "payments", "far_side", "paid")
LOST_MS = int(SECONDS_MAX * 1000) + 30_000  # the worker that made it has died
ERASED = "The text of this attack was erased, so it cannot be repeated. Fire a new one."
NO_WORDS = "The run had ended, so this attack's text was not stored. Fire it at a run in progress."
NO_QUEUE = "A copy needs the queue server. Start the whole app."
AWAY = "The queue does not answer. Try again in a moment."
NO_CLAIM = "No single check stops this form of the attack. The attack's page says why."


def claim_on(attack: Attack) -> Claim | None:
    """The claim that this attack is aimed at; None where no guard is laid down for its form."""
    return claim_of(attack.injector, attack.params)


def under_way(kept: dict[str, Any]) -> bool:
    """Whether a copy was requested, and a worker may still be making it."""
    return kept.get("state") in (ASKED, RUNNING) and now_ms() - int(kept["at_ms"]) < LOST_MS


def ask(attack: Attack) -> None:
    """Have a worker make the attack on a copy; nothing, where that is under way.

    Raises:
        CopyError: it cannot be made; the text says why and what to do.
    """
    if claim_on(attack) is None:
        raise CopyError(NO_CLAIM)
    _values(attack)  # what was erased is said now
    if not settings.REDIS_URL:
        raise CopyError(NO_QUEUE)
    if not _moved(attack, ASKED, unless=under_way):
        return
    try:
        current_app.send_task(TASK, args=[str(attack.id)], retry=False)
    except OperationalError as error:
        _keep(attack, FAILED, why=AWAY)
        raise CopyError(AWAY) from error


def carry_out(attack_id: str) -> None:
    """Make the attack that was asked for on a copy, and keep its outcome. A repeat does nothing."""
    attack = Attack.objects.get(id=attack_id)
    claim = claim_on(attack)
    if claim is None or not _moved(attack, RUNNING, unless=lambda kept: kept.get("state") != ASKED):
        return
    try:
        outcome = run_copy(claim, _values(attack))
    except CopyError as error:
        _keep(attack, FAILED, why=str(error))
    else:
        _keep(attack, DONE, outcome=_shortened(outcome))
    announce(attack.run)


def _shortened(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a copy's outcome: its verdict, and the evidence of what got out."""
    told, said = {name: outcome[name] for name in KEPT}, outcome["evidence"]
    return {**told, "evidence": {name: said[name] for name in KEPT_EVIDENCE if name in said}}


def _values(attack: Attack) -> dict[str, Value]:
    """The attack's parameters, its free text from the vault."""
    values = dict(attack.params)
    for param in INJECTORS[attack.injector].params if attack.injector in INJECTORS else ():
        if param.kind != "text":
            continue
        if not attack.proposal_ref:
            raise CopyError(NO_WORDS)
        values[param.name] = secret_store.read(attack.proposal_ref)
        if values[param.name] == secret_store.TOMBSTONE:
            raise CopyError(ERASED)
    return values


def _moved(attack: Attack, state: str, *, unless: Callable[[dict[str, Any]], bool]) -> bool:
    """Whether this call moved the request into the state, and no other process did."""
    with transaction.atomic():
        row = Attack.objects.select_for_update().get(id=attack.id)
        if unless(row.unguarded):
            return False
        _keep(row, state)
    return True


def _keep(attack: Attack, state: str, **said: object) -> None:
    kept = {"state": state, "at_ms": now_ms(), **said}
    Attack.objects.filter(id=attack.id).update(unguarded=kept)
