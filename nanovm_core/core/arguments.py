"""Arguments: what one may be, by schema and by grant, compiled into closures."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nanovm_core.core.canonical import INTEGER_MAX, Json
from nanovm_core.core.messages import Args, Scalar
from nanovm_core.errors import ProgramError, RefusedError

REF = re.compile(
    r"vault://secret/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)
PLACEHOLDER = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}")

Reader = Callable[[object, Args], Scalar]  # an argument's value and the slots → the value, held
Holds = Callable[[Scalar, Args], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgSpec:
    """The type of one argument, and its bounds (integers) or length in characters (strings)."""

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


def normalise(args: Mapping[str, Json], slots: Args) -> dict[str, Json]:
    """Replace each whole-string ``{{slot}}`` by that slot's value; leave the rest as it is."""
    return {name: filled(value, slots) for name, value in args.items()}


def filled(value: Json, slots: Args) -> Json:
    """The value of the slot that a whole-string ``{{slot}}`` names; any other value as it is."""
    match = PLACEHOLDER.fullmatch(value) if isinstance(value, str) else None
    return slots.get(match[1], value) if match else value


def same(known: object, value: object) -> bool:
    """Equal and of one type: a boolean is no integer, and nothing equals what is missing."""
    return known is not None and type(known) is type(value) and known == value


def reader(name: str, spec: ArgSpec, slot: str) -> Reader:
    """What holds one argument to its schema and returns it, or refuses (CAP-005, CAP-006).

    A ``ref`` may also be exactly what ``slot``, its source, holds.
    """
    if spec.type == "integer":
        return _integer(name, spec)
    if spec.type == "boolean":
        return _boolean(name, spec)
    if spec.type == "string":
        return _text(name, spec)
    if spec.type == "ref":
        return _ref(name, spec, slot)
    raise ProgramError("PRG-002", f"the argument {name!r} is of the unknown type {spec.type!r}")


def _integer(name: str, spec: ArgSpec) -> Reader:
    low = -INTEGER_MAX if spec.min is None else spec.min
    high = INTEGER_MAX if spec.max is None else spec.max
    options = _options(spec, int)

    def read(value: object, _: Args) -> Scalar:
        if type(value) is not int:
            raise _mistyped(name, "must be of type integer")
        if not low <= value <= high:
            raise RefusedError("CAP-006", f"The argument {name!r} must lie in {low}…{high}.")
        if options is not None and value not in options:
            raise _unlisted(name)
        return value

    return read


def _boolean(name: str, spec: ArgSpec) -> Reader:
    options = _options(spec, bool)

    def read(value: object, _: Args) -> Scalar:
        if type(value) is not bool:
            raise _mistyped(name, "must be of type boolean")
        if options is not None and value not in options:
            raise _unlisted(name)
        return value

    return read


def _text(name: str, spec: ArgSpec) -> Reader:
    length_max, options = spec.length_max, _options(spec, str)

    def read(value: object, _: Args) -> Scalar:
        if type(value) is not str:
            raise _mistyped(name, "must be of type string")
        if len(value) > length_max:
            raise RefusedError("CAP-006", f"The argument {name!r} is over {length_max} characters.")
        if options is not None and value not in options:
            raise _unlisted(name)
        return value

    return read


def _ref(name: str, spec: ArgSpec, slot: str) -> Reader:
    """A vault ref, or what its slot holds: a slot for refs holds nothing else."""
    text, is_ref = _text(name, spec), REF.fullmatch

    def read(value: object, slots: Args) -> Scalar:
        known = slots.get(slot) if slot else None
        if type(value) is not str or not (value == known or is_ref(value)):
            raise _mistyped(name, "must be a vault ref or a {{slot}} placeholder")
        return text(value, slots)

    return read


def _options(spec: ArgSpec, kind: type) -> frozenset[Scalar] | None:
    """The values that a schema lists, those of its type: True is not 1."""
    if spec.one_of is None:
        return None
    return frozenset(value for value in spec.one_of if type(value) is kind)


def _mistyped(name: str, must: str) -> RefusedError:
    return RefusedError("CAP-005", f"The argument {name!r} {must}.")


def _unlisted(name: str) -> RefusedError:
    return RefusedError("CAP-006", f"The argument {name!r} is none of the values it may have.")


def holds_to(limit: Constraint) -> Holds:
    slot = limit.equals_slot
    if slot is None:
        return lambda value, _: within(limit, value)
    return lambda value, slots: within(limit, value) and same(slots.get(slot), value)


def within(limit: Constraint, value: Scalar) -> bool:
    """Whether a value lies within the bounds that know no slots."""
    if limit.one_of is not None and not any(same(each, value) for each in limit.one_of):
        return False
    if limit.prefix is not None and not (isinstance(value, str) and value.startswith(limit.prefix)):
        return False
    if limit.min is None and limit.max is None:
        return True
    low = -INTEGER_MAX if limit.min is None else limit.min
    high = INTEGER_MAX if limit.max is None else limit.max
    return type(value) is int and low <= value <= high
