"""A hostile worker: it takes a genuine call and makes another one in its place."""

from dataclasses import dataclass

from django.conf import settings

from engine.errors import EffectError
from engine.models import Run
from engine.runtime import api
from engine.work import Answer, Work
from engine.worker import effects
from nanovm_core.core import lifecycle as life
from sabotage.gallery.kit import fixture
from sabotage.kit.code_locations import decided_in
from sabotage.kit.injector import InjectionError, Target

PACE_MS = 500  # between a paced run's effects: long enough to be the first at the charge


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterAnswer:
    """What an adapter did: its answer, or the rule that it refused with and its place."""

    rule: str = ""
    where: str = ""
    answer: Answer | None = None


def paced(run: Run) -> Run:
    """The run with pauses that leave the hostile worker time, where honest ones are at work too."""
    if settings.REDIS_URL:
        Run.objects.filter(id=run.id).update(pace_ms=PACE_MS)
    return run


def take_charge(run: Run) -> Work:
    """The run's charge, taken from the queue with its genuine warrant.

    Raises:
        InjectionError: somebody else was faster.
    """
    fixture.bring(run, "charge")
    api.resume(str(run.id), fixture.OPERATOR)
    begun = api.begin_effect(str(run.id))
    if begun is None or begun.effect.step != "charge":
        raise InjectionError("A worker was faster than the attack. Fire again.")
    return effects.work_of(begun)


def call_adapter(work: Work) -> AdapterAnswer:
    """Have the adapter make a call, as any worker can."""
    try:
        return AdapterAnswer(answer=effects.perform(work))
    except EffectError as refused:
        return AdapterAnswer(rule=refused.code, where=decided_in(refused))


def submit_answer(target: Target, tried: AdapterAnswer) -> None:
    """Feed what the adapter said back into the run, in the attacker's name."""
    if tried.answer is not None:
        found = tried.answer
        api.submit(target.run_id, [found.event], actor=target.actor, secrets=found.secrets)


def finish(*runs: Run) -> None:
    """Leave the runs to honest workers, until each has ended."""
    for run in runs:
        if fixture.reloaded(run).state == life.APPROVAL:
            api.approve(str(run.id), fixture.OPERATOR)
    fixture.wait_for(*runs)
