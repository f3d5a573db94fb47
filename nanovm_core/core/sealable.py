"""What an envelope or a snapshot can hold; events that say more cannot be constructed."""

from collections.abc import Mapping
from typing import Any

from nanovm_core.core.canonical import encode
from nanovm_core.core.messages import Args, Commitment, Scalar
from nanovm_core.errors import CanonicalError, RefusedError

PLAIN_MAX = 4_096  # characters of ASCII that any envelope holds
SAID_MAX = 2_000  # characters of a failure's text; the rest is cut
NAME_MAX = 200  # characters of a code, an outcome
SECRETS_MAX = 256  # commitments of one answer, each of
SECRET_MAX = 128  # characters a field
SLOTS_BYTES_MAX = 262_144  # all slots; a snapshot with both calls holds them thrice
ESCAPED_MAX = 6  # bytes of a character in canonical JSON, at most
UNNAMED = "?"


def value(found: Scalar) -> bool:
    """Whether an envelope could hold a value."""
    if type(found) is bool or (type(found) is str and found.isascii() and len(found) <= PLAIN_MAX):
        return True
    try:
        encode(found)
    except CanonicalError:
        return False
    return True


def require_slots(slots: Args) -> None:
    """Return if all slots fit into one snapshot.

    Raises:
        RefusedError: FSM-017.
    """
    size = 0
    for found in slots.values():
        if type(found) is str:
            size += len(found)
    if size * ESCAPED_MAX > SLOTS_BYTES_MAX and len(encode(dict(slots))) > SLOTS_BYTES_MAX:
        raise unsealable(f"The slots would hold more than {SLOTS_BYTES_MAX} bytes together.")


def require_secrets(secrets: object) -> None:
    """Return if these are commitments, as many as an envelope holds.

    Raises:
        RefusedError: FSM-017.
    """
    if not isinstance(secrets, tuple | list) or len(secrets) > SECRETS_MAX:
        raise unsealable(f"Secrets are a list of up to {SECRETS_MAX}.")
    if not all(map(_committed, secrets)):
        raise unsealable("A secret is a commitment of plain short texts.")


def require_result(out: object, outcome: object, secrets: object) -> None:
    """Return if this is a result: slots with values, a short outcome, and commitments.

    Raises:
        RefusedError: FSM-017.
    """
    if not isinstance(out, Mapping) or not is_text(outcome, NAME_MAX):
        raise unsealable("An answer has slots with values, and a short outcome.")
    require_secrets(secrets)


def is_text(found: object, most: int) -> bool:
    """Whether this is a text of up to ``most`` characters that has a canonical form."""
    if type(found) is not str or len(found) > most:
        return False
    return found.isascii() or value(found)


def cut(said: object, most: int) -> str:
    """The part of a failure's words that can be sealed; never empty for a failure with words."""
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
