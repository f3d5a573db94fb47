"""What a run is and what a transition answers: snapshots, effects, drafts, decisions."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, NewType

RunId = NewType("RunId", str)
Scalar = str | int | bool
Args = Mapping[str, Scalar]
NOTHING: Args = MappingProxyType({})

# All are tuples with names: nothing can be set on them. A mapping in one is a view that cannot
# be written through; whoever made the mapping under it must not keep it.


class Commitment(NamedTuple):
    """What an envelope may say of a secret: where it belongs, its name, and c = HMAC(r, value)."""

    slot: str
    ref: str
    c: str


class Recorded(NamedTuple):
    """One call that the log remembers, for rules over a window of time.

    ``outcome``: called, done, failed or refused. ``at_ms`` is the event's time.
    """

    at_ms: int
    tool: str
    outcome: str
    agent: str = ""


class Warrant(NamedTuple):
    """A capability for exactly one call, until ``expires_ms``.

    ``id`` is the hash of everything it is bound to, so an adapter recomputes it from the call
    in its hands; the runtime signs it when it hands the effect out (``warrants.sign``).
    """

    id: str
    expires_ms: int


class Effect(NamedTuple):
    """A request to the outside, owed until its result is fed back under ``key``."""

    step: str
    tool: str
    attempt: int
    key: str
    args: Args
    at_ms: int
    warrant: Warrant | None = None


class Reservation(NamedTuple):
    """A change of an account ("workspace/EUR", the run's own "run/EUR"): reserved, and spent."""

    account: str
    reserved: int = 0
    spent: int = 0


class Refusal(NamedTuple):
    """The kernel's audited no."""

    code: str
    text: str


class Snapshot(NamedTuple):
    """The immutable value of a run. It holds refs and clear facts, never a personal value."""

    run: RunId
    program: str
    policy: str
    state: str
    step: str
    agent: str = ""
    attempt: int = 1
    slots: Args = NOTHING
    owed: Effect | None = None  # the intent that is sealed and not yet answered
    awaits: str = ""  # the key whose answer the run waits for
    call: tuple[str, Args] | None = None  # the authorized tool call
    refused: int = 0  # refused answers of the model step so far
    stepping: bool = False  # pause again after the next step
    approved: tuple[str, ...] = ()  # the hold rules that a person has lifted for this call alone
    held_by: str = ""  # the hold rule that the run waits for
    reserved: tuple[Reservation, ...] = ()  # frozen for what is owed; "run/…" is the run's own
    used: Mapping[str, int] = MappingProxyType({})  # what the run's own limits have counted
    begun: int = 0  # intents so far: the steps that its limit counts
    allowed_by: tuple[str, ...] = ()  # the policy rules that allowed the authorized call
    ignored: tuple[str, ...] = ()  # event kinds already sealed as ignored
    reason: tuple[str, str] | None = None  # (code, sentence) of why it stands or ended
    started_ms: int = 0  # moved on by each suspension, so that the clock stands still in it
    suspended_ms: int = 0  # when the suspension began; 0 while it runs
    deadline_ms: int = 0  # when nobody waits any more for what is owed or awaited; 0: no such time


class Draft(NamedTuple):
    """An envelope without its place: ``envelope.seal`` gives it seq, n and prev.

    ``after`` is the snapshot that its ``snapshot`` hash stands for; ``body`` holds the
    fields of AUDIT.md that this kind carries.
    """

    kind: str
    at_ms: int
    actor: str
    after: Snapshot
    body: Mapping[str, object] = MappingProxyType({})


class Decision(NamedTuple):
    """What an event does to a run. Nothing of it has happened yet."""

    snapshot: Snapshot
    drafts: tuple[Draft, ...] = ()
    effects: tuple[Effect, ...] = ()
    budgets: tuple[Reservation, ...] = ()
    refusal: Refusal | None = None
    absorbed: str = ""  # the event kind that changed nothing and is only counted
