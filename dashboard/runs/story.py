"""The story of a poisoned invoice: the order that it hides, what the model answers, what stops it.

A fooled model's answer is an attack like every other: ``tool_injection`` makes it, so that the two
agents without the runtime get the same answer, and the verdict is computed from what was recorded.
A run whose own model was refused tells it too. While it waits, nothing but its button goes on.
"""

from dataclasses import dataclass

import samples
from dashboard.arena import target
from dashboard.start import sample_files
from dashboard.start.forms import demo
from dashboard.start.views import start_run, url_of
from dashboard.verdicts import cards, verdict_card
from engine.models import Workspace
from engine.queries import runs, secrets, step_detail
from engine.queries.record import RunRecord, record_of
from engine.runtime import api
from nanovm_core.core.messages import Decision
from nanovm_core.errors import VerificationError
from pipeline.steps.propose import model_adapters

FOOLED, HONEST = target.FOOLED, "faithful"
BEFORE, STOPPED, PAID, OVER = "before", "stopped", "paid", "over"
NEXT = {
    BEFORE: ("fooled", "Let the model answer"),
    STOPPED: ("honest", "Let an honest model answer"),
}
GO_ON, LOSE = ("resume", "step"), ("start", "pause", "kill", "wake")
SAMPLE = "injected"
HIDDEN = "\n".join(samples.HIDDEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """How far it is. ``verdict`` is the attack's, once the model was asked."""

    stage: str  # before, stopped, paid; over where the run ended otherwise
    order: str  # the text that the model obeys
    hidden: str  # of it, what is printed white on white; known of our own sample alone
    answer: str = ""
    verdict: verdict_card.VerdictCard | None = None
    fooled: bool = True  # its model obeys what it reads

    @property
    def next(self) -> tuple[str, str] | None:
        """The one command that continues, and its button's label; None where nothing waits."""
        return NEXT.get(self.stage)

    @property
    def title(self) -> str:
        """What came of it, from the verdict: never "blocked" where the call was not."""
        if self.verdict is None:
            return "This invoice contains instructions for the model"
        if self.verdict.breached:
            return "The model obeyed, and its call got through"
        if self.verdict.word != "BLOCKED":
            return f"The model obeyed. {self.verdict.headline}"
        if self.stage == PAID:
            return "The model's call was blocked, and the invoice was paid as printed"
        return f"The model {'was fooled' if self.fooled else 'erred'}, and its call was blocked"


def story_of(record: RunRecord) -> Story | None:
    """The story of a run; None where no model of its own was refused, or is to be fooled next."""
    run = record.run
    shot = cards.of_key(run, _key(run.id)) or cards.of_answer(record)
    waits = target.in_story(run)
    if run.erased_ms or not (shot or waits):
        return None
    order = model_adapters.orders(step_detail.shown_to_model(run))
    verdict = verdict_card.of_attack(run, shot) if shot else None
    return Story(
        stage=_stage(run, verdict, waits=waits),
        order=order,
        hidden=HIDDEN if HIDDEN in order and _is_the_sample(run) else "",
        answer=verdict.proposed if verdict else "",
        verdict=verdict,
        fooled=run.model == FOOLED,
    )


def begin_run(owner: Workspace) -> str:
    """Begin the story's run, wait until it is paused before its model, and say where it is."""
    run = start_run(owner, demo())
    target.led(str(run.id))
    return url_of(run)


def let_model_answer(run_id: str, actor: str) -> Decision | None:
    """Ask the fooled model, once; the run stays paused. Nothing where it does not wait for it."""
    del actor  # the answer is the attacker's
    run = runs.by_id(run_id)
    told = story_of(record_of(run))
    if told is None or told.stage != BEFORE:
        return None
    target.open_question(run_id)
    cards.fire(run_id, target.INJECTOR, {"proposal": told.order, "by": FOOLED}, _key(run_id))
    return None


def let_honest_model_answer(run_id: str, actor: str) -> Decision | None:
    """Ask a model that says what the invoice says, and let the run go on with its answer."""
    run = runs.by_id(run_id)
    told = story_of(record_of(run))
    if told is None or told.stage != STOPPED:
        return None
    target.open_question(run_id)
    raw = model_adapters.MODELS[HONEST](step_detail.shown_to_model(run), b"")
    decision = api.propose(run_id, raw, actor=api.MODEL)
    return decision if decision.refusal else api.resume(run_id, actor)


def _key(run_id: str) -> str:
    """The idempotency key of the story's one attack."""
    return f"story {run_id}"


def _stage(run: runs.RunHead, verdict: verdict_card.VerdictCard | None, *, waits: bool) -> str:
    if verdict is None:
        return BEFORE
    if run.label == "SUCCESS":
        return PAID
    return STOPPED if waits else OVER


def _is_the_sample(run: runs.RunHead) -> bool:
    try:
        document = secrets.open_inputs(run, ("document",)).get("document")
    except VerificationError:
        return False
    return document is not None and sample_files.is_sample(document, SAMPLE)
