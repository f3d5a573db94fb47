"""The schema and the constraints of one argument, compiled into closures."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from nanovm_core.core.canonical import INTEGER_MAX
from nanovm_core.core.messages import Scalar, Slots, Value
from nanovm_core.decimals import Number, decimal_of, digits_of, minor_of
from nanovm_core.errors import ProgramError, RefusedError

REF = re.compile(
    r"vault://secret/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)
PLACEHOLDER = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}")

Reader = Callable[[object, Slots], Value]  # (value, slots) → the typed value, or a refusal
Intake = Callable[[object], object]  # what a model wrote → what a reader takes, or a refusal
Holds = Callable[[Value, Slots], bool]

DECIMAL, LIST = "decimal", "list"
ITEMS = MappingProxyType({"string": str, "integer": int, "boolean": bool, DECIMAL: int})
KINDS: Mapping[str, type] = MappingProxyType({**ITEMS, "ref": str})  # of what is no list


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgSpec:
    """An argument's type, and its bounds (integers) or length in characters (strings).

    A decimal and its bounds are minor units; a list's bounds are its items'. An ``optional``
    argument that is left out is its ``default``, else absent, and nothing bounds it. ``plain``: of
    printable ASCII, no blank at either end, so that nothing looks like another value.
    """

    type: str  # integer, string, boolean, ref, decimal, list
    min: int | None = None
    max: int | None = None
    length_max: int = 256
    plain: bool = False
    one_of: tuple[Scalar, ...] | None = None
    optional: bool = False
    default: Value | None = None
    currency: str = ""
    digits: int = 0
    of: str = ""  # the type of a list's items
    items_max: int = 16

    @property
    def may_lack(self) -> bool:
        """Whether a typed call may be without it."""
        return self.optional and self.default is None

    @property
    def item(self) -> str:
        """Its type, of a list its items'."""
        return self.of if self.type == LIST else self.type

    @property
    def places(self) -> int:
        """The digits after a decimal's point."""
        return digits_of(self.currency) if self.currency else self.digits


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


def intake(name: str, spec: ArgSpec) -> Intake:
    """Compile what ``reader`` takes of what a model wrote: decimals in minor units.

    CAP-005: no such decimal. CAP-012: a fraction in place of another type.
    """
    digits = spec.places

    def take(value: object) -> object:
        if isinstance(value, list) and spec.type == LIST:
            return [*map(take, value)]
        if spec.item == DECIMAL and (found := minor_of(value, digits)) is not None:
            return found
        if spec.item == DECIMAL:
            text = f"The argument {name!r} must be a decimal of at most {digits} digits after the"
            raise RefusedError("CAP-005", f"{text} point, as {decimal_of(9870, digits)}.")
        if isinstance(value, Number):
            text = f"The argument {name!r} has a fraction: write an integer or a string."
            raise RefusedError("CAP-012", text)
        return value

    return take


def reader(name: str, spec: ArgSpec, slot: str) -> Reader:
    """Compile the check that returns one argument typed, or refuses it (CAP-005, -006, -019).

    A ``ref`` may also be exactly what ``slot``, its source, holds. A list is returned as a tuple.
    PRG-002: an unknown type.
    """
    if spec.type != LIST:
        return _scalar_reader(name, spec, slot)
    if spec.of not in ITEMS:
        raise ProgramError("PRG-002", f"the list {name!r} is of the unknown type {spec.of!r}")
    read_item, items_max = _scalar_reader(name, replace(spec, type=spec.of), ""), spec.items_max

    def read(value: object, slots: Slots) -> Value:
        if not isinstance(value, list | tuple):
            raise RefusedError("CAP-005", f"The argument {name!r} must be a list.")
        if len(value) > items_max:
            raise RefusedError("CAP-006", f"The argument {name!r} exceeds {items_max} items.")
        # No placeholder is filled in a list, and none is left to a later reader.
        if any(isinstance(each, str) and PLACEHOLDER.fullmatch(each) for each in value):
            raise RefusedError("CAP-005", f"The list {name!r} may not hold a placeholder.")
        return tuple([read_item(each, slots) for each in value])

    return read


def _scalar_reader(name: str, spec: ArgSpec, slot: str) -> Callable[[object, Slots], Scalar]:
    kind = KINDS.get(spec.type)
    if kind is None:
        raise ProgramError("PRG-002", f"the argument {name!r} is of the unknown type {spec.type!r}")
    is_ref, length_max = spec.type == "ref", spec.length_max
    must = "a vault ref or a {{slot}} placeholder" if is_ref else f"of type {spec.type}"
    low, high = _range(spec)
    # Only the argument's own type: True is not 1.
    listed = None if spec.one_of is None else frozenset(v for v in spec.one_of if type(v) is kind)

    def read(value: object, slots: Slots) -> Scalar:
        known = type(value) is kind
        if is_ref and known:
            known = bool(slot and value == slots.get(slot)) or bool(REF.fullmatch(str(value)))
        if not known:
            raise RefusedError("CAP-005", f"The argument {name!r} must be {must}.")
        if kind is int and not low <= value <= high:  # type: ignore[operator]
            raise RefusedError("CAP-006", f"The argument {name!r} must be in {low}…{high}.")
        if kind is str and len(value) > length_max:  # type: ignore[arg-type]
            raise RefusedError("CAP-006", f"The argument {name!r} exceeds {length_max} characters.")
        if spec.plain and not _is_plain(str(value)):
            raise RefusedError("CAP-019", f"The argument {name!r} is more than printable ASCII.")
        if listed is not None and value not in listed:
            raise RefusedError(
                "CAP-006", f"The argument {name!r} is not one of the allowed values."
            )
        return value  # type: ignore[return-value]

    return read


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip()


def holds_to(limit: Constraint) -> Holds:
    """Compile the check that a value, or each of a list, lies within a constraint."""
    slot = limit.equals_slot

    def holds(value: Value, slots: Slots) -> bool:
        if type(value) is tuple:
            return all(holds(each, slots) for each in value)
        return within(limit, value) and (slot is None or same(slots.get(slot), value))

    return holds


def within(limit: Constraint, value: Value) -> bool:
    """Whether a value that is no list is within the bounds that read no slot."""
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
