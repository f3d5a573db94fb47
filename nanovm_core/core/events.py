"""Events, which anybody may send, and the context, which only the runtime supplies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from nanovm_core.core.canonical import INTEGER_MAX, encode
from nanovm_core.core.messages import NOTHING, Commitment, Counts, Scalar, Slots
from nanovm_core.errors import CanonicalError, RefusedError

ACTOR_MAX = 200  # characters
PLAIN_MAX = 4_096  # characters of ASCII that any envelope holds
SAID_MAX = 2_000  # characters of a failure's text; the rest is cut
NAME_MAX = 200  # characters of a code, an outcome
SECRETS_MAX = 256  # commitments of one answer, each of
SECRET_MAX = 128  # characters a field
SLOTS_BYTES_MAX = 262_144  # all slots; a snapshot with both calls holds them thrice
ESCAPED_MAX = 6  # bytes of a character in canonical JSON, at most
UNNAMED = "?"
UNKNOWN = "unknown"  # an outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, reported from outside: untrusted.

    An event that no envelope could hold cannot be constructed (FSM-017); a failure's text is cut
    instead.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What only the runtime may say about an event, read under its lock.

    ``at_ms``: milliseconds UTC. ``actor``: on whose behalf the event is sent. ``by_holder``: from
    the worker that holds the run's lease. ``vouched``: the runtime verified who answers, by
    signature or session, and that they may. ``under_way``: the owed effect left and is not
    answered. ``ledger``: what each shared account has left ("workspace/EUR", "agent/calls").
    ``counts``: of windows and rates ("calls_1m", "calls_1m@payer"). ``revoked``: ids of grants.
    ``halted``: the agents that begin no effect, each with its state. ``terms``: what an approval is
    bound to, as it is now ("policy", "document", …); ``requested_by``: the actor of the genesis.
    ``frozen``: the tokens that all runs of the run's agent have reserved.

    Raises:
        ValueError: ``actor`` is no printable text of up to ACTOR_MAX characters.
    """

    at_ms: int
    actor: str = "runtime"
    by_holder: bool = False
    vouched: bool = False
    under_way: bool = True
    ledger: Counts = field(default_factory=lambda: NOTHING)
    counts: Counts = field(default_factory=lambda: NOTHING)
    revoked: frozenset[str] = frozenset()
    halted: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    terms: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    requested_by: str = ""
    frozen: int = 0

    def __post_init__(self) -> None:
        if not (self.actor.isprintable() and len(self.actor) <= ACTOR_MAX):
            raise ValueError(f"an actor is a printable text of up to {ACTOR_MAX} characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A request to start the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectDone(Event):
    """The effect owed under ``key`` succeeded and filled the slots in ``out``."""

    key: str
    out: Slots = field(default_factory=lambda: NOTHING)
    secrets: tuple[Commitment, ...] = ()
    outcome: str = "done"

    def __post_init__(self) -> None:
        _keep_result(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectFailed(Event):
    """The effect owed under ``key`` is known not to have happened."""

    key: str
    code: str
    text: str
    retry: bool = False

    def __post_init__(self) -> None:
        _cut_words(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectUnknown(Event):
    """It is unknown whether the effect owed under ``key`` happened: a person decides."""

    key: str
    code: str
    text: str

    def __post_init__(self) -> None:
        _cut_words(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectWaiting(Event):
    """The effect owed under ``key`` is under way; its answer arrives later as another event.

    ``until_ms``: the deadline; 0 leaves it to the step.
    """

    key: str
    until_ms: int = 0

    def __post_init__(self) -> None:
        if type(self.until_ms) is not int:
            raise unsealable("A time is an integer of milliseconds.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerArrived(Event):
    """What a waiting run waits for. It names run, program and the awaited key, and works once.

    With a ``code``, it is known not to have happened; where ``outcome`` is UNKNOWN, a person is
    asked. The key proves nothing: without ``Context.vouched`` it is refused (FSM-018).
    """

    run: str
    program: str
    key: str
    out: Slots = field(default_factory=lambda: NOTHING)
    secrets: tuple[Commitment, ...] = ()
    outcome: str = "done"
    code: str = ""
    text: str = ""

    def __post_init__(self) -> None:
        _keep_result(self)
        _cut_words(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePassed(Event):
    """Only time passed; a deadline before ``Context.at_ms`` has expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalReceived(Event):
    """Untrusted bytes that propose a tool call; ``secret``: where the vault keeps them, if it does.

    ``key`` is the model step's idempotency key where the bytes answer it, else empty; anybody who
    has it can use up the model's attempts. ``tokens``: the provider's count, spent in full if the
    run's own worker sends it; else, or where it is no number, all that was reserved is spent.
    """

    raw: bytes
    secret: Commitment | None = None
    key: str = ""
    tokens: int = 0

    def __post_init__(self) -> None:
        require_secrets((self.secret,) if self.secret else ())
        if type(self.tokens) is not int or self.tokens > INTEGER_MAX:
            object.__setattr__(self, "tokens", INTEGER_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRequested(Event):
    """A request to pause the run; ``code``: of the rule for it, empty where a person asks."""

    code: str = ""
    text: str = "Paused."


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequested(Event):
    """A request to resume the run, under the program with this hash."""

    program: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequested(Event):
    """A request for one more step of a paused run, and then another pause."""

    program: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved(Event):
    """A person approved what is held. ``hold`` names what they saw (``fsm.commands.hold_id``).

    ``said``: a secret that they add, for a slot that the program leaves to a person. ``seen``: the
    terms of ``Context``, as the person was shown them.
    """

    hold: str = ""
    said: Commitment | None = None
    seen: Mapping[str, str] = field(default_factory=lambda: NOTHING)

    def __post_init__(self) -> None:
        require_secrets((self.said,) if self.said else ())
        object.__setattr__(self, "seen", MappingProxyType(dict(self.seen)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined(Event):
    """A person refused what is held. ``hold`` is as in ``Approved``."""

    hold: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillRequested(Event):
    """A request to stop the run for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReceived(Event):
    """A queue message arrived without an owed effect."""

    program: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRefused(Event):
    """The stored program is not the one that the genesis names."""

    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignIntent(Event):
    """The outbox held effects that no sealed intent bears; they were removed."""


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
    destroyed: Counts
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRefused(Event):
    """These refs are kept for now: a law (``ground``) demands it until ``until_ms``."""

    refs: tuple[str, ...]
    reason: str
    ground: str
    until_ms: int


def _keep_result(event: EffectDone | AnswerArrived) -> None:
    require_result(event.out, event.outcome, event.secrets)
    object.__setattr__(event, "out", MappingProxyType(dict(event.out)))


def _cut_words(event: EffectFailed | EffectUnknown | AnswerArrived) -> None:
    object.__setattr__(event, "code", cut(event.code, NAME_MAX))
    object.__setattr__(event, "text", cut(event.text, SAID_MAX))


def is_sealable(found: Scalar) -> bool:
    """Whether an envelope could hold a value."""
    if type(found) is str and found.isascii() and len(found) <= PLAIN_MAX:
        return True
    if type(found) is int or type(found) is bool:
        return -INTEGER_MAX <= found <= INTEGER_MAX
    try:
        encode(found)
    except CanonicalError:
        return False
    return True


def require_slots(slots: Slots) -> None:
    """Return if all slots fit into one snapshot (FSM-017)."""
    size = 0
    for found in slots.values():
        if type(found) is str:
            size += len(found)
    if size * ESCAPED_MAX > SLOTS_BYTES_MAX and len(encode(dict(slots))) > SLOTS_BYTES_MAX:
        raise unsealable(f"The slots would hold more than {SLOTS_BYTES_MAX} bytes together.")


def require_secrets(secrets: object) -> None:
    """Return if these are commitments, as many as an envelope holds (FSM-017)."""
    if not isinstance(secrets, tuple | list) or len(secrets) > SECRETS_MAX:
        raise unsealable(f"Secrets are a list of up to {SECRETS_MAX}.")
    if not all(map(_committed, secrets)):
        raise unsealable("A secret is a commitment of plain short texts.")


def require_result(out: object, outcome: object, secrets: object) -> None:
    """Return if this is slots with values, a short outcome, and commitments (FSM-017)."""
    if not isinstance(out, Mapping) or not is_text(outcome, NAME_MAX):
        raise unsealable("An answer has slots with values, and a short outcome.")
    require_secrets(secrets)


def is_text(found: object, most: int) -> bool:
    """Whether this is a text of up to ``most`` characters with a canonical form."""
    if type(found) is not str or len(found) > most:
        return False
    return found.isascii() or is_sealable(found)


def cut(said: object, most: int) -> str:
    """What of a failure's text can be sealed; never empty if it had any."""
    if type(said) is not str:
        return UNNAMED if said else ""
    return said if is_text(said, most) else said[:most].encode("utf-8", "replace").decode("utf-8")


def _committed(secret: Any) -> bool:
    return isinstance(secret, Commitment) and all(
        type(each) is str and each.isascii() and each.isprintable() and len(each) <= SECRET_MAX
        for each in secret
    )


def unsealable(text: str) -> RefusedError:
    """The refusal of what no envelope holds."""
    return RefusedError("FSM-017", text)
