"""What a body says: one strict reader for all doors, and the writer of what it read."""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from gate.replies import DONE, FAILED, UNKNOWN, GateError
from nanovm_core.conditions.errors import HIDDEN
from nanovm_core.core.canonical import DEPTH_MAX, UNTRUSTED_DEPTH_MAX, parse_untrusted
from nanovm_core.core.messages import NOTHING
from nanovm_core.core.proposals import written as proposal
from nanovm_core.errors import CanonicalError

BODY_BYTES_MAX = 65_536  # a call is read whole before it is judged
OUTCOMES = (DONE, FAILED, UNKNOWN)  # of a report
CODE = re.compile("[A-Za-z0-9_.-]{0,64}")
TEXT_CHARS_MAX = 1_024  # of a report's text, which is sealed in clear
TEXT = re.compile(f"[^{HIDDEN}]{{0,{TEXT_CHARS_MAX}}}")  # which a person reads as it is


def read(body: bytes, *, depth_max: int = UNTRUSTED_DEPTH_MAX) -> Any:
    """The JSON of a body; a number with a fraction is a ``canonical.Number``, never a float.

    Raises:
        GateError: GAT-006 for more than BODY_BYTES_MAX, GAT-005 for what parsers disagree on; no
            text quotes the bytes.
    """
    if len(body) > BODY_BYTES_MAX:
        raise GateError("GAT-006")
    try:
        return parse_untrusted(body, size_max=BODY_BYTES_MAX, depth_max=depth_max, decimals=True)
    except CanonicalError as error:
        raise GateError("GAT-005", f"The body is not strict JSON: {error.text}.") from error


def asked(body: bytes) -> tuple[str, bytes]:
    """The request id and the proposal of a body that asks for a call (GAT-005, GAT-006)."""
    said = _fields(read(body), {"request": str, "tool": str, "args": dict})
    return said["request"], proposal(said["tool"], said["args"])


def reported(body: bytes) -> dict[str, Any]:
    """What a report says, for ``calls.report`` (GAT-005, GAT-006).

    ``outcome``: done, failed (nothing happened) or unknown. ``result``: JSON. ``code`` and
    ``text``: why it failed.
    """
    value = read(body, depth_max=DEPTH_MAX)
    said = _fields(value, {"outcome": str}, {"result": object, "code": str, "text": str})
    if said["outcome"] not in OUTCOMES:
        raise GateError("GAT-005", "An outcome is done, failed or unknown.")
    if not TEXT.fullmatch(said.get("text", "")):
        raise GateError("GAT-005", f"A text is a line of {TEXT_CHARS_MAX:,} visible characters.")
    if not CODE.fullmatch(said.get("code", "")):
        raise GateError("GAT-005", "A code is up to 64 of A-Z a-z 0-9 _ . -")
    if "result" not in said:
        return said
    result = written(said["result"])
    try:
        orjson.loads(result)
    except ValueError as error:  # 1e400
        raise GateError("GAT-005", "The result has a number that readers lose.") from error
    return {**said, "result": result}


def _fields(
    value: Any, needed: Mapping[str, type], others: Mapping[str, type] = NOTHING
) -> dict[str, Any]:
    """The object that has these keys, each value of its type."""
    kinds = {**needed, **others}
    if not isinstance(value, dict) or not needed.keys() <= value.keys() <= kinds.keys():
        raise GateError("GAT-005", f"The body must be an object with the keys {', '.join(kinds)}.")
    for name, each in value.items():
        if not isinstance(each, kinds[name]):
            raise GateError("GAT-005", f"{name!r} is of another type than the schema says.")
    return value


def written(value: Any) -> bytes:
    """A value as JSON, each number as it was read."""
    exact = orjson.OPT_PASSTHROUGH_DATACLASS
    return orjson.dumps(value, lambda number: orjson.Fragment(number.text), exact)
