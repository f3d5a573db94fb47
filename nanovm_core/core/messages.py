"""What a run is and what a transition answers: snapshots, effects, drafts, decisions."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, NewType

from nanovm_core.core.lifecycle import EXHAUSTED

RunId = NewType("RunId", str)
Scalar = str | int | bool
Slots = Mapping[str, Scalar]
Value = Scalar | tuple[Scalar, ...]  # of an argument, which may be a list
Args = Mapping[str, Value]
Counts = Mapping[str, int]  # by unit, account or window
NOTHING: Mapping[str, Any] = MappingProxyType({})

# A mapping in one of these is a read-only view; its maker must not keep the mapping under it.


class Commitment(NamedTuple):
    """What an envelope may say of a secret: its slot, its name, and c = HMAC(r, value)."""

    slot: str
    ref: str
    c: str


class Warrant(NamedTuple):
    """A capability for exactly one call, until ``expires_ms``.

    ``id`` hashes all that it is bound to: an adapter recomputes it from its own call.
    """

    id: str
    expires_ms: int


class Effect(NamedTuple):
    """A request to the outside, owed until its result arrives under ``key``."""

    step: str
    tool: str
    attempt: int
    key: str
    args: Args
    at_ms: int
    warrant: Warrant | None = None
    origins: Slots | None = None  # of the arguments whose origin is demanded


class Reservation(NamedTuple):
    """A change of an account ("workspace/EUR", "run/EUR"): reserved, and spent."""

    account: str
    reserved: int = 0
    spent: int = 0


Reservations = tuple[Reservation, ...]


class Refusal(NamedTuple):
    """Why the kernel refused an event: a stable code and a sentence."""

    code: str
    text: str


class Snapshot(NamedTuple):
    """The immutable value of a run: refs and clear facts, never a personal value."""

    run: RunId
    program: str
    policy: str
    state: str
    step: str
    agent: str = ""
    attempt: int = 1
    slots: Slots = NOTHING
    owed: Effect | None = None  # sealed and not yet answered
    awaits: str = ""  # the key of the awaited answer
    call: tuple[str, Args] | None = None  # the authorized tool call
    refused: int = 0  # refused answers of the model step so far
    stepping: bool = False  # pause again after the next step
    approved: tuple[str, ...] = ()  # hold rules lifted for this call alone
    held_by: str = ""  # the hold rule that suspends the run
    reserved: Reservations = ()  # frozen for what is owed; "run/…" is the run's own
    used: Counts = NOTHING  # of the run's own limits
    begun: int = 0  # intents so far, limited by steps_max
    allowed_by: tuple[str, ...] = ()  # the rules that allowed the call
    ignored: tuple[str, ...] = ()  # event kinds sealed as ignored
    reason: tuple[str, str] | None = None  # (code, sentence) of its suspension or end
    started_ms: int = 0  # later by each suspension: the clock stops meanwhile
    suspended_ms: int = 0  # when the suspension began; else 0
    deadline_ms: int = 0  # of what is owed or awaited; 0: none
    origins: Mapping[str, str] = NOTHING  # of slots; without one: of a document
    agreed: Mapping[str, str] = NOTHING  # the terms that the call's approval was given on
    agreed_ms: int = 0  # when; 0: on none


class Draft(NamedTuple):
    """An envelope without its place: ``envelope.seal`` gives it seq, n and prev.

    ``after``: what its ``snapshot`` hash names; ``body``: this kind's own fields.
    """

    kind: str
    at_ms: int
    actor: str
    after: Snapshot
    body: Mapping[str, object] = NOTHING


BY_RULE = "suspended.by_rule"  # the state of an agent that a rule suspended


class Suspension(NamedTuple):
    """A command to suspend an agent, because a rule fired; ``why``: the rule's sentence.

    ``account``: its own that it used up ("agent/EUR"); empty where a policy's rule fired.
    """

    agent: str
    rule: str
    why: str
    account: str = ""

    @property
    def state(self) -> str:
        """The state that the agent is in then."""
        return EXHAUSTED if self.account else BY_RULE


class Decision(NamedTuple):
    """What an event does to a run. Nothing of it has happened yet.

    The caller stores ``snapshot``, the sealed ``drafts``, ``budgets`` and what ``commands`` say
    together or not at all, then performs ``effects``.
    """

    snapshot: Snapshot
    drafts: tuple[Draft, ...] = ()
    effects: tuple[Effect, ...] = ()
    budgets: Reservations = ()
    refusal: Refusal | None = None
    absorbed: str = ""  # the event kind, only counted
    commands: tuple[Suspension, ...] = ()
