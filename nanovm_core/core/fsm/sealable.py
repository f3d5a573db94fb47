"""What can be sealed of an event: nothing is taken that an envelope or a snapshot cannot hold."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from nanovm_core.core.canonical import INTEGER_MAX, encode
from nanovm_core.core.events import (
    AnswerArrived,
    EffectDone,
    EffectFailed,
    EffectUnknown,
    EffectWaiting,
    Event,
    ProposalReceived,
)
from nanovm_core.core.messages import Args, Commitment, Scalar
from nanovm_core.errors import CanonicalError, RefusedError

PLAIN_MAX = 4_096  # characters of a plain text that an envelope holds whatever they are
SAID_MAX = 2_000  # characters of what a failure says; more is cut off
NAME_MAX = 200  # characters of a code, an outcome
SECRETS_MAX = 256  # commitments of one answer, each of
SECRET_MAX = 128  # characters a field
SLOTS_BYTES_MAX = 262_144  # all slots in one: with both calls in it, a snapshot holds them thrice
ESCAPED_MAX = 6  # bytes of a character in canonical JSON, at most
UNNAMED = "?"
SAYING = {EffectFailed, EffectUnknown, EffectWaiting, AnswerArrived, ProposalReceived}
_MAPPINGS = (dict, MappingProxyType)


def value(found: Scalar) -> bool:
    """Whether an envelope could hold a value: what cannot be sealed must not be taken."""
    if type(found) is bool or (type(found) is str and found.isascii() and len(found) <= PLAIN_MAX):
        return True
    try:
        encode(found)
    except CanonicalError:
        return False
    return True


def require_slots(slots: Args) -> None:
    """Return if all slots together fit into a snapshot, with all that it holds beside them.

    Raises:
        RefusedError: FSM-017.
    """
    size = 0
    for found in slots.values():
        if type(found) is str:
            size += len(found)
    if size * ESCAPED_MAX > SLOTS_BYTES_MAX and len(encode(dict(slots))) > SLOTS_BYTES_MAX:
        raise _unsealable(f"The slots would hold more than {SLOTS_BYTES_MAX} bytes together.")


def require_secrets(secrets: object) -> None:
    """Return if these are commitments, as many as an envelope holds.

    Raises:
        RefusedError: FSM-017.
    """
    if not isinstance(secrets, tuple | list) or len(secrets) > SECRETS_MAX:
        raise _unsealable(f"Secrets are a list of up to {SECRETS_MAX}.")
    if not all(map(_committed, secrets)):
        raise _unsealable("A secret is a commitment of plain short texts.")


def is_bare(event: Event) -> bool:
    """Whether an event has no words of its own: most have none."""
    if type(event) is EffectDone:
        return event.secrets == () and event.outcome == "done" and type(event.out) in _MAPPINGS
    return type(event) not in SAYING


def require(event: Event) -> None:
    """Return if what an event says can be sealed; a failure's own words are cut, not refused.

    Raises:
        RefusedError: FSM-017.
    """
    if isinstance(event, AnswerArrived) and event.code:
        return
    if isinstance(event, EffectFailed | EffectUnknown):
        return
    if isinstance(event, EffectDone | AnswerArrived):
        if not _slots(event.out) or not _text(event.outcome, NAME_MAX):
            raise _unsealable("An answer has slots with values, and a short outcome.")
        require_secrets(event.secrets)
    elif isinstance(event, EffectWaiting) and type(event.until_ms) is not int:
        raise _unsealable("A time is an integer of milliseconds.")
    elif isinstance(event, ProposalReceived):
        require_secrets([event.secret] if event.secret else [])


def told(event: Event) -> Event:
    """The event as it can be sealed, refused or not.

    What a failure says is cut, for a known failure must not get
    lost over its words; a count of tokens that is no number is all that was reserved.
    """
    changes: dict[str, Any] = {}
    if isinstance(event, EffectFailed | EffectUnknown | AnswerArrived):
        for name, most in (("code", NAME_MAX), ("text", SAID_MAX)):
            said = getattr(event, name)
            if not _text(said, most):
                changes[name] = _cut(said, most)
    elif isinstance(event, ProposalReceived):
        if type(event.tokens) is not int:
            changes["tokens"] = INTEGER_MAX
        if event.secret is not None and not _committed(event.secret):
            changes["secret"] = None
    return replace(event, **changes) if changes else event


def _text(found: object, most: int) -> bool:
    """Whether this is a text of up to so many characters that has a canonical form."""
    if type(found) is not str or len(found) > most:
        return False
    return found.isascii() or value(found)


def _slots(found: object) -> bool:
    return isinstance(found, Mapping)


def _cut(said: object, most: int) -> str:
    """What of a failure's words can be sealed; where there are some, some are left."""
    if type(said) is not str:
        return UNNAMED if said else ""
    return said[:most].encode("utf-8", "replace").decode("utf-8")


def _committed(secret: Any) -> bool:
    return isinstance(secret, Commitment) and all(
        type(each) is str and each.isascii() and each.isprintable() and len(each) <= SECRET_MAX
        for each in secret
    )


def _unsealable(text: str) -> RefusedError:
    return RefusedError("FSM-017", text)
