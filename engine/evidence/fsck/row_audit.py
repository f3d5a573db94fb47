"""The audit of rows: those of runs, secrets, links and window totals, against what is sealed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from engine.damage import RESTORE, Damage
from engine.models import Link, Run, Secret, Workspace
from engine.privacy import erasable, journal
from engine.privacy.certificate import refs_in
from engine.runtime import links
from engine.store import log_chain, outbox, programs, records, sql, tallies
from engine.vault import secret_store
from nanovm_core.core.envelope import LOG_RUN, Stored
from nanovm_core.core.messages import Snapshot
from nanovm_core.errors import VerificationError
from nanovm_core.ledger.value import NOT_SEALED

PLACES_MAX = 1_000  # of one kind in a log: where all of it is gone, the first of them say so
HOLDER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|")  # drawn for each lease
CHANGED = "LOG-003"
_TALLIES = "SELECT what, scope, at_ms, seq, total FROM pipeline_tally WHERE workspace_id = %s"
Row: TypeAlias = tuple[object, ...]  # the total's name, and what ``tallies.Tally`` has


# --- of runs --------------------------------------------------------------------------------


def run_damage(
    workspace: Workspace, run: Run, snapshot: Snapshot | None, *, sealed_damage: bool
) -> Iterator[Damage]:
    """Program and policy, the mark of quarantine, what the run owes, and who drives it.

    ``snapshot``: the run's value; None where it cannot be recomputed, which is told elsewhere.
    """
    owes = snapshot is None or outbox.owes(run, snapshot.owed)
    checks = (
        (programs.found_hash(run) == run.program_hash, "PRG-011", "The stored program is another."),
        (programs.found_policy(run) == run.policy_hash, "PRG-011", "The stored policy is another."),
        (run.quarantined == sealed_damage, CHANGED, "The mark of quarantine was changed."),
        (owes, CHANGED, "The run's row does not say what its snapshot owes."),
        (HOLDER.fullmatch(run.holder), CHANGED, "The run's row names a holder that is none."),
    )
    for holds, code, text in checks:
        if not holds:
            yield Damage(log=workspace.origin, run=str(run.id), at=0, code=code, text=text)


def grants_damage(workspace: Workspace, run: Run, envelopes: Sequence[Stored]) -> Iterator[Damage]:
    """Narrower grants beside the run than its genesis seals, or wider ones; or none any more."""
    try:
        records.expect_grants(envelopes, programs.program_of(run))
    except VerificationError as fault:
        yield Damage.of(workspace.origin, str(run.id), fault)


# --- of secrets -----------------------------------------------------------------------------


def secret_damage(workspace: Workspace, run: Run, envelopes: Sequence[Stored]) -> Iterator[Damage]:
    """Commitments that do not open, and refs that are gone without an erasure to explain it."""
    is_closed = workspace.successor_id is not None  # the log after it has its later erasures
    later = erasable.after_restore(str(run.id)) if is_closed else []
    committed, erased = _committed(envelopes), _erased([*envelopes, *later])
    rows = {each.ref: each for each in sql.rows(Secret, "WHERE run_id = %s", (sql.key(run.id),))}
    living = [each for each in rows.values() if each.erased_ms is None]
    opened = _opened(living)
    for ref, (n, c) in committed.items():
        row = rows.get(ref)
        gone = row is None or row.erased_ms is not None or ref not in opened
        explained = ref in erased or (row is not None and row.staging and row.slot == "staging")
        if gone and not explained:
            text = "MISSING-UNEXPLAINED: a secret is gone and no erasure is sealed for it."
            yield Damage(log=workspace.origin, run=str(run.id), at=n, code="PII-003", text=text)
        elif row is not None and (row.commitment != c or opened.get(ref, c) != c):
            text = f"The commitment of {row.slot} is not its value's."
            yield Damage(log=workspace.origin, run=str(run.id), at=n, code="PII-002", text=text)


def undone() -> Iterator[Damage]:
    """What the journal says was erased, and can be read again."""
    for secret in journal.readable_again():
        log, run = secret.run.workspace.origin, str(secret.run_id)
        text = f"Erased, and there again: {secret.slot}, {secret.ref}. {RESTORE}"
        yield Damage(log=log, run=run, at=0, code="PII-013", text=text)


def _opened(living: Sequence[Secret]) -> dict[str, str]:
    """The recomputed commitment of each secret that still opens."""
    refs = [secret.ref for secret in living]
    try:
        return secret_store.recomputed(refs)
    except (VerificationError, OSError):
        if len(refs) == 1:
            return {refs[0]: "does not open"}
    return {ref: c for secret in living for ref, c in _opened([secret]).items()}


def _committed(envelopes: Sequence[Stored]) -> dict[str, tuple[int, str]]:
    """Each ref that an envelope commits to: the first place, and the commitment."""
    found: dict[str, tuple[int, str]] = {}
    for each in (each for each in envelopes if b'"secrets"' in each.data):
        for ref, c in records.commitments(records.body_of(each.data)).items():
            found.setdefault(ref, (each.n, c))
    return found


def _erased(envelopes: Sequence[Stored]) -> set[str]:
    bodies = (records.body_of(each.data) for each in envelopes if b'"erasure_' in each.data)
    asked = (body for body in bodies if str(body.get("kind")).startswith("erasure_"))
    return {ref for body in asked for ref in refs_in(body)}


# --- of links -------------------------------------------------------------------------------


def link_damage(workspace: Workspace) -> Iterator[Damage]:
    """Rows that grant something else than was sealed, or say another end or other uses.

    A row that is missing grants nothing, and those of ended links are deleted after a while.
    """
    said = None
    for row in sql.rows_in_parts(Link, (sql.key(workspace.id),)):
        said = _sealed(workspace) if said is None else said
        if text := _fault(row, said.get(str(row.id), [])):
            what = f"The row of link {row.id} {text}."
            yield Damage(workspace.origin, LOG_RUN, row.sealed_n, CHANGED, what)


def _sealed(workspace: Workspace) -> dict[str, list[Mapping[str, Any]]]:
    """The events of each link, by its id, in their order."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for each in log_chain.read_chain(workspace.id):
        body = records.body_of(each.data)
        if body.get("kind") == links.KIND and "link" in body:
            found.setdefault(str(body["link"]), []).append(body)
    return found


def _fault(row: Link, said: list[Mapping[str, Any]]) -> str:
    if not said or not links.is_as_made(row, said[0]):
        return "grants what no event made"
    events = [each.get("event") for each in said]
    if (links.REVOKED in events) != (row.revoked_ms is not None):
        return "does not say whether the link was revoked"
    if any("outcome" in each for each in said) != (row.spent_ms is not None):
        return "does not say whether the link's act was done"
    return "" if events.count(links.USED) == row.uses else "counts other uses than were sealed"


# --- of window totals -----------------------------------------------------------------------


class TallyAudit:
    """Compares the rows of a log with its envelopes, which are to be taken in from the first.

    Such a row changes no decision for the looser: what no envelope says is not believed.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._log = workspace
        rows = sql.execute(_TALLIES, (sql.key(workspace.id),))
        self._left: set[Row] = {(_name(what, scope), *row) for what, scope, *row in rows}
        self._missing: set[Row] = set()

    def take(self, seq: int, said: Mapping[str, Any] | None) -> None:
        """Take the next envelope in, None for one that cannot be believed: its rows are let be."""
        if said is None:
            self._left = {row for row in self._left if row[2] != seq}
            return
        due = {(name, *row) for name, row in tallies.rows_of(said)}
        self._missing |= due - self._left
        self._left -= due

    def damage(self) -> Iterator[Damage]:
        """What is left of the rows, and what is missing among them."""
        for what, rows in (("no event says", self._left), ("is missing", self._missing)):
            for name, _, seq, total in sorted(rows, key=str)[:PLACES_MAX]:
                text = f"The count {total} of {name} at seq {seq} {what}."
                yield Damage(self._log.origin, LOG_RUN, 0, NOT_SEALED, text)


def _name(what: str, scope: str) -> str:
    return f"{what}@{scope}" if scope else what
