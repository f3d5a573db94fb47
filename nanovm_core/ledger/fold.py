"""From the envelopes of a log to its ledger: what a commit applies to those that it seals."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from nanovm_core.core.authority.budget import GLOBAL, OWN
from nanovm_core.core.envelope import LOG_RUN
from nanovm_core.errors import VerificationError
from nanovm_core.ledger.value import Ledger, Used, counts, encode_ledger, ledger_hash, ledger_of

SETTLEMENT = "settlement"  # of the accounts that all workspaces share, in the house log
_NEEDED = frozenset(("run", "kind", "at_ms"))
_TAKEN, _GONE, _BACK = "reserved", "spent", "released"


def after(now: Ledger, said: Mapping[str, object]) -> Ledger:
    """The ledger after an envelope with these fields; ``now`` itself where it changes nothing.

    An envelope of the log's own chain may set ``limits``, or the whole ``ledger``.

    Raises:
        VerificationError: LOG-011, a part of it is not what a runtime seals.
    """
    found = now
    if said["run"] == LOG_RUN:
        if "ledger" in said:
            found = ledger_of(said["ledger"])
        if "limits" in said:
            limits = MappingProxyType({**found.limits, **counts(said["limits"])})
            found = found._replace(policy=str(said["policy"]), limits=limits)
    if "budget" in said:
        found = _settled(found, dict(_changes(said)))
    at_ms = said["at_ms"]
    if found is not now and type(at_ms) is int:
        found = found._replace(at_ms=max(found.at_ms, now.at_ms, at_ms))
    return found


def _settled(now: Ledger, changes: Mapping[str, Used]) -> Ledger:
    if not changes:
        return now
    accounts = {**now.accounts}
    for name, by in changes.items():
        used = accounts.get(name, Used())
        accounts[name] = Used(used.reserved + by.reserved, used.spent + by.spent)
    return now._replace(accounts=MappingProxyType(accounts))


def _changes(said: Mapping[str, object]) -> Iterator[tuple[str, Used]]:
    """What an envelope changes in the accounts of its log; a run's own and others' are left out."""
    budget = said["budget"]
    if not isinstance(budget, Mapping):
        return
    taken, gone, back = (counts(budget.get(part, {})) for part in (_TAKEN, _GONE, _BACK))
    for name in taken.keys() | gone.keys() | back.keys():
        is_shared = name.startswith(f"{GLOBAL}/")
        if is_shared == (said["kind"] == SETTLEMENT) and not name.startswith(OWN):
            spent = gone.get(name, 0)
            yield name, Used(taken.get(name, 0) - spent - back.get(name, 0), spent)


class Fold:
    """Follows a log, envelope by envelope from its first, and knows its ledger.

    ``sure``: no envelope was damaged or missing since one that holds a whole ledger, and each
    sealed the hash of the ledger after it. Where it is not, ``value`` lacks what those said.
    """

    def __init__(self) -> None:
        self.value = Ledger()
        self.sure = True
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
            self.sure = False
            return True
        try:
            self.value = after(self.value, said)
            self.sure = self.sure or (said["run"] == LOG_RUN and "ledger" in said)
        except VerificationError:
            self.sure = False
        given = said.get("given")
        sealed = given.get("ledger") if isinstance(given, Mapping) else None
        if sealed is None or not self.sure or sealed == self.hash:
            return True
        self.sure = False
        return False
