"""Proposals: a model's bytes become one tool call, or a refusal that names the fault."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from nanovm_core.core import canonical
from nanovm_core.core.canonical import Json, parse_untrusted, thaw
from nanovm_core.errors import CanonicalError, RefusedError

PROPOSAL_BYTES_MAX = 16_384  # one screen of JSON; the page shows it

NOT_A_CALL = "CAP-010"
NOT_PLAIN = "CAP-019"
# A fault of the canonical reader → the refusal of a proposal with it.
FAULTS: Mapping[str, str] = MappingProxyType(
    {
        "CAN-002": "CAP-012",  # 1.0, 1e400
        "CAN-003": "CAP-013",  # NaN, Infinity
        "CAN-004": "CAP-014",  # -0
        "CAN-005": "CAP-015",  # outside ±(2^53−1)
        "CAN-006": NOT_PLAIN,  # key not ASCII
        "CAN-007": "CAP-011",  # key twice
        "CAN-008": "CAP-018",  # half a surrogate pair
        "CAN-009": "CAP-016",  # too deep
        "CAN-010": "CAP-017",  # too large
        "CAN-011": "CAP-018",  # not UTF-8
        "CAN-012": "CAP-018",  # byte order mark
        "CAN-013": NOT_A_CALL,  # not JSON
    }
)

_PLAIN = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")  # printable ASCII, no blank at either end


class Call(NamedTuple):
    """A tool call, read strictly: ``raw``, as a model wrote it, or typed, with minor units."""

    tool: str
    args: Mapping[str, object]
    raw: bool = False


def read_proposal(raw: bytes) -> Call:
    """Read a model's bytes as exactly one ``{"tool": …, "args": {…}}``; nothing is repaired.

    No text quotes the bytes, which may be personal. A fraction in "args" is a ``Number``.

    Raises:
        RefusedError: CAP-010 for no such object, CAP-011 … CAP-019 for what parsers disagree on
            (``FAULTS``).
    """
    if type(raw) is not bytes:
        raise RefusedError(NOT_A_CALL, "A proposal must be bytes.")
    try:
        value = parsed(raw, PROPOSAL_BYTES_MAX)
    except CanonicalError as error:
        code = FAULTS.get(error.code, NOT_A_CALL)
        raise RefusedError(code, f"The proposal is not strict JSON: {error.text}.") from error
    if not isinstance(value, dict) or value.keys() != {"tool", "args"}:
        raise RefusedError(
            NOT_A_CALL, 'A proposal is an object with the two keys "tool" and "args", no others.'
        )
    tool, args = value["tool"], value["args"]
    if not isinstance(tool, str) or not isinstance(args, dict):
        raise RefusedError(NOT_A_CALL, '"tool" must be a string and "args" an object.')
    for name in (tool, *args):
        if not _PLAIN.fullmatch(name):
            raise RefusedError(
                NOT_PLAIN, "A name has a character beyond printable ASCII, or a trailing space."
            )
    return Call(tool=tool, args=MappingProxyType(args), raw=True)


def parsed(raw: bytes, size_max: int) -> Json:
    """Strict JSON (CAN-…): "args" of an object may hold a ``Number``."""
    value = parse_untrusted(raw, size_max=size_max, decimals=True)
    thaw({**value, "args": None} if isinstance(value, dict) else value)
    return value


def written(tool: str, args: Mapping[str, Any]) -> bytes:
    """The bytes of a proposal, its numbers as they were (CAN-…: something has no JSON)."""
    return canonical.written({"tool": tool, "args": dict(args)})
