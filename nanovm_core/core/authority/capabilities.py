"""Tools and grants: what may be called, with which arguments, and from where."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from nanovm_core.core.authority.arguments import REF as REF
from nanovm_core.core.authority.arguments import ArgSpec as ArgSpec
from nanovm_core.core.authority.arguments import Constraint as Constraint
from nanovm_core.core.authority.arguments import within
from nanovm_core.core.authority.origin import ADVISOR, DOCUMENT, PROGRAM, Origins, least, meets, of
from nanovm_core.core.authority.windows import Rate
from nanovm_core.core.canonical import Json, digest, encode
from nanovm_core.core.messages import Scalar
from nanovm_core.errors import RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The slot or constant that a critical argument must equal, and the origin it demands."""

    slot: str = ""
    origin: str = ""
    constant: Scalar | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """Which arguments give a call's cost; ``currency_is`` where none gives the currency."""

    amount: str
    currency: str = ""
    currency_is: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool's argument schema. ``critical`` maps an argument to what it must equal.

    ``origin``: where its answers come from, whatever its arguments are. ``agent``: who uses it,
    unless the run's own agent does. ``at``: the upstream that performs it, else who asked does.
    ``pinned``: the hash of its description there. The kernel only carries both.
    """

    name: str
    args: Mapping[str, ArgSpec] = field(default_factory=dict)
    critical: Mapping[str, Source] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    money: Money | None = None
    origin: str = DOCUMENT
    agent: str = ""
    at: str = ""
    pinned: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The right to call one tool, its arguments held to ``where``, until ``expires_ms``.

    ``expires_ms`` is absolute; 0 is never. ``narrowed_from``: ids of the grants and blocks that it
    is revoked with; ``attenuate`` and ``delegation`` set it.
    """

    tool: str
    where: Mapping[str, Constraint] = field(default_factory=dict)
    expires_ms: int = 0
    narrowed_from: tuple[str, ...] = ()
    rate: Rate | None = None


def grant_id(grant: Grant) -> str:
    """The name that revokes a grant: the hash of what it allows, 64 hex digits."""
    return digest(b"nanovm/grant/v1\0", encode({"tool": grant.tool, **form_of(grant)}))


def form_of(grant: Grant) -> dict[str, Json]:
    """What a grant allows of its tool, how often and until when, as bytes can hold it."""
    where: dict[str, Json] = {name: bounds_of(limit) for name, limit in grant.where.items()}
    form: dict[str, Json] = {"where": where, "expires_ms": grant.expires_ms}
    if grant.rate is not None:
        form["rate"] = {"calls": grant.rate.calls, "within_ms": grant.rate.within_ms}
    return form


def resolve(grants: Mapping[str, Grant], tool: str) -> Grant:
    """The grant for a tool by its exact name (CAP-001)."""
    grant = grants.get(tool)
    if grant is None:
        raise ungranted()
    return grant


def ungranted() -> RefusedError:
    """The refusal of a tool without a grant; it names no tool."""
    return RefusedError("CAP-001", "The proposed tool is not on the tool allowlist.")


def narrower(inner: Grant, outer: Grant) -> bool:
    """Whether ``outer`` allows all that ``inner`` does, always and over any slots."""
    lives = not outer.expires_ms or 0 < inner.expires_ms <= outer.expires_ms
    free = Constraint()
    return (
        inner.tool == outer.tool
        and lives
        and _is_rarer(inner.rate, outer.rate)
        and all(_implies(inner.where.get(name, free), c) for name, c in outer.where.items())
    )


def _is_rarer(inner: Rate | None, outer: Rate | None) -> bool:
    if outer is None or inner is None:
        return outer is None
    return inner.calls <= outer.calls and inner.within_ms >= outer.within_ms


def attenuate(grants: Mapping[str, Grant], wanted: Iterable[Grant]) -> Mapping[str, Grant]:
    """The wanted grants by tool, each narrower than its origin and revoked with every origin.

    Raises:
        RefusedError: CAP-030 where one widens, names an ungranted tool, or repeats one.
    """
    narrowed: dict[str, Grant] = {}
    for inner in wanted:
        outer = grants.get(inner.tool)
        if outer is None or inner.tool in narrowed or not narrower(inner, outer):
            raise RefusedError("CAP-030", "A grant can only be narrowed, and only once per tool.")
        lineage = dict.fromkeys((*outer.narrowed_from, grant_id(outer), *inner.narrowed_from))
        narrowed[inner.tool] = replace(inner, narrowed_from=tuple(lineage))
    return MappingProxyType(narrowed)


def origin_of(name: str, tool: Tool, grant: Grant | None, origins: Origins) -> str:
    """The origin of one argument of a judged call: of all slots and constants that it must equal.

    What nothing pins down is the advisor's.
    """
    source = tool.critical.get(name, Source())
    limit = grant.where.get(name, Constraint()) if grant else Constraint()
    slots = [slot for slot in (source.slot, limit.equals_slot) if slot]
    if slots:
        return least(of(origins, slot) for slot in slots)
    return ADVISOR if source.constant is None else PROGRAM


def demands_of(tool: Tool, grant: Grant) -> Mapping[str, tuple[str, ...]]:
    """The origins that tool and grant demand of a call's arguments."""
    found: dict[str, tuple[str, ...]] = {}
    for name in tool.args:
        source, limit = tool.critical.get(name, Source()), grant.where.get(name, Constraint())
        if demanded := tuple(each for each in (source.origin, limit.origin) if each):
            found[name] = demanded
    return MappingProxyType(found)


def bounds_of(limit: Constraint) -> dict[str, Json]:
    """A constraint's canonical form: the bounds that it has."""
    found: dict[str, Json] = {"min": limit.min, "max": limit.max, "prefix": limit.prefix}
    found |= {"equals_slot": limit.equals_slot, "origin": limit.origin}
    if limit.one_of is not None:
        found["one_of"] = list(limit.one_of)
    return {name: value for name, value in found.items() if value is not None}


def _implies(inner: Constraint, outer: Constraint) -> bool:
    """Whether ``outer`` holds every value that ``inner`` does; errs to False only.

    A bound is compared with one of its kind; a finite set is tried.
    """
    if inner.one_of is not None:
        options = [each for each in inner.one_of if within(inner, each)]
        fits = all(within(outer, each) for each in options)
        empty = not options
    else:
        fits, empty = _range_implies(inner, outer)
    fits = fits and outer.equals_slot in (None, inner.equals_slot)
    # An origin is demanded of an absent argument and an empty list, too.
    meant = outer.origin is None or meets(inner.origin or "", outer.origin)
    return meant and (empty or fits)


def _range_implies(inner: Constraint, outer: Constraint) -> tuple[bool, bool]:
    low, high, prefix = inner.min, inner.max, inner.prefix
    numbers = low is not None or high is not None
    crossed = low is not None and high is not None and low > high
    fits = (
        outer.one_of is None
        and (outer.min is None or (low is not None and low >= outer.min))
        and (outer.max is None or (high is not None and high <= outer.max))
        and (outer.prefix is None or (prefix is not None and prefix.startswith(outer.prefix)))
    )
    return fits, crossed or (numbers and prefix is not None)
