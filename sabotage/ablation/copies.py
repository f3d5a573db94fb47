"""Requests an attack on a copy, carries it out in a worker, and stores the outcome."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from celery import current_app
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

import samples
from engine.clock import now_ms
from engine.signals import announce
from engine.vault import secret_store
from nanovm_core.errors import VerificationError
from pipeline.steps.propose import model_adapters
from sabotage.ablation import copy_queue
from sabotage.ablation.copy_process import BusyError, CopyError, run_copy
from sabotage.ablation.copy_queue import ASKED, DONE, FAILED, under_way
from sabotage.ablation.guards import Claim, claim_of
from sabotage.injectors import INJECTORS
from sabotage.kit.injector import Value
from sabotage.models import Attack

TASK = "sabotage.tasks.attack_copy"
KEPT = ("verdict", "rule", "integrity", "got_through", "without", "changes")
KEPT_EVIDENCE = ("headline", "after", "end", "breaches", "payments", "far_side", "paid")
RESEND_MS = 30_000  # a message that was not taken for so long, while no copy is made, was lost
# The attack of the demo's story: what a fooled model answers to our own poisoned sample.
STORY = {
    "proposal": model_adapters.gullible({"notes": "\n".join(samples.HIDDEN)}, b"").decode(),
    "by": "gullible",
}
# Of each shipped form, a copy that was breached, made by this process: a later one may run other
# code. Nothing of it depends on whose attack it was made for.
_made: dict[str, dict[str, Any]] = {}
ERASED = "The text of this attack was erased, so it cannot be repeated. Fire a new one."
NO_WORDS = "The run had ended, so this attack's text was not stored. Fire it at a run in progress."
NO_QUEUE = "A copy needs the queue server. Start the whole app."
FULL = "{copies} copies are made before it, the most that wait. Try again in {seconds} s."
AWAY = "The queue does not answer. Try again in a moment."
NO_CLAIM = "No single check stops this form of the attack. The attack's page says why."


def prepare(attack: Attack) -> None:
    """Ask for the copy of an attack in its shipped form before anybody does, where one can be."""
    if settings.NANOVM_COPIES_AHEAD and not attack.unguarded:
        with suppress(CopyError):
            if _shipped(attack, _subject(attack)[1]):
                ask(attack, ahead=True)


def ask(attack: Attack, *, ahead: bool = False) -> None:
    """Have a worker make the attack on a copy; nothing, where that is under way.

    A copy that is made ``ahead`` of any click waits for those that were clicked for.

    Raises:
        CopyError: it cannot be made; the text says why and what to do.
    """
    _subject(attack)  # what was erased is said now
    if not settings.REDIS_URL:
        raise CopyError(NO_QUEUE)
    with transaction.atomic():
        row = Attack.objects.select_for_update().get(id=attack.id)
        if under_way(row.unguarded):
            return
        if place := copy_queue.full():
            raise CopyError(FULL.format(copies=place.before, seconds=place.wait_s))
        _keep(row, ASKED, ahead=ahead, again=row.unguarded.get("state") == DONE)
    try:
        _send(attack.id)
    except OperationalError as error:
        _keep(attack, FAILED, why=AWAY)
        raise CopyError(AWAY) from error


def carry_out(attack_id: str) -> None:
    """Make the attack that was asked for on a copy, and keep its outcome. A repeat does nothing.

    While another copy is made it stays asked for, and is sent again when that one ends.
    """
    attack = Attack.objects.get(id=attack_id)
    if attack.unguarded.get("state") == ASKED:
        try:
            _keep(attack, DONE, **_copied(attack))
        except BusyError:
            return
        except (CopyError, VerificationError) as error:
            _keep(attack, FAILED, why=str(error))
        announce(attack.run)
    _tell_waiting()
    _send_next()


def resend() -> None:
    """Send a message again that was lost with the queue server."""
    found = copy_queue.waiting()
    made = [kept for _, kept in found if "begun_ms" in kept]
    if found and not made and now_ms() - int(found[0][1]["at_ms"]) >= RESEND_MS:
        _send_next()


def _copied(attack: Attack) -> dict[str, Any]:
    """What came of a new copy; of an equal one that was made, unless it was asked for again."""
    claim, values = _subject(attack)
    form = _shipped(attack, values)
    if form in _made and not attack.unguarded.get("again"):
        return _made[form]
    began_ms = now_ms()

    def begun() -> None:
        nonlocal began_ms
        began_ms = now_ms()
        _keep(attack, ASKED, **{**attack.unguarded, "begun_ms": began_ms})

    outcome = _shortened(run_copy(claim, values, begun=begun))
    if form and outcome["got_through"]:
        _made[form] = {"outcome": outcome, "made_ms": now_ms()}
    return {"outcome": outcome, "took_ms": now_ms() - began_ms}


def _shipped(attack: Attack, values: Mapping[str, Value]) -> str:
    """The name of a form of ours; empty where anything in it is a visitor's own."""
    params = INJECTORS[attack.injector].params if attack.injector in INJECTORS else ()
    if params and values == {param.name: param.default for param in params}:
        return attack.injector
    return "story" if values == STORY else ""


def _send_next() -> None:
    """Send the first of those that wait."""
    with suppress(OperationalError):  # it is sent again
        for attack_id, _ in copy_queue.waiting()[:1]:
            _send(attack_id)


def _tell_waiting() -> None:
    """Have the pages of those that wait show their new place."""
    ids = [attack_id for attack_id, _ in copy_queue.waiting()]
    for attack in Attack.objects.filter(id__in=ids).select_related("run"):
        announce(attack.run)


def _send(attack_id: UUID) -> None:
    current_app.send_task(TASK, args=[str(attack_id)], retry=False)


def _shortened(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a copy's outcome: its verdict, and the evidence of what got out."""
    told, said = {name: outcome[name] for name in KEPT}, outcome["evidence"]
    return {**told, "evidence": {name: said[name] for name in KEPT_EVIDENCE if name in said}}


def _subject(attack: Attack) -> tuple[Claim, dict[str, Value]]:
    """The attack's claim and its parameters, its free text from the vault."""
    claim, values = claim_of(attack.injector, attack.params), dict(attack.params)
    if claim is None:
        raise CopyError(NO_CLAIM)
    for param in INJECTORS[attack.injector].params if attack.injector in INJECTORS else ():
        if param.kind != "text":
            continue
        if not attack.proposal_ref:
            raise CopyError(NO_WORDS)
        values[param.name] = secret_store.text(attack.proposal_ref)
        if values[param.name] == secret_store.TOMBSTONE:
            raise CopyError(ERASED)
    return claim, values


def _keep(attack: Attack, state: str, /, **said: object) -> None:
    kept = {"at_ms": now_ms(), **said, "state": state}
    Attack.objects.filter(id=attack.id).update(unguarded=kept)
