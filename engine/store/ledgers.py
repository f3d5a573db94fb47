"""The ledgers of logs as they are stored: held to what envelopes seal, or made again from them.

That of a log is in its row, whose lock is its lock too. Accounts that all workspaces share are in
the ledger of the house log, one reserved workspace that has no runs.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q

from engine.models import Workspace
from engine.store import sql
from engine.store.logs import HOUSE as HOUSE
from nanovm_core.core.authority.budget import name_of
from nanovm_core.core.envelope import body_of, canonical_hash
from nanovm_core.core.events import Event
from nanovm_core.core.messages import Snapshot
from nanovm_core.core.program import Program
from nanovm_core.errors import VerificationError
from nanovm_core.ledger import GLOBAL, Account, accounts, values_of
from nanovm_core.ledger.fold import Fold
from nanovm_core.ledger.value import (
    NOT_SEALED,
    Ledger,
    decode_ledger,
    encode_ledger,
    json_of,
    ledger_hash,
    tighter,
)

KNOWN_MAX = 1_024  # logs of which this process remembers what was found sealed
CHUNK = 1_000  # envelopes in memory at a time

_NEWEST = "SELECT bytes, hash FROM pipeline_envelope WHERE workspace_id = %s AND seq = %s"
_LOG = "WHERE id = COALESCE((SELECT successor_id FROM pipeline_workspace WHERE id = %s), %s)"
_UNTOLD = f"WHERE successor_id IS NULL AND {sql.has('ledger')} ORDER BY id LIMIT 100"
_PART = (
    "SELECT seq, bytes, hash FROM pipeline_envelope"
    " WHERE workspace_id = %s AND seq >= %s AND seq < %s ORDER BY seq"
)


Newest = tuple[bytes, str]  # the bytes of an envelope, and the hash beside them


class _Known(NamedTuple):
    """The row's bytes and the newest envelope that seals them, and the ledger that they are."""

    row: bytes
    size: int
    newest: Newest
    ledger: Ledger


_KNOWN: dict[str, _Known] = {}


class Checked(NamedTuple):
    """A log's ledger, and what an ``alert`` says where its row had another; else None."""

    ledger: Ledger
    alert: Mapping[str, object] | None = None


def checked(
    log: Workspace, read: Collection[Newest] = (), doubted: Collection[str] = ()
) -> Checked:
    """The ledger of a locked log: its row's, where the log's newest envelope seals it.

    Else the one that its envelopes make (LOG-011); where one of them is damaged or missing, the
    tighter of that and of the row's, which the alert holds as a whole. ``read``: envelopes that
    were read under the lock already; ``doubted``: hashes of those that end a run's chain, and are
    not what its row names there.
    """
    if log.size == 0:
        return Checked(Ledger())
    row, known = sql.blob(log.ledger), _KNOWN.get(log.name)
    is_known = known is not None and (known.row, known.size) == (row, log.size)
    if known is not None and is_known and known.newest in read:
        return Checked(known.ledger)
    newest = _newest(log)
    if newest is not None and newest[1] in doubted:
        return judged(log, fold_of(log, doubted))
    if known is not None and is_known and known.newest == newest:
        return Checked(known.ledger)
    found = _decoded(row)
    if found is not None and newest is not None and _sealed(log, *newest) == ledger_hash(row):
        remember(log, newest, found)
        return Checked(found)
    return judged(log, fold_of(log, doubted))


def remember(log: Workspace, newest: Newest, ledger: Ledger) -> None:
    """Remember what a row has and an envelope seals: other bytes of either are looked at anew."""
    if len(_KNOWN) >= KNOWN_MAX:
        _KNOWN.clear()
    _KNOWN[log.name] = _Known(bytes(log.ledger), log.size, newest, ledger)


def judged(log: Workspace, fold: Fold) -> Checked:
    """The ledger of a log by the fold of its envelopes, its row's beside it."""
    row, ledger = sql.blob(log.ledger), fold.value
    stored, found = _decoded(row), ledger_hash(row)
    if fold.sure and fold.hash == found:
        return Checked(ledger)
    if not fold.sure and stored is not None:
        ledger = tighter(ledger, stored)
    said = {"rule": NOT_SEALED, "expected": ledger_hash(encode_ledger(ledger)), "found": found}
    return Checked(ledger, said if fold.sure else {**said, "ledger": json_of(ledger)})


def fold_of(log: Workspace, doubted: Collection[str] = ()) -> Fold:
    """The fold of all envelopes of a log but those with a doubted hash."""
    fold = Fold()
    for seq, data, leaf in _envelopes(log):
        fold.take(None if leaf in doubted else believed(log, seq, data, leaf))
    return fold


def believed(log: Workspace, seq: int, data: bytes, leaf: str) -> Mapping[str, Any] | None:
    """The fields of an envelope that is whole and in its place in this log; else None."""
    said = body_of(data) if canonical_hash(data) == leaf else {}
    return said if (said.get("log"), said.get("seq")) == (log.origin, seq) else None


def _envelopes(log: Workspace) -> Iterator[tuple[int, bytes, str]]:
    """What is stored of a log by seq; where one is missing, no bytes."""
    for first in range(0, log.size, CHUNK):
        end = min(first + CHUNK, log.size)
        rows = sql.execute(_PART, (sql.key(log.id), first, end))
        found = {int(seq): (sql.blob(data), str(leaf)) for seq, data, leaf in rows}
        for seq in range(first, end):
            yield (seq, *found.get(seq, (b"", "")))


def _newest(log: Workspace) -> Newest | None:
    for data, leaf in sql.execute(_NEWEST, (sql.key(log.id), log.size - 1)):
        return sql.blob(data), str(leaf)
    return None


def _sealed(log: Workspace, data: bytes, leaf: str) -> object:
    said = believed(log, log.size - 1, data, leaf) or {}
    given = said.get("given")
    return given.get("ledger") if isinstance(given, Mapping) else None


def _decoded(row: bytes) -> Ledger | None:
    try:
        return decode_ledger(row)
    except VerificationError:
        return None


# --- for pages -------------------------------------------------------------------------------


def stored(log: Workspace) -> Ledger | None:
    """The ledger in a log's row, held to nothing; None where it cannot be read."""
    return _decoded(sql.blob(log.ledger))


def with_untold() -> list[Workspace]:
    """The open logs in whose rows an alert stands that nobody was told of; held to nothing."""
    return sql.rows(Workspace, _UNTOLD, (b'"told_ms":0}',))


def read(log: UUID) -> Workspace | None:
    """A log, or the one after it where a restore closed it, not locked; None: there is none."""
    return next(iter(sql.rows(Workspace, _LOG, (sql.key(log),) * 2)), None)


def house() -> Workspace | None:
    """The house log as ``read`` does; None before any account is shared by all workspaces."""
    return read(HOUSE)


def is_house() -> Q:
    """Which workspaces are the house log, or were before a restore."""
    return Q(id=HOUSE) | Q(predecessors=HOUSE)


def is_of_house(log: UUID) -> bool:
    """Whether this log is the house log, or was before a restore."""
    return Workspace.objects.filter(is_house(), id=log).exists()


def remaining(log: Workspace, program: Program, snapshot: Snapshot) -> dict[str, int]:
    """What the accounts of a run have left, for a page: nothing is locked, checked or sealed.

    Of a ledger that cannot be read, nothing is left.
    """
    found = accounts(program, log.name, snapshot.agent, values_of(snapshot, Event()))
    shared = any(account.owner == GLOBAL for account in found.values())
    everyones = house() if shared else None
    own, theirs = stored(log), stored(everyones) if everyones else Ledger()
    left = {}
    for name, account in found.items():
        ledger = theirs if account.owner == GLOBAL else own
        left[name] = left_of(ledger, account, name_of(name, snapshot.agent)) if ledger else 0
    return left


def left_of(ledger: Ledger, account: Account, name: str) -> int:
    """What an account of a run, by its name in the ledger, has left.

    The limit is the one in force, or that of the run's program and policy where there is none;
    the program's own maximum stays.
    """
    limit = ledger.limit(name)
    return account.left(account.limit if limit is None else limit, ledger.used(name))
