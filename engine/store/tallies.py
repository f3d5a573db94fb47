"""What a log had counted, and when: rows that say where a window begins.

A row is believed only where the log's envelope at its place says the same. One that was deleted
or changed makes a window count more, never less.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from engine.models import Workspace
from engine.store import ledgers, sql
from nanovm_core.core.messages import NOTHING, Counts
from nanovm_core.core.program import Program
from nanovm_core.errors import VerificationError
from nanovm_core.ledger import windows
from nanovm_core.ledger.fold import totals_in
from nanovm_core.ledger.value import counts

DOUBTED_MAX = 16  # rows that are not believed before a window counts from the log's beginning

_BEFORE = (
    "SELECT t.at_ms, t.seq, t.total, e.bytes, e.hash FROM pipeline_tally t"
    " LEFT JOIN pipeline_envelope e ON e.workspace_id = t.workspace_id AND e.seq = t.seq"
    " WHERE t.workspace_id = %s AND t.scope = %s AND t.what = %s AND t.at_ms < %s"
    " ORDER BY t.at_ms DESC, t.seq DESC LIMIT 1 OFFSET %s"
)
_COUNTED = (
    "INSERT INTO pipeline_tally (workspace_id, scope, what, at_ms, seq, total)"
    " VALUES (%s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (workspace_id, scope, what, at_ms, seq) DO UPDATE SET total = excluded.total"
)


class Tally(NamedTuple):
    """A total as of an envelope: the envelope's time and place, and the total after it."""

    at_ms: int
    seq: int
    total: int


def append(log: Workspace, name: str, rows: Sequence[Tally]) -> None:
    """Store what an ended commit counted under a total's name."""
    what, _, scope = name.partition("@")
    for row in rows:
        sql.later(_COUNTED, (sql.key(log.id), scope, what, *row))


def before(log: Workspace, name: str, at_ms: int) -> int:
    """What a total was before a time; 0 where no row of it can be believed."""
    what, _, scope = name.partition("@")
    for doubted in range(DOUBTED_MAX):
        found = sql.execute(_BEFORE, (sql.key(log.id), scope, what, at_ms, doubted))
        if not found:
            return 0
        [(row_ms, seq, total, data, leaf)] = found
        said = {} if data is None else ledgers.believed(log, seq, sql.blob(data), str(leaf)) or {}
        if dict(rows_of(said)).get(name) == (row_ms, seq, total):
            return int(total)
    return 0


def rows_of(said: Mapping[str, Any]) -> Iterator[tuple[str, Tally]]:
    """The rows that an envelope with these fields stands for, by the names of their totals."""
    try:
        totals = counts(totals_in(said) or NOTHING)
    except VerificationError:
        return
    for name, total in totals.items():
        if windows.has_rows(name):
            yield name, Tally(said["at_ms"], said["seq"], total)


def counts_of(log: Workspace, program: Program, agent: str, at_ms: int) -> Counts:
    """What windows and rates of a run count, for a page: nothing is locked or checked.

    Of a ledger that cannot be read, no count is known.
    """
    ledger = ledgers.stored(log)
    if ledger is None:
        return {}
    totals = {**ledger.totals}
    for name in totals if at_ms < ledger.at_ms else ():  # of a decision: what was counted by then
        totals[name] = before(log, name, at_ms) if windows.has_rows(name) else totals[name]
    return windows.counts(program, agent, at_ms, totals, partial(before, log))
