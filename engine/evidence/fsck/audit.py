"""The audit of everything that is stored: read, recompute, compare. It writes nothing."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, islice
from typing import NamedTuple, TypeAlias
from uuid import UUID

from django.db.models import Model

from engine.application import installed
from engine.damage import Damage
from engine.evidence.fsck import column_audit, row_audit, signed_heads, tree_audit
from engine.evidence.fsck.row_audit import PLACES_MAX, TallyAudit
from engine.evidence.fsck.signed_heads import SignedHeads
from engine.evidence.fsck.tree_audit import GrownTree
from engine.models import Run, Terms, Workspace
from engine.store import ledgers, log_chain, logs, programs, records, sql
from nanovm_core.core.envelope import LOG_RUN, Stored, Vouched, chain_faults, starts_segment
from nanovm_core.errors import VerificationError
from nanovm_core.ledger.fold import Fold
from nanovm_core.ledger.value import ledger_hash
from nanovm_core.verify import AGENT

Look: TypeAlias = Callable[[Mapping[str, bytes]], list[Damage]]  # by the signer's newest notes

ENVELOPES = 1_000  # rows in memory at a time
COUNTED = ("workspace", "run", "envelope", "secret")
# Of what is stored outside of the database, which no transaction shows as of one moment.
OUTSIDE = {"LOG-006", "LOG-007", "PII-002", "PII-003", "PII-013"}
_COUNT = "SELECT COUNT(*) FROM pipeline_"
_LOG_OF = "SELECT workspace_id FROM "
_WORKSPACES = "SELECT id FROM pipeline_workspace"
_ROWS = " FROM pipeline_envelope WHERE workspace_id = %s"
_LOG = f"SELECT seq, run, n, bytes, hash, kind{_ROWS} ORDER BY seq"
_AGENTS = f"SELECT DISTINCT run{_ROWS} AND run LIKE %s"
_LITE = "||'-'||".join(map("substr(id, {}, {})".format, (1, 9, 13, 17, 21), (8, 4, 4, 4, 12)))
_NAME = _LITE if sql.SQLITE else "CAST(id AS TEXT)"
_RUNS = f"(SELECT {_NAME} FROM pipeline_run WHERE workspace_id = %s AND id IS NOT NULL)"  # noqa: S608
_STRAYS = f"SELECT run, n{_ROWS} AND run <> %s AND run NOT IN {_RUNS} ORDER BY seq"


class Named(NamedTuple):
    """What an ``integrity`` envelope says of the place that it names."""

    rule: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What was recomputed, and everything that was found bad."""

    workspaces: int
    runs: int
    envelopes: int
    secrets: int
    own: Mapping[str, int]  # of the applications, by their plural
    damage: tuple[Damage, ...]

    def to_json(self) -> dict[str, object]:
        """The report as JSON values, the applications' counts among the others."""
        values = asdict(self)
        damage, own = values.pop("damage"), values.pop("own")
        return {**values, **own, "damage": damage, "clean": not self.damage}

    @property
    def exit_status(self) -> int:
        """0 clean, 1 damage that nothing explains, 3 only damage that is already named."""
        if not self.damage:
            return 0
        return 3 if all(each.explained for each in self.damage) else 1


def audit() -> AuditReport:
    """Recompute every stored log, chain, tree, snapshot and commitment, each log as of one moment.

    The signer's files, the keys and the erasure journal can change while the database is read:
    damage of theirs is reported where a second look, after all first ones, finds it too.
    """
    notes = signed_heads.signed_notes()
    with column_audit.one_moment():
        unkind = column_audit.damage()
    with column_audit.one_moment(unkind):
        there = [sql.uuid(each) for (each,) in sql.execute(f"{_WORKSPACES} ORDER BY id")]
        all_logs = [*there, *_logs_without_row()]
    looks: list[Look] = [*(partial(_log, each) for each in all_logs), _beside]
    seen = [_seen(look, notes, unkind) for look in looks]
    notes = signed_heads.signed_notes() if any(map(_may_have_changed, seen)) else notes
    for place, found in enumerate(seen):
        if _may_have_changed(found):
            seen[place] = _seen(looks[place], notes, unkind)
    damage = [*chain.from_iterable(unkind.values()), *chain.from_iterable(seen)]
    named = [each for each in damage if each.explained]
    unexplained = [each for each in damage if not each.explained]
    return AuditReport(
        **{f"{each}s": sql.execute(f"{_COUNT}{each}")[0][0] for each in COUNTED},
        own={name: n for each in installed() for name, n in each.counted().items()},
        damage=(*named, *reversed(unexplained)),
    )


def _seen(look: Look, notes: Mapping[str, bytes], unkind: Collection[type[Model]]) -> list[Damage]:
    """What a look finds in a moment of its own: an erasure waits for readers of old pages."""
    with column_audit.one_moment(unkind):
        return look(notes)


def _may_have_changed(found: Sequence[Damage]) -> bool:
    return any(each.code in OUTSIDE and not each.explained for each in found)


def _log(workspace_id: UUID, notes: Mapping[str, bytes]) -> list[Damage]:
    for workspace in sql.rows(Workspace, "WHERE id = %s", (sql.key(workspace_id),)):
        return audit_workspace(workspace, notes.get(workspace.origin))
    made = _reconstructed(workspace_id)
    text = "The workspace's row is missing, and its log or its runs are there."
    without_row = Damage(log=made.origin, run=LOG_RUN, at=0, code="LOG-004", text=text)
    return [without_row, *audit_workspace(made, notes.get(made.origin))]


def _beside(notes: Mapping[str, bytes]) -> list[Damage]:
    """What the signer's state files and the erasure journal name, compared with what is there."""
    lost = signed_heads.missing_logs(notes)
    again = (damage for each in installed() for damage in each.audit_journal())
    return [*lost, *row_audit.undone(), *again]


def audit_workspace(workspace: Workspace, note: bytes | None = None) -> list[Damage]:
    """Everything bad in one workspace; ``note`` is the one that the signer signed last."""
    signed = SignedHeads(workspace, note)
    grown = GrownTree(workspace, signed.newest)
    damage = [*_chains_damage(workspace, grown)]
    for run in sql.rows_in_parts(Run, (sql.key(workspace.id),)):
        damage += _run_damage(workspace, run, grown)
    for each in installed():
        damage += islice(each.audit_log(workspace), PLACES_MAX)
    damage += islice(row_audit.link_damage(workspace), PLACES_MAX)
    damage += islice(_stray_damage(workspace), PLACES_MAX)
    damage += [*islice(_log_damage(workspace, damage), PLACES_MAX)]
    found = tree_audit.tree_damage(grown, signed, damage)
    return signed_heads.explained(workspace, [*damage, *islice(found, PLACES_MAX)])


def _logs_without_row() -> list[UUID]:
    """The logs whose workspace has no row: its removal hides nothing that it owns."""
    own = [model._meta.db_table for each in installed() for model in each.tables]
    found = f" UNION {_LOG_OF}".join(("pipeline_envelope", "pipeline_run", *own))
    rows = sql.execute(f"{_LOG_OF}{found} EXCEPT {_WORKSPACES} ORDER BY 1")
    return [sql.uuid(each) for (each,) in rows if each]


def _reconstructed(workspace_id: UUID) -> Workspace:
    """A workspace that has no row, as far as its own envelopes say what it was."""
    first = sql.execute(f"{_LOG} LIMIT 1", (sql.key(workspace_id),))
    said = records.body_of(sql.blob(first[0][3])) if first else {}
    made = Workspace(id=workspace_id, origin=str(said.get("log", workspace_id)))
    made.log_length, made.log_head = log_chain.end(workspace_id, LOG_RUN)
    logs.mend(made)
    return made


def _chains_damage(workspace: Workspace, grown: GrownTree) -> Iterator[Damage]:
    """The chains that are no run's: the log's own, which ends where its row says, and agents'."""
    yield from _streamed(workspace, grown, LOG_RUN, workspace.log_head)
    log, last = sql.key(workspace.id), log_chain.end(workspace.id, LOG_RUN)[1]
    [(length,)] = sql.execute(f"SELECT COUNT(*){_ROWS} AND run = %s", (log, LOG_RUN))
    if not length or last != workspace.log_head or length != workspace.log_length:
        text = "The workspace's own chain does not end where its row says."
        yield Damage(workspace.origin, LOG_RUN, length, "LOG-004", text, workspace.log_head, last)
    for (run,) in sorted(sql.execute(_AGENTS, (log, "agent:%"))):
        yield from _streamed(workspace, grown, run)


def _streamed(workspace: Workspace, grown: GrownTree, run: str, head: str = "") -> Iterator[Damage]:
    """The faults of a chain that may be as long as the log."""
    found = sql.in_parts(log_chain.CHAIN, (run, sql.key(workspace.id)), ENVELOPES)
    stored = (Stored(n, sql.blob(data), str(leaf)) for n, data, leaf in found)
    for fault in chain_faults(stored, run=run, head=head, vouched=grown.vouched(run)):
        yield Damage.of(workspace.origin, run, fault)


def _run_damage(workspace: Workspace, run: Run, grown: GrownTree) -> Iterator[Damage]:
    envelopes = records.stored_envelopes(run.name)
    run.beside = next(iter(sql.rows(Terms, "WHERE digest = %s", (run.terms_id,))), Terms())
    named = _named_places(envelopes)
    vouched = grown.vouched(str(run.id))
    found = [*_chain_damage(workspace, run, envelopes, named, vouched)]
    snapshot = None
    try:
        snapshot = records.recomputed(run, envelopes, workspace.origin)
    except VerificationError as fault:
        if fault.code == "LOG-004" and vouched(envelopes[-1]):  # so the row was changed
            fault.expected, fault.found = fault.found, fault.expected
        if fault.code in ("LOG-003", "LOG-004") or fault.at >= len(envelopes):
            found.append(Damage.of(workspace.origin, str(run.id), fault))
    yield from found
    yield from _contained(workspace, str(run.id), named, found)
    yield from row_audit.run_damage(workspace, run, snapshot, sealed_damage=bool(named))
    if snapshot is not None and not named and programs.found_hash(run) == run.program_hash:
        yield from row_audit.grants_damage(workspace, run, envelopes)
    yield from row_audit.secret_damage(workspace, run, envelopes)
    for each in installed():
        yield from each.audit_run(workspace, run, envelopes)


def _contained(
    workspace: Workspace, run: str, named: Mapping[int, Named], found: Sequence[Damage]
) -> Iterator[Damage]:
    """Damage that an ``integrity`` envelope names and that left nothing bad behind."""
    there = {each.at for each in found}
    for at, (code, _, _) in named.items():
        if at not in there:
            text = f"The run was damaged at n = {at}; it was contained."
            yield Damage(log=workspace.origin, run=run, at=at, code=code, text=text, explained=True)


def _chain_damage(
    workspace: Workspace,
    run: Run,
    envelopes: Sequence[Stored],
    named: Mapping[int, Named],
    vouched: Vouched,
) -> Iterator[Damage]:
    """The faults of every segment of a chain; the row's head is that of the newest."""
    starts = [i for i, each in enumerate(envelopes) if i and starts_segment(each)]
    for start, end in zip([0, *starts], [*starts, len(envelopes)], strict=True):
        first_n = envelopes[start].n if start else 0
        head = run.head if end == len(envelopes) else ""
        segment = envelopes[start:end]
        name = str(run.id)
        for fault in chain_faults(segment, run=name, first_n=first_n, head=head, vouched=vouched):
            explained = _is_named(fault, named)
            yield Damage.of(workspace.origin, name, fault, explained=explained)


def _log_damage(workspace: Workspace, known: Sequence[Damage]) -> Iterator[Damage]:
    """Gaps in the log, and rows whose columns are not what their bytes say."""
    explained = sum(each.explained and "missing" in each.text for each in known)
    told = {(each.run, each.at) for each in known}
    torn = {(each.run, each.at) for each in known if each.code in ("LOG-001", "LOG-002")}
    due, fold, tally = 0, Fold(), TallyAudit(workspace)
    for row in map(logs.LogLine._make, sql.in_parts(_LOG, (sql.key(workspace.id),), ENVELOPES)):
        if row.seq != due:
            fold.take(None)
        data, is_torn = sql.blob(row.data), (row.run, row.n) in torn
        said = None if is_torn else ledgers.believed(workspace, row.seq, data, row.hash)
        tally.take(row.seq, said)
        if not fold.take(said):
            text = f"Envelope n = {row.n} seals another ledger than the one after it."
            yield Damage(workspace.origin, row.run, row.n, "LOG-011", text)
        found = [(said or {}).get(name) for name in ("run", "n", "kind")]
        if (row.run, row.n) not in told and found != [row.run, row.n, row.kind]:
            text = f"Envelope {row.n} is stored at another place than its bytes say."
            yield Damage(log=workspace.origin, run=row.run, at=row.n, code="LOG-002", text=text)
        if row.seq != due:
            yield _gap(workspace, due, row.seq, explained=row.seq - due <= explained)
            explained -= row.seq - due
        due = row.seq + 1
    if due < workspace.size:
        fold.take(None)
    yield from _ledger_damage(workspace, fold)
    yield from tally.damage()
    if due != workspace.size:
        missing = workspace.size - due
        yield _gap(workspace, due, workspace.size, explained=0 < missing <= explained)


HELD = ("limits", "accounts", "totals", "agents", "alerts")


def _ledger_damage(workspace: Workspace, fold: Fold) -> Iterator[Damage]:
    """A ledger in the log's row that is not the one that its envelopes seal.

    Where one of them is damaged, times are not compared.
    """
    found = ledger_hash(bytes(workspace.ledger))
    if fold.named == found or (workspace.successor_id is not None and not fold.named):
        return  # or it was closed before ledgers were sealed
    true, alert = ledgers.judged(workspace, fold)
    row = ledgers.stored(workspace)
    differ = [name for name in HELD if row is None or getattr(row, name) != getattr(true, name)]
    if alert is not None and (fold.sure or differ):
        named = ", ".join(differ) or "time or policy"
        text = f"The ledger of the log is not the one that its events sealed: {named}."
        expected = str(alert["expected"])
        yield Damage(workspace.origin, LOG_RUN, 0, "LOG-011", text, expected, found)


def _gap(workspace: Workspace, due: int, found: int, *, explained: bool) -> Damage:
    text = f"The log goes on at seq {found}, but seq {due} was due."
    return Damage(workspace.origin, LOG_RUN, due, "LOG-002", text, explained=explained)


def _stray_damage(workspace: Workspace) -> Iterator[Damage]:
    """Envelopes of runs that do not exist, and of no agent."""
    log = sql.key(workspace.id)
    for run, n in sql.in_parts(_STRAYS, (log, LOG_RUN, log), ENVELOPES):
        if not AGENT.fullmatch(run):
            text = "An envelope belongs to a run that does not exist."
            yield Damage(log=workspace.origin, run=run, at=n, code="LOG-002", text=text)


def _named_places(envelopes: Sequence[Stored]) -> dict[int, Named]:
    """The places that ``integrity`` envelopes already name, with what they say of each."""
    named: dict[int, Named] = {}
    for body in (records.body_of(each.data) for each in envelopes if starts_segment(each)):
        if isinstance(body.get("at"), int):
            said = (str(body.get(name, "")) for name in ("rule", "expected", "found"))
            named[body["at"]] = Named(*said)
    return named


def _is_named(fault: VerificationError, named: Mapping[int, Named]) -> bool:
    """Whether an ``integrity`` envelope names a fault, by the envelope or by its neighbour.

    Where less was known when it was sealed, the later of two that do not fit was named.
    """
    mirrored = Named(fault.code, fault.found, fault.expected)
    at = named.get(fault.at)
    return (at is not None and at.rule == fault.code) or named.get(fault.at + 1) == mirrored
