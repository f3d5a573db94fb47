"""Planned attacks: made before a run starts, fired once when it reaches a step.

The process that brings the run to the step hears of its own commit (``engine.signals``) and
advances the plan; only one can. A worker then fires it as a button would. The sweep finds plans
that were missed or broke off. A plan's text is sealed until it fires, and destroyed after.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from celery import current_app
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

from engine.clock import now_ms
from engine.entropy import random_bytes, uuid4
from engine.models import Run
from engine.privacy import journal
from engine.signals import announce
from engine.store import sql
from engine.vault.key_store import keystore
from nanovm_core.core import lifecycle as life
from nanovm_core.core import vault
from nanovm_core.errors import VerificationError
from pipeline.application import STEPS
from sabotage.ablation import copies
from sabotage.fire import fire
from sabotage.injectors import INJECTORS
from sabotage.kit.injector import InjectionError, Injector, Value
from sabotage.models import Attack, Plan

log = logging.getLogger(__name__)

TASK = "sabotage.tasks.fire_planned"
PLANNED, DUE, FIRING, FIRED, MISSED = "planned", "due", "firing", "fired", "missed"
PLANS_MAX = 20  # of one run: what its console shows at a glance
RESEND_MS = 5_000  # a message about a plan that was not taken for so long is sent again
LOST_MS = 60_000  # a worker that fires for longer has died: no injector waits for so long
NO_QUEUE = "A planned attack needs the queue server. Start the whole app."
STARTED = "The run has started. An attack can only be planned before that. Fire it now instead."
TOO_MANY = f"A run can have up to {PLANS_MAX} planned attacks. Cancel one first."
ENDED_BEFORE = "The run ended before step {step}."
UNHEARD = "The run ended before the attack at step {step} could be fired."
NO_WORDS = "Its text was destroyed before it could be fired."
DIED = "The worker that fired it stopped halfway. See the run's audit log for what it did."

_LOOK = (
    "SELECT r.state, EXISTS (SELECT 1 FROM sabotage_plan p WHERE p.run_id = r.id AND p.state = %s)"
    " FROM pipeline_run r WHERE r.id = %s"
)
# Runs that have started without a plan get none any more: this process does not ask again, so
# that listening costs a commit nothing.
_planless: set[str] = set()
PLANLESS_MAX = 4_096


def on_commit(run_id: str) -> None:
    """Look for planned attacks after a commit of this run. Without a queue there are none."""
    if run_id not in _planless and settings.REDIS_URL:
        notice(run_id)


def make(run_id: str, name: str, params: Mapping[str, str], step: int) -> Plan:
    """Plan an attack on a run that has not started, for when it reaches this step.

    Raises:
        InjectionError: it cannot be planned so; nothing was stored.
    """
    injector = INJECTORS.get(name)
    if injector is None:
        raise InjectionError(f"There is no injector {name!r}; there are {', '.join(INJECTORS)}.")
    values = injector.read(params)
    if not 1 <= step <= len(STEPS):
        raise InjectionError(f"A step is a number from 1 to {len(STEPS)}.")
    if why_not():
        raise InjectionError(why_not())
    plan = _sealed(run_id, injector, values, step)
    try:
        with transaction.atomic():
            run = Run.objects.select_for_update().get(id=run_id)
            if run.state != life.READY:
                raise InjectionError(STARTED)
            if Plan.objects.filter(run=run).count() >= PLANS_MAX:
                raise InjectionError(TOO_MANY)
            plan.save(force_insert=True)
    except BaseException:
        _destroy_words(plan)
        raise
    announce(run)
    return plan


def why_not() -> str:
    """Why nothing can be planned here at all; empty where it can."""
    return "" if settings.REDIS_URL else NO_QUEUE


def take_back(run_id: str, plan_id: UUID) -> bool:
    """Take a plan back; False where it is on its way already, or is no plan of this run."""
    plan = Plan.objects.filter(run_id=run_id, pk=plan_id).select_related("run").first()
    if plan is None or not Plan.objects.filter(pk=plan_id, state=PLANNED).delete()[0]:
        return False
    _destroy_words(plan)
    announce(plan.run)
    return True


def notice(run_id: str) -> None:
    """Send off the plans for the step that a run has reached, and close those that came too late.

    Many processes may notice at once: each plan is moved by one of them alone.
    """
    for state, is_open in sql.execute(_LOOK, (PLANNED, sql.key_of(run_id))):
        if state != life.READY:
            (_see_to if is_open else _forget)(run_id)


def carry_out(plan_id: str) -> None:
    """Fire a plan that is due. A repeat does nothing."""
    plan = Plan.objects.filter(pk=plan_id).select_related("run").first()
    if plan is None or not _advance(plan, DUE, FIRING):
        return
    run_id, at_step = str(plan.run_id), number_of(plan.run)
    try:
        attack = fire(run_id, plan.injector, _values(plan), key_of(plan))
    except InjectionError as error:
        _close(plan, FIRING, MISSED, why=str(error))
    else:
        _close(plan, FIRING, FIRED, attack=attack, at_step=at_step)
        copies.prepare(attack)
    announce(plan.run)


def sweep() -> None:
    """Find plans whose commit was not heard, whose message was lost, or whose worker died."""
    open_ = Plan.objects.filter(state=PLANNED).exclude(run__state=life.READY)
    for run_id in set(open_.values_list("run_id", flat=True)):
        notice(str(run_id))
    for plan in Plan.objects.filter(state=DUE, changed_ms__lt=now_ms() - RESEND_MS):
        _send(plan)
    lost = Plan.objects.filter(state=FIRING, changed_ms__lt=now_ms() - LOST_MS)
    for plan in lost.select_related("run"):
        _picked_up(plan)
        announce(plan.run)


def number_of(run: Run) -> int:
    """The number of the step that a run is at."""
    return STEPS.index(run.step) + 1 if run.step in STEPS else 1


def key_of(plan: Plan) -> str:
    """The idempotency key under which a plan's attack is fired."""
    return f"plan {plan.pk}"


def _see_to(run_id: str) -> None:
    run = Run.objects.get(id=run_id)
    number = number_of(run)
    ended = run.state in life.TERMINAL
    for plan in Plan.objects.filter(run=run, state=PLANNED).order_by("step", "created_ms"):
        if ended:
            text = ENDED_BEFORE if number < plan.step else UNHEARD
            _close(plan, PLANNED, MISSED, why=text.format(step=plan.step))
        elif plan.step <= number and _advance(plan, PLANNED, DUE):
            _send(plan)


def _forget(run_id: str) -> None:
    if len(_planless) >= PLANLESS_MAX:
        _planless.clear()
    _planless.add(run_id)


def _sealed(run_id: str, injector: Injector, values: Mapping[str, Value], step: int) -> Plan:
    texts = {param.name for param in injector.params if param.kind == "text"}
    at_ms = now_ms()
    plan = Plan(
        id=uuid4(),
        run_id=run_id,
        injector=injector.name,
        params={name: value for name, value in values.items() if name not in texts},
        step=step,
        state=PLANNED,
        created_ms=at_ms,
        changed_ms=at_ms,
    )
    _seal_words(plan, {name: str(values[name]) for name in texts})
    return plan


def _values(plan: Plan) -> dict[str, str]:
    """Every parameter as a form would bring it.

    Raises:
        InjectionError: the words are gone.
    """
    words = _opened_words(plan)
    if words is None:
        raise InjectionError(NO_WORDS)
    return {**{name: str(value) for name, value in plan.params.items()}, **words}


def _send(plan: Plan) -> None:
    try:
        current_app.send_task(TASK, args=[str(plan.pk)], retry=False)
    except OperationalError:
        log.warning("the queue does not answer; the sweep will find plan %s", plan.pk)


def _picked_up(plan: Plan) -> None:
    """Close a plan whose worker died; send it again where the worker had done nothing."""
    attack = Attack.objects.filter(
        workspace=plan.run.workspace_id, idempotency_key=key_of(plan)
    ).first()
    if attack is None:
        if _advance(plan, FIRING, DUE):
            _send(plan)
    elif attack.verdict:
        _close(plan, FIRING, FIRED, attack=attack)
    else:
        _close(plan, FIRING, MISSED, why=DIED)


def _advance(plan: Plan, was: str, now: str, **fields: Any) -> bool:
    """Whether this call moved the plan, and no other process did."""
    row = Plan.objects.filter(pk=plan.pk, state=was)
    return bool(row.update(state=now, changed_ms=now_ms(), **fields))


def _close(plan: Plan, was: str, now: str, **fields: Any) -> None:
    """Close a plan and destroy its words; the attack keeps its own copy."""
    if _advance(plan, was, now, words=None, **fields):
        _destroy_words(plan)


def _seal_words(plan: Plan, words: Mapping[str, str]) -> None:
    """Put words into a plan that is not stored yet; nothing, where there are none.

    They are no secret of the run's record yet, so that no envelope commits to them. Their key
    belongs to the run, and dies with the run's other keys if the run is erased.
    """
    if not words:
        return
    plan.words_ref = f"{vault.PREFIX}{uuid4()}"
    key = keystore().new_keys(str(plan.run_id), [plan.words_ref])[plan.words_ref]
    plain = json.dumps(words).encode()
    plan.words = vault.seal(key, random_bytes(vault.NONCE_BYTES), plain, bound_to=plan.words_ref)


def _opened_words(plan: Plan) -> dict[str, str] | None:
    """The words of a plan; None where they were destroyed or changed."""
    if not plan.words_ref:
        return {}
    try:
        key = keystore().keys([plan.words_ref]).get(plan.words_ref)
        if key is None or plan.words is None:
            return None
        plain = vault.unseal(key, bytes(plan.words), bound_to=plan.words_ref)
    except VerificationError:
        return None
    words: dict[str, str] = json.loads(plain)
    return words


def _destroy_words(plan: Plan) -> None:
    """Destroy the key, without which no copy of the words says anything.

    The erasure journal knows of it first: ``restore`` destroys a key again that a backup had.
    """
    if plan.words_ref:
        journal.record([plan.words_ref])
        keystore().destroy([plan.words_ref])
