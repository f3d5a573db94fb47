"""From the envelopes of a log to its ledger: what a commit applies to those that it seals."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from nanovm_core.agents import CHAIN, agent_of
from nanovm_core.core.authority.budget import GLOBAL, OWN
from nanovm_core.core.envelope import LOG_RUN
from nanovm_core.core.messages import NOTHING
from nanovm_core.errors import VerificationError
from nanovm_core.ledger.value import (
    Alert,
    Ledger,
    Used,
    alert_of,
    counts,
    encode_ledger,
    ledger_hash,
    ledger_of,
)

AGENT = "agent"  # a move of an agent, on its chain; ``out`` is the agent from then on
SETTLEMENT = "settlement"  # of the accounts that all workspaces share, in the house log
_NEEDED = frozenset(("run", "kind", "at_ms"))
_RUN = OWN[:-1]
_UNUSED = Used()
# What each part of an envelope's ``budget`` does to what is reserved, and to what is spent.
_EFFECTS = (("reserved", 1, 0), ("spent", -1, 1), ("released", -1, 0))


def after(now: Ledger, said: Mapping[str, Any]) -> Ledger:
    """The ledger after an envelope with these fields; ``now`` itself where it changes nothing.

    An envelope of the log's own chain may set policy, ``limits`` and ``alerts``, or the whole
    ``ledger``; one of an agent's chain, the agent.

    Raises:
        VerificationError: LOG-011, a part of it is not what a runtime seals.
    """
    if said["run"] == LOG_RUN and "ledger" in said:
        now = ledger_of(said["ledger"])
    changed: dict[str, Any] = {}
    if said["run"] == LOG_RUN:
        changed["policy"] = str(said.get("policy", now.policy))
        if more := said.get("limits"):
            changed["limits"] = MappingProxyType({**now.limits, **counts(more)})
        if alerts := said.get("alerts"):
            changed["alerts"] = _changed(now.alerts, alerts)
    elif "out" in said and str(said["run"]).startswith(CHAIN):
        name = str(said["run"]).removeprefix(CHAIN)
        changed["agents"] = MappingProxyType({**now.agents, name: agent_of(said["out"])})
    if budget := said.get("budget"):
        changed["accounts"] = _settled(now.accounts, budget, said["kind"])
    if more := totals_in(said):
        changed["totals"] = MappingProxyType({**now.totals, **counts(more)})
    changed = {name: part for name, part in changed.items() if part != getattr(now, name)}
    if not changed:
        return now
    at_ms = said["at_ms"] if type(said["at_ms"]) is int else 0
    return now._replace(at_ms=max(now.at_ms, at_ms), **changed)


def totals_in(said: Mapping[str, Any]) -> Any:
    """The totals that an envelope says it changed; nothing where it counts none."""
    given = said.get("given")
    return given.get("totals", NOTHING) if isinstance(given, Mapping) else NOTHING


def _changed(alerts: Mapping[str, Alert], changed: Any) -> Mapping[str, Alert]:
    """With what an envelope opens or changes; an empty object closes one."""
    kept = {name: each for name, each in alerts.items() if name not in changed}
    opened = {name: alert_of(each) for name, each in changed.items() if each}
    return MappingProxyType({**kept, **opened})


def _settled(accounts: Mapping[str, Used], budget: Any, kind: object) -> Mapping[str, Used]:
    """With what an envelope does to accounts of its log; a run's own and others' are left out."""
    now: Any = accounts
    after: dict[str, Used] = now | {}  # ``|`` is fast
    for part, frozen, gone in _EFFECTS:
        amounts = budget.get(part, NOTHING)
        for name, amount in counts(amounts).items() if amounts is not NOTHING else ():
            scope = name[: name.find("/")]
            if scope != _RUN and (scope == GLOBAL) == (kind == SETTLEMENT):
                reserved, spent = after.get(name, _UNUSED)
                after[name] = Used(reserved + frozen * amount, spent + gone * amount)
    return MappingProxyType(after)


class Fold:
    """Follows a log, envelope by envelope from its first, and knows its ledger.

    ``sure``: no envelope was damaged or missing since one that holds a whole ledger, and each
    sealed the hash of the ledger after it. Where it is not, ``value`` lacks what those said.
    """

    def __init__(self) -> None:
        self.value = Ledger()
        self.sure = True
        self.named = ""  # the hash that was sealed last; empty if what may name one is damaged
        self._hashed = self.value
        self._hash = ledger_hash(encode_ledger(self.value))

    @property
    def hash(self) -> str:
        """The hash of the ledger."""
        if self._hashed is not self.value:
            self._hashed, self._hash = self.value, ledger_hash(encode_ledger(self.value))
        return self._hash

    def take(self, said: Mapping[str, object] | None) -> bool:
        """Take the next envelope in, None for one that cannot be believed.

        False where it seals another ledger than the one after it, of which the fold was sure.
        """
        if said is None or not said.keys() >= _NEEDED:
            self.sure, self.named = False, ""
            return True
        try:
            self.value = after(self.value, said)
            self.sure = self.sure or (said["run"] == LOG_RUN and "ledger" in said)
        except VerificationError:
            self.sure = False
        given = said.get("given")
        sealed = given.get("ledger") if isinstance(given, Mapping) else None
        if sealed is None:
            return True
        self.named = str(sealed)
        if not self.sure or sealed == self.hash:
            return True
        self.sure = False
        return False
