"""Tools and grants: what may be called, with which arguments, and where they must come from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from nanovm_core.core.arguments import REF as REF
from nanovm_core.core.arguments import ArgSpec as ArgSpec
from nanovm_core.core.arguments import Constraint as Constraint
from nanovm_core.core.arguments import within
from nanovm_core.core.canonical import Json, digest, encode
from nanovm_core.core.messages import Scalar
from nanovm_core.errors import RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a critical argument must come from: a slot, or a constant of the program's own."""

    slot: str = ""
    constant: Scalar | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """Which arguments say how much a call costs; ``currency_is`` where none says the currency."""

    amount: str
    currency: str = ""
    currency_is: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool's argument schema. ``critical`` maps an argument to what it must equal."""

    name: str
    args: Mapping[str, ArgSpec] = field(default_factory=dict)
    critical: Mapping[str, Source] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    money: Money | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The right to call one tool, its arguments held to ``where``, until ``expires_ms``.

    ``expires_ms`` is absolute; 0 is never. ``narrowed_from`` holds the ids of the grants that
    this one was narrowed from, and of the blocks that handed it on, so that it falls with each
    of them; ``attenuate`` and ``delegation.inspect`` set it.
    """

    tool: str
    where: Mapping[str, Constraint] = field(default_factory=dict)
    expires_ms: int = 0
    narrowed_from: tuple[str, ...] = ()


# --- grants ----------------------------------------------------------------------------------


def grant_id(grant: Grant) -> str:
    """The name by which a grant is revoked: the hash of what it allows, 64 hex digits."""
    where = {name: bounds_of(limit) for name, limit in grant.where.items()}
    body = {"tool": grant.tool, "where": where, "expires_ms": grant.expires_ms}
    return digest(b"nanovm/grant/v1\0", encode(body))


def resolve(grants: Mapping[str, Grant], tool: str) -> Grant:
    """Find the grant for a tool by its exact name; a tool without one does not exist here."""
    grant = grants.get(tool)
    if grant is None:
        raise ungranted()
    return grant


def ungranted() -> RefusedError:
    """What a call of a tool without a grant is refused with; it does not repeat the name."""
    return RefusedError("CAP-001", "The proposed tool was never granted.")


def narrower(inner: Grant, outer: Grant) -> bool:
    """Whether whatever ``inner`` allows, at any time and over any slots, ``outer`` allows too."""
    lives = not outer.expires_ms or 0 < inner.expires_ms <= outer.expires_ms
    free = Constraint()
    return (
        inner.tool == outer.tool
        and lives
        and all(_implies(inner.where.get(name, free), c) for name, c in outer.where.items())
    )


def attenuate(grants: Mapping[str, Grant], wanted: Iterable[Grant]) -> Mapping[str, Grant]:
    """The wanted grants by tool, each narrower than the one it comes from.

    Each falls with every grant on its way here: those it was narrowed from before, too.

    Raises:
        RefusedError: CAP-030 where one would widen, names a tool that is not granted, or comes
            twice.
    """
    narrowed: dict[str, Grant] = {}
    for inner in wanted:
        outer = grants.get(inner.tool)
        if outer is None or inner.tool in narrowed or not narrower(inner, outer):
            raise RefusedError("CAP-030", "A grant can only be narrowed, and once per tool.")
        lineage = dict.fromkeys((*outer.narrowed_from, grant_id(outer), *inner.narrowed_from))
        narrowed[inner.tool] = replace(inner, narrowed_from=tuple(lineage))
    return MappingProxyType(narrowed)


def bounds_of(limit: Constraint) -> dict[str, Json]:
    """A constraint in its canonical form: the bounds that bind."""
    found: dict[str, Json] = {
        "min": limit.min,
        "max": limit.max,
        "prefix": limit.prefix,
        "equals_slot": limit.equals_slot,
    }
    if limit.one_of is not None:
        found["one_of"] = list(limit.one_of)
    return {name: value for name, value in found.items() if value is not None}


def _implies(inner: Constraint, outer: Constraint) -> bool:
    """Whether every value within ``inner`` lies within ``outer``.

    Each bound of one sort is compared with bounds of that sort, and a finite set is tried out;
    so the answer may be a no too many, and never a yes.
    """
    if inner.one_of is not None:
        options = [each for each in inner.one_of if within(inner, each)]
        fits = all(within(outer, each) for each in options)
        empty = not options
    else:
        fits, empty = _range_implies(inner, outer)
    return empty or (fits and outer.equals_slot in (None, inner.equals_slot))


def _range_implies(inner: Constraint, outer: Constraint) -> tuple[bool, bool]:
    """Whether a constraint without a set lies within another one, and whether it is empty."""
    low, high = inner.min, inner.max
    numbers = low is not None or high is not None
    empty = numbers and inner.prefix is not None
    if low is not None and high is not None and low > high:
        empty = True
    fits = (
        outer.one_of is None
        and (outer.min is None or (low is not None and low >= outer.min))
        and (outer.max is None or (high is not None and high <= outer.max))
        and (
            outer.prefix is None
            or (inner.prefix is not None and inner.prefix.startswith(outer.prefix))
        )
    )
    return fits, empty
