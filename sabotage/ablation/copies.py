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
from nanovm_core.errors import VerificationError
from pipeline.clock import now_ms
from pipeline.signals import announce
from pipeline.steps.propose import model_adapters
from pipeline.vault import secret_store
from sabotage.ablation.copy_process import SECONDS_MAX, BusyError, CopyError, run_copy
from sabotage.ablation.guards import Claim, claim_of
from sabotage.injectors import INJECTORS
from sabotage.kit.injector import Value
from sabotage.models import Attack

TASK = "sabotage.tasks.attack_copy"
ASKED, DONE, FAILED = "asked", "done", "failed"
KEPT = ("verdict", "rule", "integrity", "got_through", "without", "changes")
KEPT_EVIDENCE = ("headline", "after", "end", "breaches", "payments", "far_side", "paid")
LOST_MS = int(SECONDS_MAX * 1000) + 30_000  # the worker that made it has died
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
AWAY = "The queue does not answer. Try again in a moment."
NO_CLAIM = "No single check stops this form of the attack. The attack's page says why."


def claim_on(attack: Attack) -> Claim | None:
    """The claim that this attack is aimed at; None where no guard is laid down for its form."""
    return claim_of(attack.injector, attack.params)


def under_way(kept: Mapping[str, Any]) -> bool:
    """Whether a copy was requested, and a worker may still be making it."""
    return kept.get("state") == ASKED and now_ms() - int(kept["at_ms"]) < LOST_MS


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
    _send_next()


def _copied(attack: Attack) -> dict[str, Any]:
    """What came of a new copy; of an equal one that was made, unless it was asked for again."""
    claim, values = _subject(attack)
    form = _shipped(attack, values)
    if form in _made and not attack.unguarded.get("again"):
        return _made[form]
    outcome = _shortened(run_copy(claim, values))
    if form and outcome["got_through"]:
        _made[form] = {"outcome": outcome, "made_ms": now_ms()}
    return {"outcome": outcome}


def _shipped(attack: Attack, values: Mapping[str, Value]) -> str:
    """The name of a form of ours; empty where anything in it is a visitor's own."""
    params = INJECTORS[attack.injector].params if attack.injector in INJECTORS else ()
    if params and values == {param.name: param.default for param in params}:
        return attack.injector
    return "story" if values == STORY else ""


def _send_next() -> None:
    """Send the oldest of those still asked for; what was pressed for comes first."""
    since_ms = now_ms() - LOST_MS
    waiting = Attack.objects.filter(unguarded__state=ASKED, unguarded__at_ms__gt=since_ms)
    rows = waiting.values_list("unguarded__ahead", "unguarded__at_ms", "id")
    with suppress(OperationalError):  # it is lost then, and says so
        for _, _, attack_id in sorted(rows)[:1]:
            _send(attack_id)


def _send(attack_id: UUID) -> None:
    current_app.send_task(TASK, args=[str(attack_id)], retry=False)


def _shortened(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a copy's outcome: its verdict, and the evidence of what got out."""
    told, said = {name: outcome[name] for name in KEPT}, outcome["evidence"]
    return {**told, "evidence": {name: said[name] for name in KEPT_EVIDENCE if name in said}}


def _subject(attack: Attack) -> tuple[Claim, dict[str, Value]]:
    """The attack's claim and its parameters, its free text from the vault."""
    claim, values = claim_on(attack), dict(attack.params)
    if claim is None:
        raise CopyError(NO_CLAIM)
    for param in INJECTORS[attack.injector].params if attack.injector in INJECTORS else ():
        if param.kind != "text":
            continue
        if not attack.proposal_ref:
            raise CopyError(NO_WORDS)
        values[param.name] = secret_store.read(attack.proposal_ref)
        if values[param.name] == secret_store.TOMBSTONE:
            raise CopyError(ERASED)
    return claim, values


def _keep(attack: Attack, state: str, **said: object) -> None:
    kept = {"state": state, "at_ms": now_ms(), **said}
    Attack.objects.filter(id=attack.id).update(unguarded=kept)
