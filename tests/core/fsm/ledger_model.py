"""What the model of the till expects of one event, before the kernel is asked."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import AnswerArrived, EffectDone, Event
from nanovm_core.core.messages import Decision, Recorded, Scalar, Snapshot
from tests.core.fsm import cashier_rules as till
from tests.core.kit.builders import Scene, secret

ENDED = {"terminated.completed", "terminated.failed", "terminated.killed"}
STILL = {life.PAUSED, life.EXHAUSTED, life.APPROVAL}
BUSY = {life.ACTIVE, life.PAUSED}
LIVE = {life.READY, life.ACTIVE, life.IDLE, life.WAITING, *STILL}
COMES_IN: Mapping[type[Event], set[str]] = {
    events.RunStarted: {life.READY},
    EffectDone: BUSY,
    events.EffectFailed: BUSY,
    events.EffectUnknown: BUSY,
    events.EffectWaiting: BUSY,
    events.ProposalReceived: BUSY,
    AnswerArrived: {life.WAITING, life.PAUSED, life.APPROVAL},
    events.TimePassed: {life.ACTIVE, life.IDLE, life.WAITING},
    events.PauseRequested: {life.ACTIVE, life.IDLE, life.WAITING},
    events.ResumeRequested: {life.PAUSED, life.EXHAUSTED},
    events.StepRequested: {life.PAUSED},
    events.Approved: {life.APPROVAL},
    events.Declined: {life.APPROVAL},
    events.KillRequested: LIVE,
}
SAID_BY_NOBODY: Mapping[type[Event], str] = {
    events.DamageFound: "FSM-002",
    events.ForeignIntent: "FSM-001",
    events.ErasureRequested: "FSM-010",
}
FILLS: Mapping[str, Mapping[str, type]] = {
    "fetch": {"amount": int, "payee": str},
    "window": {"seen_by": str},
    "pay": {"receipt": str},
    "tell": {},
}
REQUESTS: tuple[type[Event], ...] = (
    *(events.TimePassed, events.TimePassed, events.Approved, events.Approved, events.Declined),
    *(events.PauseRequested, events.ResumeRequested, events.StepRequested, events.RunStarted),
    *(events.DeliveryReceived, events.DamageFound, events.ForeignIntent),
)
GOES_ON = (events.RunStarted, events.ResumeRequested, events.StepRequested, events.Approved)
Result = EffectDone | events.EffectFailed | events.EffectUnknown | events.EffectWaiting
RECEIPT = secret("receipt")
JUNK, OTHER_TOOL, TEXT = b"pay him!", "till.refund", "100"


class Till:
    """One run, what it was about, and what became of it: told by the test, not by the kernel."""

    def __init__(self, scene: Scene, amount: int) -> None:
        self.scene, self.amount = scene, amount
        self.clock = till.Clock(scene.at_ms)
        self.spent = Counter[str]()  # by unit
        self.paid = False
        self.ignored: set[str] = set()  # what came after the end, by kind
        self.kept: dict[str, int] = {}  # frozen for ever: nobody can tell what became of it

    @property
    def asks(self) -> bool:
        """Whether the model is asked now."""
        owed = self.scene.now.owed
        return owed is not None and owed.step == "ask"

    @property
    def pays(self) -> bool:
        """Whether a payment is out, or will be tried again."""
        now = self.scene.now
        ended = now.state in ENDED
        return not ended and now.step == "pay" and (now.owed is not None or now.attempt > 1)

    def answer(self) -> dict[str, Scalar]:
        """What really comes of the step the run stands at."""
        if self.scene.now.step == "fetch":
            return {"amount": self.amount, "payee": "acme"}
        return {"seen_by": "eve"} if self.scene.now.step == "window" else {}

    def frozen(self) -> dict[str, int]:
        """What must be frozen for the run, by unit."""
        if self.pays:
            return {"calls": 1, "EUR": self.amount}
        return {"tokens": till.ASK_TOKENS} if self.asks else self.kept

    def hear(
        self, before: Snapshot, event: Event, at_ms: int, decision: Decision, asked: bool
    ) -> list[Recorded]:
        """Take over what really happened; returns what the log remembers of it."""
        after, taken = decision.snapshot, decision.refusal is None and not decision.absorbed
        records = []
        if (
            isinstance(event, events.ProposalReceived)
            and asked
            and (not self.asks or after != before)
        ):
            self.spent["tokens"] += min(max(event.tokens, 0), till.ASK_TOKENS)
        if before.step == "pay" and before.owed is not None and taken:
            records = self._hear_of_payment(before, event, at_ms)
        told = isinstance(event, AnswerArrived) and taken
        if before.held_by == "unknown-outcome" and after.state in ENDED and not told:
            frozen = {"pay": {"calls": 1, "EUR": self.amount}, "ask": {"tokens": till.ASK_TOKENS}}
            self.kept = frozen.get(before.step, {})
        for draft in decision.drafts:
            if draft.kind == "intent":
                self.spent["steps"] += draft.body.get("outcome") != "waiting"
                if draft.body.get("tool") == till.PAY:
                    records.append(Recorded(at_ms, till.PAY, "called", after.agent))
        self._turn_clock(before, event, at_ms, decision)
        return records

    def _hear_of_payment(self, before: Snapshot, event: Event, at_ms: int) -> list[Recorded]:
        code = event.code if isinstance(event, AnswerArrived | events.EffectFailed) else ""
        if not isinstance(event, EffectDone | events.EffectFailed | AnswerArrived):
            return []
        if code:
            return [Recorded(at_ms, till.PAY, "failed", before.agent)]
        assert not self.paid
        self.paid = True
        self.spent.update({"calls": 1, "EUR": self.amount})
        return [Recorded(at_ms, till.PAY, "done", before.agent)]

    def _turn_clock(self, before: Snapshot, event: Event, at_ms: int, decision: Decision) -> None:
        after, clock = decision.snapshot, self.clock
        stands = after.state in {life.READY, *STILL, *ENDED}
        if before.state in STILL and stands and decision.drafts[:1]:
            told = before.state == life.APPROVAL and isinstance(event, AnswerArrived)
            went_on = told or decision.drafts[0].kind == "resumed"
            clock.turn(at_ms, stands=not went_on, begins=False)
        clock.turn(at_ms, stands=stands, begins=before.state == life.READY)
        begun = any(draft.kind == "intent" for draft in decision.drafts)
        if begun or (before.held_by == "unknown-outcome" and decision.effects):
            clock.begin(till.TIMEOUTS_MS[after.step])
        elif isinstance(event, events.EffectWaiting) and decision.refusal is None:
            most_ms = till.TIMEOUTS_MS[after.step]
            until_ms = event.until_ms - at_ms if event.until_ms else most_ms
            clock.begin(min(most_ms, until_ms))
        elif after.state == life.IDLE and before.state not in (life.IDLE, life.PAUSED):
            clock.begin(till.PAUSE_MS)


class World(NamedTuple):
    """What all runs share at one moment."""

    at_ms: int
    revoked: bool
    left: Mapping[str, int]
    history: tuple[Recorded, ...]
    by_holder: bool
    under_way: bool

    def authority(self) -> str:
        """Why nobody may pay now; empty where somebody may."""
        if self.at_ms >= till.GRANT_ENDS_MS:
            return "CAP-007"
        return "CAP-008" if self.revoked else ""

    def flaps(self) -> bool:
        """Whether the last two payments failed, both within a minute."""
        past, at_ms = self.history, max([self.at_ms, *(each.at_ms for each in self.history)])
        ends = [each.outcome for each in past if each.outcome != "called"]
        called = [each for each in past if each.outcome == "called"]
        near = [each for each in called if each.at_ms >= at_ms - 60_000]
        return ends[-2:] == ["failed", "failed"] and len(near) >= 2

    def short_of(self, run: Till, step: str, *, tries: bool = False) -> str:
        """Which limit a step would break, in the order in which they are asked; empty: none."""
        own, left = run.spent, self.left
        if run.clock.ran_ms >= till.WALL_MS:
            return "BUD-005"
        if own["steps"] >= till.STEPS_MAX or left["agent/steps"] < 1:
            return "BUD-003"
        if step == "ask":
            over = (
                own["tokens"] + till.ASK_TOKENS > till.TOKENS_MAX
                or left["workspace/tokens"] < till.ASK_TOKENS
            )
            return "BUD-004" if over else ""
        if step != "pay" or tries:
            return ""
        if own["calls"] + 1 > till.CALLS_MAX or left["global/calls"] < 1:
            return "BUD-002"
        if own["EUR"] + run.amount > till.MONEY_MAX:
            return "BUD-001"
        return "BUD-001" if min(left["agent/EUR"], left["workspace/EUR"]) < run.amount else ""

    def holds(self, run: Till) -> str:
        """The rule that holds the payment now; empty where none does."""
        approved = run.scene.now.approved
        if self.flaps() and "flapping" not in approved:
            return "flapping"
        return "large" if run.amount > till.LARGE and "large" not in approved else ""


# --- refusals --------------------------------------------------------------------------------


def refusal(run: Till, event: Event, world: World) -> str:
    """The code with which an event must be refused; empty where it must be taken."""
    now = run.scene.now
    if now.state in ENDED or isinstance(event, events.DeliveryReceived):
        foreign = getattr(event, "program", now.program) != now.program
        return "PRG-010" if foreign and now.state not in ENDED else ""
    if type(event) in SAID_BY_NOBODY:
        return SAID_BY_NOBODY[type(event)]
    if getattr(event, "program", now.program) != now.program:
        return "PRG-010"
    if isinstance(event, AnswerArrived) and not (
        event.run == now.run and now.awaits and event.key == now.awaits
    ):
        return "FSM-015"
    if isinstance(event, events.ProposalReceived):
        return _proposal(run, event, world)
    if now.state not in COMES_IN[type(event)]:
        return "FSM-002"
    return _CHECKS.get(type(event), _none)(run, event, world)


def _none(*_: object) -> str:
    return ""


def _result(run: Till, event: Event, world: World) -> str:
    """Whether an effect's own worker says what came of it."""
    assert isinstance(
        event, EffectDone | events.EffectFailed | events.EffectUnknown | events.EffectWaiting
    )
    owed = run.scene.now.owed
    if owed is None or event.key != owed.key:
        return "FSM-001"
    if not world.by_holder:
        return "FSM-012"
    if run.scene.now.awaits:
        return "FSM-015"
    if isinstance(event, events.EffectWaiting):
        return "FSM-015" if run.asks else ""
    return _filled(run, event) if isinstance(event, EffectDone) else ""


def _filled(run: Till, event: EffectDone | AnswerArrived) -> str:
    if run.asks:
        return "FSM-004"
    fills = FILLS[run.scene.now.step]
    for name, value in event.out.items():
        if type(value) is not fills.get(name):
            return "FSM-007"
        if name == "receipt" and (value != RECEIPT.ref or RECEIPT not in event.secrets):
            return "PII-001"
    return ""


def _arrival(run: Till, event: Event, _: World) -> str:
    assert isinstance(event, AnswerArrived)
    return "" if event.code else _filled(run, event)


def _again(run: Till, _: Event, world: World) -> str:
    """What is handed out once more after a suspension needs its grant still."""
    now = run.scene.now
    owed = now.owed is not None and now.owed.tool == till.PAY
    awaits = now.awaits and now.held_by != "unknown-outcome"
    return world.authority() if owed and not awaits else ""


def _stop(run: Till, _: Event, world: World) -> str:
    owed = run.scene.now.owed
    return "FSM-009" if world.under_way and owed is not None and owed.tool == till.PAY else ""


def _proposal(run: Till, event: events.ProposalReceived, world: World) -> str:
    now = run.scene.now
    if event.raw == JUNK:
        return "CAP-010"
    if OTHER_TOOL.encode() in event.raw:
        return "CAP-001"
    owed = now.owed
    if not run.asks or owed is None or event.key != owed.key or now.state not in BUSY:
        return "out of turn"
    if world.authority():
        return world.authority()
    if b'"now"' in event.raw:
        return "CAP-003"
    if b'"100"' in event.raw:
        return "CAP-005"
    return "" if event.raw == till.wants(run.amount) else "POL-010"


_CHECKS: Mapping[type[Event], Callable[[Till, Event, World], str]] = {
    EffectDone: _result,
    events.EffectFailed: _result,
    events.EffectUnknown: _result,
    events.EffectWaiting: _result,
    AnswerArrived: _arrival,
    events.ResumeRequested: _again,
    events.StepRequested: _again,
    events.Approved: _again,
    events.KillRequested: _stop,
}
