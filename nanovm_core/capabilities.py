"""Tools, grants and warrants: what may be called, with what, and the proof that it may."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nanovm_core.canonical import Json, digest, encode, parse_untrusted
from nanovm_core.errors import CanonicalError, RefusedError
from nanovm_core.messages import Args, Scalar, Warrant

PROPOSAL_BYTES_MAX = 16_384  # what one screen of JSON holds; the page shows the same limit
REF = re.compile(
    r"vault://secret/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)
PLACEHOLDER = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgSpec:
    """The type of one argument, and its bounds (integers) or length in characters (strings)."""

    type: str  # integer, string, boolean, ref
    min: int | None = None
    max: int | None = None
    length_max: int = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool's argument schema. ``critical`` maps an argument to the slot it must equal."""

    name: str
    args: Mapping[str, ArgSpec] = field(default_factory=dict)
    critical: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """What a grant lets one argument be; an absent bound does not bind."""

    one_of: tuple[Scalar, ...] | None = None
    min: int | None = None
    max: int | None = None
    prefix: str | None = None
    equals_slot: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The right to call one tool, its arguments held to ``where``."""

    tool: str
    where: Mapping[str, Constraint] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call that was read strictly; nothing is said of whether it is allowed."""

    tool: str
    args: Mapping[str, Json]


def read_proposal(raw: bytes) -> Call:
    """Read a model's bytes as exactly one ``{"tool": …, "args": {…}}``.

    Raises:
        RefusedError: CAP-010, whatever is wrong; the text names the first fault.
    """
    try:
        value = parse_untrusted(raw, size_max=PROPOSAL_BYTES_MAX)
    except CanonicalError as error:
        raise RefusedError("CAP-010", f"The proposal is refused as JSON: {error.text}") from error
    if not isinstance(value, Mapping) or set(value) != {"tool", "args"}:
        raise RefusedError(
            "CAP-010", 'A proposal is an object with the two keys "tool" and "args", no others.'
        )
    tool, args = value["tool"], value["args"]
    if not isinstance(tool, str) or not isinstance(args, Mapping):
        raise RefusedError("CAP-010", '"tool" must be a string and "args" an object.')
    return Call(tool=tool, args=args)


def resolve(grants: Mapping[str, Grant], tool: str) -> Grant:
    """Find the grant for a tool by its exact name; a tool without one does not exist here."""
    grant = grants.get(tool)
    if grant is None:
        raise RefusedError("CAP-001", "The proposed tool was never granted.")
    return grant


def normalise(args: Mapping[str, Json], slots: Args) -> dict[str, Json]:
    """Replace each whole-string ``{{slot}}`` by that slot's value; leave the rest as it is."""
    return {name: _filled(value, slots) for name, value in args.items()}


def check_schema(tool: Tool, args: Mapping[str, Json]) -> dict[str, Scalar]:
    """Hold arguments to the tool's schema and return them typed; unknown and missing deny."""
    for name in args:
        if name not in tool.args:
            raise RefusedError(
                "CAP-003", f"The call has an argument that {tool.name} does not know."
            )
    for name in tool.args:
        if name not in args:
            raise RefusedError("CAP-004", f"{tool.name} needs the argument {name!r}.")
    return {name: _typed(name, spec, args[name]) for name, spec in tool.args.items()}


def check_grant(grant: Grant, args: Args, slots: Args) -> None:
    """Hold typed arguments to what the grant allows.

    Raises:
        RefusedError: CAP-006, naming the argument and never its value.
    """
    for name, constraint in grant.where.items():
        if not _within(constraint, args[name], slots):
            raise RefusedError("CAP-006", f"The argument {name!r} lies outside the grant.")


def check_provenance(tool: Tool, args: Args, slots: Args) -> None:
    """Demand that each critical argument equals the slot a deterministic step filled."""
    for name, slot in tool.critical.items():
        known = slots.get(slot)
        if not _same(known, args[name]):
            raise RefusedError(
                "POL-010", f"The argument {name!r} is not what the document gave for {slot!r}."
            )


def mint(binding: Mapping[str, Json], *, at_ms: int, ttl_ms: int) -> Warrant:
    """Make the warrant for one call: run, program, step, tool, key and exact arguments."""
    expires_ms = at_ms + ttl_ms
    return Warrant(id=_warrant_id(binding, expires_ms), expires_ms=expires_ms)


def authorize(warrant: Warrant | None, binding: Mapping[str, Json], *, at_ms: int) -> None:
    """Return if this warrant covers exactly this call now.

    Raises:
        RefusedError: CAP-020 where it is absent or for another call, CAP-021 where it is late.
    """
    if warrant is None or warrant.id != _warrant_id(binding, warrant.expires_ms):
        raise RefusedError("CAP-020", "The call in hand is not the one the warrant was made for.")
    if at_ms >= warrant.expires_ms:
        raise RefusedError("CAP-021", "The warrant ran out before the call was made.")


def _warrant_id(binding: Mapping[str, Json], expires_ms: int) -> str:
    return digest(b"nanovm/warrant/v1\0", encode({**binding, "expires_ms": expires_ms}))


def _filled(value: Json, slots: Args) -> Json:
    match = PLACEHOLDER.fullmatch(value) if isinstance(value, str) else None
    return slots.get(match.group(1), value) if match else value


def _typed(name: str, spec: ArgSpec, value: Json) -> Scalar:
    kinds: dict[str, type] = {"integer": int, "boolean": bool, "string": str, "ref": str}
    if type(value) is not kinds[spec.type]:
        raise RefusedError("CAP-005", f"The argument {name!r} must be of type {spec.type}.")
    if isinstance(value, str):
        _check_text(name, spec, value)
        return value
    if isinstance(value, int):
        _check_range(name, spec, value)
        return value
    raise RefusedError("CAP-005", f"The argument {name!r} must be of type {spec.type}.")


def _check_range(name: str, spec: ArgSpec, value: int) -> None:
    low, high = spec.min, spec.max
    if (low is not None and value < low) or (high is not None and value > high):
        raise RefusedError("CAP-006", f"The argument {name!r} must lie in {low}…{high}.")


def _check_text(name: str, spec: ArgSpec, value: str) -> None:
    if spec.type == "ref" and not REF.fullmatch(value):
        raise RefusedError(
            "CAP-005", f"The argument {name!r} must be a vault ref or a {{{{slot}}}} placeholder."
        )
    if len(value) > spec.length_max:
        raise RefusedError(
            "CAP-006", f"The argument {name!r} is over {spec.length_max} characters."
        )


def _same(known: Scalar | None, value: Scalar) -> bool:
    """Equal and of one type: a boolean is no integer."""
    return type(known) is type(value) and known == value


def _within(constraint: Constraint, value: Scalar, slots: Args) -> bool:
    same = {type(option) for option in constraint.one_of or ()}
    checks: Sequence[bool] = (
        constraint.one_of is None or (type(value) in same and value in constraint.one_of),
        constraint.min is None or (type(value) is int and value >= constraint.min),
        constraint.max is None or (type(value) is int and value <= constraint.max),
        constraint.prefix is None
        or (isinstance(value, str) and value.startswith(constraint.prefix)),
        constraint.equals_slot is None or _same(slots.get(constraint.equals_slot), value),
    )
    return all(checks)
