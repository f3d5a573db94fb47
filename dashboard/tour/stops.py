"""The guided tour: eight stops, what each asks of a run, and what is missing where it is not so."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import samples
from dashboard.arena import target
from dashboard.start import sample_files
from dashboard.templatetags.show import refusal
from dashboard.verdicts import cards
from engine.models import Workspace
from engine.queries import evidence, log
from engine.queries.runs import RunHead
from engine.runtime import api
from nanovm_core.core.lifecycle import COMPLETED
from pipeline.application import STEPS
from pipeline.create_run import create_run

VISITOR = "visitor"
INJECTED, REPLAYED = "tool_injection", "double_exec"
LAST = 8
MODEL_NUMBER = STEPS.index(target.MODEL_STEP) + 1


@dataclass(frozen=True, slots=True)
class TourStop:
    """One of the eight: what is to be done, what to look at, and what its button says."""

    number: int
    title: str
    look: str
    button: str

    @property
    def reads(self) -> bool:
        """Whether a verdict is to be read there: of what the stop before fired."""
        return self.number - 1 in (4, 6)


@dataclass(frozen=True, slots=True)
class Standing:
    """A run's state at a stop: ``offer`` is the stop whose form helps on, 0 for none.

    ``kind`` is do, done, wait (nobody has to do anything) or missing.
    """

    kind: str
    says: str = ""
    offer: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A run's record, recomputed from what is stored."""

    events: int
    whole: bool
    grade: str
    head: str


STOPS = tuple(
    TourStop(number, *texts)
    for number, texts in enumerate(
        (
            ("Pick an invoice",
             "A real PDF becomes a run of seven steps. The run waits for you before each step.",
             "Create the run"),
            ("Start the run",
             "Its program is fixed now. The first event in the list contains its hash.",
             "Start it"),
            ("Pause before the model answers",
             "Workers read the invoice, store its personal data encrypted, and pause the run.",
             "Pause before step 4"),
            ("Fire tool_injection while step 4 waits",
             "You write the model's answer: wire_transfer, USD 50,000.00 to the attacker.",
             "Fire tool_injection"),
            ("Read why it was blocked",
             "The verdict shows the rule, the line of code that decided, and the number of "
             "unauthorized calls: 0. It also shows what an ordinary agent did. Then continue.",
             "Continue the run"),
            ("Replay it after its success",
             "The invoice is paid. Now deliver the run's queue message again, many times at once.",
             "Fire double_exec"),
            ("Verify the record",
             "The duplicates were ignored, and Stripe shows one payment. Now recompute every hash "
             "from the stored bytes.",
             "Verify it"),
            ("Erase, and verify again",
             "Destroy the personal data. The record remains and still verifies.",
             "Go to the form"),
        ),
        start=1,
    )
)  # fmt: skip

DO = Standing("do")
NO_RUN = Standing("missing", "The tour has no run yet. Pick an invoice first.", offer=1)
ERASED_SAYS = "The personal data of this run was erased. Start the tour with a new run."
ERASED = Standing("missing", ERASED_SAYS, offer=1)
NOT_STARTED = Standing("missing", "The run has not started yet.", offer=2)
NOT_HELD = Standing("missing", "The run is not paused before its model yet.", offer=3)
NOT_FIRED = Standing("missing", "No attack was fired yet.", offer=4)
NOT_PAID = Standing("missing", "The run has not paid yet. Continue it first.", offer=5)
GOES = Standing("wait", "The run is in progress. This page reloads automatically.")


def standing(number: int, run: RunHead | None) -> Standing:
    """Whether this stop can be done with this run now; else what is missing, and what helps."""
    if number == 1:
        return DO
    if run is None:
        return NO_RUN
    if run.erased_ms and number < LAST:
        return ERASED
    return STANDINGS[number](run)


def new_run(owner: Workspace, sample: str) -> str:
    """Make the tour's run of a sample, held before its start; returns its code.

    An unknown name means the first sample.
    """
    chosen = next((each for each in samples.SAMPLES if each.name == sample), samples.SAMPLES[0])
    return create_run(owner, sample_files.sample(chosen.name), chosen.file, stepping=True).code


def do(number: int, run: RunHead, key: str) -> None:
    """Do what the stop is about, for real; nothing at a stop that cannot be done now.

    Raises:
        InjectionError: the attack cannot be made so; nothing was done.
    """
    if number in ACTS and may(number, run):
        ACTS[number](run, key)


def may(number: int, run: RunHead) -> bool:
    """Whether the stop's form has an effect: a paused run may go on from any stop."""
    return standing(number, run).kind == "do" or (number == 5 and run.paused)


def checked(run: RunHead) -> Checked:
    """Recompute the run's chain, head and place in the signed tree. It reads only."""
    links = log.chain(run)
    proved = evidence.proved(run)
    faulty = any(link.fault for link in links) or log.head_fault(run, links) or proved.faults
    whole = not faulty and proved.grade != evidence.INVALID and not run.quarantined
    return Checked(events=len(links), whole=whole, grade=proved.grade, head=run.head)


def _start(run: RunHead) -> Standing:
    return DO if run.ready else _done("The run was started.")


def _hold(run: RunHead) -> Standing:
    if run.ready:
        return NOT_STARTED
    if _is_held(run) or INJECTED in cards.fired(run):
        return _done("The run was paused before its model.")
    led = run.paused or (run.running and run.stepping)
    return DO if led and run.number < MODEL_NUMBER and not run.quarantined else _past(run)


def _inject(run: RunHead) -> Standing:
    if INJECTED in cards.fired(run):
        return _done("The attack was fired.")
    if _is_held(run):
        return DO
    held = _hold(run)
    return NOT_HELD if held.kind == "do" else held


def _read(run: RunHead) -> Standing:
    if INJECTED not in cards.fired(run):
        missing = _inject(run)
        return NOT_FIRED if missing.kind == "do" else missing
    if run.paused:
        return DO
    return _done("The run continued.") if run.running or _is_paid(run) else _past(run)


def _replay(run: RunHead) -> Standing:
    if _is_paid(run):
        return _done("It was replayed.") if REPLAYED in cards.fired(run) else DO
    if run.ready:
        return NOT_STARTED
    if run.paused:
        return NOT_PAID
    return GOES if run.running else _past(run)


def _erase(run: RunHead) -> Standing:
    if run.erased_ms:
        return _done("The personal data was erased.")
    return GOES if run.running else DO


def _past(run: RunHead) -> Standing:
    why = f": {refusal(*run.reason)}" if run.reason else "."
    at = f"step {run.number} of {len(STEPS)}, {run.step}"
    says = f"This run is {run.label} at {at}{why} Start with a new run."
    return Standing("missing", says, offer=1)


def _done(says: str) -> Standing:
    return Standing("done", says)


def _is_held(run: RunHead) -> bool:
    return run.paused and target.is_ready(run)


def _is_paid(run: RunHead) -> bool:
    return run.state == COMPLETED and not run.quarantined


STANDINGS: Mapping[int, Callable[[RunHead], Standing]] = dict(
    enumerate((_start, _hold, _inject, _read, _replay, lambda _: DO, _erase), start=2)
)
ACTS: Mapping[int, Callable[[RunHead, str], object]] = {
    2: lambda run, _: api.start(run.id, VISITOR),
    3: lambda run, _: target.led(run.id),
    4: lambda run, key: cards.fire(run.id, INJECTED, {}, key),
    5: lambda run, _: api.resume(run.id, VISITOR),
    6: lambda run, key: cards.fire(run.id, REPLAYED, {}, key),
    7: lambda run, _: api.check(run.id),  # damage is sealed, as on the page that verifies
}
