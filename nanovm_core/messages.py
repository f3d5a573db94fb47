"""What goes into and comes out of a transition: events, effects, drafts, snapshots."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NewType

RunId = NewType("RunId", str)
Scalar = str | int | bool
Args = Mapping[str, Scalar]


def _empty() -> Args:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """What an envelope may say of a secret: where it belongs, its name, and c = HMAC(r, value)."""

    slot: str
    ref: str
    c: str


# --- events: what happened -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, at ``at_ms`` (milliseconds UTC), said by ``actor``.

    ``funds`` is what the workspace's budgets have left, by currency, and ``by_holder``
    whether it comes from the worker that holds the run's lease; the runtime fills both in
    under the lock, whoever made the event.
    """

    at_ms: int
    actor: str = "runtime"
    funds: Mapping[str, int] = field(default_factory=dict)
    by_holder: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """Somebody asked the run to begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectDone(Event):
    """The effect owed under ``key`` succeeded and filled the slots in ``out``."""

    key: str
    out: Args = field(default_factory=_empty)
    secrets: tuple[Commitment, ...] = ()
    outcome: str = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectFailed(Event):
    """The effect owed under ``key`` is known not to have happened."""

    key: str
    code: str
    text: str
    retry: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectUnknown(Event):
    """Nobody can tell whether the effect owed under ``key`` happened: a person decides."""

    key: str
    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalReceived(Event):
    """Untrusted bytes that want a tool call; ``secret`` is where the vault keeps them, if it does.

    ``key`` is the model step's idempotency key where the bytes answer it, else empty.
    """

    raw: bytes
    secret: Commitment | None = None
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRequested(Event):
    """Somebody wants the run to hold still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequested(Event):
    """Somebody wants the run to go on, under the program whose hash they name."""

    program: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequested(Event):
    """Somebody wants one more step of a paused run, and then another pause."""

    program: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved(Event):
    """A person let a held payment go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined(Event):
    """A person refused a held payment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillRequested(Event):
    """Somebody stops the run for good. ``under_way``: an effect left and is not answered."""

    under_way: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReceived(Event):
    """A queue message arrived that has no owed effect to show for itself."""

    program: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRefused(Event):
    """The program stored beside the run is not the one its genesis names."""

    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignIntent(Event):
    """The outbox held effects that no sealed intent bears; they were taken out of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DamageFound(Event):
    """The run's stored bytes do not verify."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRequested(Event):
    """A person asked, on the ground ``reason``, to erase these refs."""

    refs: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureDone(Event):
    """These refs are gone; ``destroyed`` and ``kept`` count places, never values."""

    refs: tuple[str, ...]
    reason: str
    destroyed: Mapping[str, int]
    kept: tuple[str, ...] = ()


# --- what a transition answers -------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Warrant:
    """A capability for exactly one call, until ``expires_ms``.

    ``id`` is the hash of everything it is bound to, so an adapter recomputes it from the
    call in its hands; it is not signed yet (CAVEATS.md).
    """

    id: str
    expires_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A request to the outside, owed until its result is fed back under ``key``."""

    step: str
    tool: str
    attempt: int
    key: str
    args: Args
    at_ms: int
    warrant: Warrant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A change of the workspace's budget in one currency: what is reserved, spent, released."""

    currency: str
    reserved_minor: int = 0
    spent_minor: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The kernel's audited no. ``where`` is the file, line and function that decided."""

    code: str
    text: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The immutable value of a run. It holds refs and clear facts, never a personal value."""

    run: RunId
    program: str
    policy: str
    state: str
    step: str
    attempt: int = 1
    slots: Args = field(default_factory=_empty)
    owed: Effect | None = None  # the intent that is sealed and not yet answered
    call: tuple[str, Args] | None = None  # the authorized tool call
    refused: int = 0  # refused answers of the model so far
    stepping: bool = False  # pause again after the next step
    approved: tuple[str, ...] = ()  # the hold rules that a person has lifted
    held_by: str = ""  # the hold rule that the run waits for
    reserved: tuple[str, int] | None = None  # (currency, amount_minor) frozen for the charge
    allowed_by: tuple[str, ...] = ()  # the policy rules that allowed the authorized call
    ignored: tuple[str, ...] = ()  # event kinds already sealed as ignored
    reason: tuple[str, str] | None = None  # (code, sentence) of why it stands or ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An envelope without its place: ``record`` gives it seq, n and prev.

    ``after`` is the snapshot that its ``snapshot`` hash stands for; ``body`` holds the
    fields of AUDIT.md that this kind carries.
    """

    kind: str
    at_ms: int
    actor: str
    after: Snapshot
    body: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What an event does to a run. Nothing of it has happened yet."""

    snapshot: Snapshot
    drafts: tuple[Draft, ...] = ()
    effects: tuple[Effect, ...] = ()
    budgets: tuple[Reservation, ...] = ()
    refusal: Refusal | None = None
    absorbed: str = ""  # the event kind that changed nothing and is only counted
