"""The schema and the constraints of one argument, compiled into closures."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nanovm_core.core.canonical import INTEGER_MAX
from nanovm_core.core.messages import Args, Scalar
from nanovm_core.errors import ProgramError, RefusedError

REF = re.compile(
    r"vault://secret/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)
PLACEHOLDER = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}")

Reader = Callable[[object, Args], Scalar]  # (value, slots) → the typed value, or a refusal
Holds = Callable[[Scalar, Args], bool]

_KINDS: Mapping[str, type] = {"integer": int, "boolean": bool, "string": str, "ref": str}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgSpec:
    """An argument's type, and its bounds (integers) or length in characters (strings)."""

    type: str  # integer, string, boolean, ref
    min: int | None = None
    max: int | None = None
    length_max: int = 256
    one_of: tuple[Scalar, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """What a grant lets one argument be; an absent bound does not bind."""

    one_of: tuple[Scalar, ...] | None = None
    min: int | None = None
    max: int | None = None
    prefix: str | None = None
    equals_slot: str | None = None
    origin: str | None = None  # the least trusted one that the argument may have


def same(known: object, value: object) -> bool:
    """Equal and of one type: a boolean is no integer, and nothing equals a missing value."""
    return known is not None and type(known) is type(value) and known == value


def reader(name: str, spec: ArgSpec, slot: str) -> Reader:
    """Compile the check that returns one argument typed, or refuses it (CAP-005, CAP-006).

    A ``ref`` may also be exactly what ``slot``, its source, holds. PRG-002: an unknown type.
    """
    kind = _KINDS.get(spec.type)
    if kind is None:
        raise ProgramError("PRG-002", f"the argument {name!r} is of the unknown type {spec.type!r}")
    is_ref, length_max = spec.type == "ref", spec.length_max
    must = "a vault ref or a {{slot}} placeholder" if is_ref else f"of type {spec.type}"
    low, high = _range(spec)
    # Only the argument's own type: True is not 1.
    listed = None if spec.one_of is None else frozenset(v for v in spec.one_of if type(v) is kind)

    def read(value: object, slots: Args) -> Scalar:
        known = type(value) is kind
        if is_ref and known:
            known = bool(slot and value == slots.get(slot)) or bool(REF.fullmatch(str(value)))
        if not known:
            raise RefusedError("CAP-005", f"The argument {name!r} must be {must}.")
        if kind is int and not low <= value <= high:  # type: ignore[operator]
            raise RefusedError("CAP-006", f"The argument {name!r} must be in {low}…{high}.")
        if kind is str and len(value) > length_max:  # type: ignore[arg-type]
            raise RefusedError("CAP-006", f"The argument {name!r} exceeds {length_max} characters.")
        if listed is not None and value not in listed:
            raise RefusedError(
                "CAP-006", f"The argument {name!r} is not one of the allowed values."
            )
        return value  # type: ignore[return-value]

    return read


def holds_to(limit: Constraint) -> Holds:
    """Compile the check that a value lies within a constraint."""
    slot = limit.equals_slot
    if slot is None:
        return lambda value, _: within(limit, value)
    return lambda value, slots: within(limit, value) and same(slots.get(slot), value)


def within(limit: Constraint, value: Scalar) -> bool:
    """Whether a value is within the bounds that read no slot."""
    if limit.one_of is not None and not any(same(each, value) for each in limit.one_of):
        return False
    if limit.prefix is not None and not (isinstance(value, str) and value.startswith(limit.prefix)):
        return False
    if limit.min is None and limit.max is None:
        return True
    low, high = _range(limit)
    return type(value) is int and low <= value <= high


def _range(bound: ArgSpec | Constraint) -> tuple[int, int]:
    low = -INTEGER_MAX if bound.min is None else bound.min
    return low, INTEGER_MAX if bound.max is None else bound.max
