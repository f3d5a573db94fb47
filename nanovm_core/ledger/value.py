"""The ledger of a log: limits, accounts and more that its runs share, as one sealed value."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from nanovm_core import agents
from nanovm_core.agents import Agent
from nanovm_core.core.authority.budget import any_of
from nanovm_core.core.canonical import SIZE_BYTES_MAX, decode, digest, encode
from nanovm_core.core.messages import NOTHING, Counts
from nanovm_core.errors import CanonicalError, VerificationError

NOT_SEALED = "LOG-011"
_FORM = b'{"accounts":%b,"agents":%b,"alerts":%b,"at_ms":%b,"limits":%b,"policy":%b,"totals":%b}'
KEPT_MAX = 512  # parts of ledgers, of which most change seldom
_KEPT: dict[int, tuple[object, bytes]] = {}
ledger_hash = partial(digest, b"nanovm/ledger/v1\0")  # an envelope's ``given.ledger``, of bytes
T = TypeVar("T")


class Used(NamedTuple):
    """How much of an account is frozen, and how much is gone."""

    reserved: int = 0
    spent: int = 0


class Alert(NamedTuple):
    """What a person has to be told of. Times are UTC milliseconds.

    ``agent``: whom it is about, empty for the log itself. ``told_ms``: when the operator's
    receiver took it; 0 until then.
    """

    rule: str
    text: str
    agent: str = ""
    at_ms: int = 0
    told_ms: int = 0


class Ledger(NamedTuple):
    """What the runs of a log share, after its newest envelope. Names are those of ``name_of``.

    The id of an alert is ``agent/<name>``, ``ledger`` or ``comparison``.
    """

    at_ms: int = 0  # of the envelope that changed it last
    policy: str = ""  # the hash of the policy that was put in force last
    limits: Counts = NOTHING  # in force; "workspace/*": of each currency that has none of its own
    accounts: Mapping[str, Used] = NOTHING
    totals: Counts = NOTHING  # of what windows count, by the names of ``ledger.windows``
    agents: Mapping[str, Agent] = NOTHING
    alerts: Mapping[str, Alert] = NOTHING

    def limit(self, name: str) -> int | None:
        """The limit in force for an account; None where no policy set one."""
        return self.limits[name] if name in self.limits else self.limits.get(any_of(name))

    def used(self, name: str) -> int:
        """How much of an account is reserved or spent."""
        return sum(self.accounts.get(name, (0, 0)))


def json_of(ledger: Ledger) -> dict[str, Any]:
    """The value as an envelope can hold it."""
    return {name: _json(part) for name, part in zip(ledger._fields, ledger, strict=True)}


def _json(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {name: _json(each) for name, each in part.items()}
    return [*part] if type(part) is Used else getattr(part, "_asdict", lambda: part)()


def encode_ledger(ledger: Ledger) -> bytes:
    """The only bytes of a ledger: those of ``json_of``, with those of a part that is as it was."""
    at_ms, policy, limits, accounts, totals, agents, alerts = ledger
    first = encode({name: [*each] for name, each in accounts.items()}), _kept(agents)
    data = _FORM % (*first, _kept(alerts), encode(at_ms), *map(_kept, (limits, policy, totals)))
    return data if len(data) <= SIZE_BYTES_MAX else encode(json_of(ledger))


def _kept(part: object) -> bytes:
    known = _KEPT.get(id(part))  # no other has it: the part is kept beside its bytes
    if known is None:
        known = part, encode(_json(part))
        if type(part) is MappingProxyType or type(part) is str:
            _KEPT[id(part)] = known
        if len(_KEPT) > KEPT_MAX:
            _KEPT.clear()
    return known[1]


def decode_ledger(data: bytes) -> Ledger:
    """The ledger of these bytes.

    Raises:
        VerificationError: LOG-011, they are no ledger.
    """
    try:
        return ledger_of(decode(data))
    except CanonicalError as error:
        raise _no_ledger() from error


def ledger_of(value: object) -> Ledger:
    """The ledger that ``json_of`` wrote; VerificationError LOG-011 for another value."""
    if not isinstance(value, Mapping) or value.keys() != {*Ledger._fields}:
        raise _no_ledger()
    if type(value["at_ms"]) is not int or type(value["policy"]) is not str:
        raise _no_ledger()
    accounts = {name: _used(each) for name, each in _object(value["accounts"]).items()}
    found = {name: agents.agent_of(each) for name, each in _object(value["agents"]).items()}
    alerts = {name: alert_of(each) for name, each in _object(value["alerts"]).items()}
    limits, totals = {**counts(value["limits"])}, {**counts(value["totals"])}
    parts: tuple[Any, ...] = (limits, accounts, totals, found, alerts)
    return Ledger(value["at_ms"], value["policy"], *[MappingProxyType(each) for each in parts])


def counts(value: object) -> Counts:
    """An object of integers; VerificationError LOG-011 for another value."""
    found = _object(value)
    for each in found.values():
        if type(each) is not int:
            raise _no_ledger()
    return found


def alert_of(value: object) -> Alert:
    """The alert of an object of its fields; VerificationError LOG-011 for another value."""
    found = _object(value)
    if found.keys() != {*Alert._fields}:
        raise _no_ledger()
    alert = Alert(**found)
    if [type(each) for each in alert] != [str, str, str, int, int]:
        raise _no_ledger()
    return alert


def tighter(one: Ledger, other: Ledger) -> Ledger:
    """The smaller limits, the larger use and totals, the agents that may do less, of two ledgers.

    Neither is known to be true. Alerts are those of both; the rest is that of ``one``.
    """
    return one._replace(
        limits=_both(one.limits, other.limits, min),
        accounts=_both(one.accounts, other.accounts, lambda *each: Used(*map(max, *each))),
        totals=_both(one.totals, other.totals, max),
        agents=_both(one.agents, other.agents, agents.tighter),
        alerts=MappingProxyType({**other.alerts, **one.alerts}),
    )


def _both(
    one: Mapping[str, T], other: Mapping[str, T], chosen: Callable[[T, T], T]
) -> Mapping[str, T]:
    """What either has; of what both have, the chosen."""
    shared = {name: chosen(one[name], other[name]) for name in one.keys() & other.keys()}
    return MappingProxyType({**one, **other, **shared})


def _used(value: object) -> Used:
    if not isinstance(value, list) or [type(each) for each in value] != [int, int]:
        raise _no_ledger()
    return Used(*value)


def _object(value: object) -> Mapping[str, Any]:
    if type(value) is not dict and type(value) is not MappingProxyType:
        raise _no_ledger()
    return value


def _no_ledger() -> VerificationError:
    return VerificationError(NOT_SEALED, "The stored bytes are no ledger.", at=-1)
