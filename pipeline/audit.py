"""The audit of everything that is stored: read, recompute, compare. It writes nothing."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import cast
from uuid import UUID

from django.db import connection

from nanovm_core.canonical import decode
from nanovm_core.envelope import LOG_RUN, ZERO, Stored, chain_faults, starts_segment
from nanovm_core.errors import CanonicalError, VerificationError
from pipeline import (
    anchors,
    erasure_log,
    journal,
    programs,
    records,
    tree_audit,
    vaultstore,
)
from pipeline.damage import Damage
from pipeline.models import Envelope, Run, Secret, Workspace

PLACES_MAX = 1_000  # of one tree: where all of it is gone, the first of them say so
RUNS, ENVELOPES = 100, 1_000  # rows in memory at a time
BEGIN = {"sqlite": "BEGIN", "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was recomputed, and everything that was found bad."""

    workspaces: int
    runs: int
    envelopes: int
    secrets: int
    damage: tuple[Damage, ...]

    @property
    def exit_status(self) -> int:
        """0 clean, 1 damage that nothing explains, 3 only damage that is already named."""
        if not self.damage:
            return 0
        return 3 if all(each.explained for each in self.damage) else 1


def audit() -> Report:
    """Recompute every stored log, chain, tree, snapshot and commitment, each log as of one moment.

    What the signer remembers is read first: what it signs meanwhile is no damage.
    """
    remembered = anchors.remembered()
    damage: list[Damage] = []
    for workspace_id in [*Workspace.objects.order_by("id").values_list("id", flat=True)]:
        with _one_moment():  # not longer: an erasure waits for whoever still reads old pages
            workspace = Workspace.objects.get(id=workspace_id)
            damage += audit_workspace(workspace, remembered.get(workspace.origin))
    damage += anchors.gone(remembered)
    damage += _undone()
    named = [each for each in damage if each.explained]
    unexplained = [each for each in damage if not each.explained]
    return Report(
        workspaces=Workspace.objects.count(),
        runs=Run.objects.count(),
        envelopes=Envelope.objects.count(),
        secrets=Secret.objects.count(),
        damage=(*named, *reversed(unexplained)),
    )


def audit_workspace(workspace: Workspace, remembered: bytes | None = None) -> list[Damage]:
    """Everything bad in one workspace; ``remembered`` is what the signer signed of it last."""
    damage = [*_own_chain_damage(workspace)]
    for run in Run.objects.filter(workspace=workspace).order_by("id").iterator(RUNS):
        damage += _run_damage(workspace, run)
    damage += _stray_damage(workspace)
    damage += [*_log_damage(workspace, damage)]
    told = {(each.run, each.at - back) for each in damage for back in (0, each.code == "LOG-002")}
    found = tree_audit.tree_damage(workspace, remembered, told)
    return anchors.explained(workspace, [*damage, *islice(found, PLACES_MAX)])


@contextmanager
def _one_moment() -> Iterator[None]:
    """Read everything as it is now, while others go on writing."""
    if connection.in_atomic_block:
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute(BEGIN[connection.vendor])
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")


def _own_chain_damage(workspace: Workspace) -> Iterator[Damage]:
    """The chain of what belongs to no run, streamed: it may be as long as the log."""
    rows = Envelope.objects.filter(workspace=workspace, run=LOG_RUN).order_by("n")
    last, length = ZERO, 0

    def read() -> Iterator[Stored]:
        nonlocal last, length
        for n, data, leaf in rows.values_list("n", "bytes", "hash").iterator(ENVELOPES):
            last, length = leaf, length + 1
            yield Stored(n=n, data=bytes(data), hash=leaf)

    once = cast("Sequence[Stored]", read())  # it is read once, in order
    for fault in chain_faults(once, run=LOG_RUN):
        yield Damage.of(workspace.origin, LOG_RUN, fault)
    if not length or last != workspace.log_head or length != workspace.log_length:
        text = "The workspace's own chain does not end where its row says."
        yield Damage(log=workspace.origin, run=LOG_RUN, at=length, code="LOG-004", text=text)


def _run_damage(workspace: Workspace, run: Run) -> Iterator[Damage]:
    envelopes = records.stored(str(run.id))
    named = _named_places(envelopes)
    found = [*_chain_damage(workspace, str(run.id), envelopes, named)]
    try:
        records.verified(run)
    except VerificationError as fault:
        if fault.code in ("LOG-003", "LOG-004") or fault.at >= len(envelopes):
            found.append(Damage.of(workspace.origin, str(run.id), fault))
    yield from found
    yield from _contained(workspace, str(run.id), named, found)
    yield from _row_damage(workspace, run, sealed_damage=bool(named))
    yield from _secret_damage(workspace, run, envelopes)


def _contained(
    workspace: Workspace, run: str, named: Mapping[int, str], found: Sequence[Damage]
) -> Iterator[Damage]:
    """Damage that an ``integrity`` envelope names and that left nothing bad behind."""
    there = {each.at for each in found}
    for at, code in named.items():
        if at not in there:
            text = f"The run was damaged at n = {at}; it was contained."
            yield Damage(log=workspace.origin, run=run, at=at, code=code, text=text, explained=True)


def _row_damage(workspace: Workspace, run: Run, *, sealed_damage: bool) -> Iterator[Damage]:
    """What the run's row holds beside its chain: program, policy, the mark of quarantine."""
    checks = (
        (programs.found_hash(run) == run.program_hash, "PRG-011", "The stored program is another."),
        (programs.found_policy(run) == run.policy_hash, "PRG-011", "The stored policy is another."),
        (run.quarantined == sealed_damage, "LOG-003", "The mark of quarantine was changed."),
    )
    for holds, code, text in checks:
        if not holds:
            yield Damage(log=workspace.origin, run=str(run.id), at=0, code=code, text=text)


def _chain_damage(
    workspace: Workspace, run: str, envelopes: Sequence[Stored], named: Mapping[int, str]
) -> Iterator[Damage]:
    """The faults of every segment of a chain."""
    starts = [i for i, each in enumerate(envelopes) if i and starts_segment(each)]
    for start, end in zip([0, *starts], [*starts, len(envelopes)], strict=True):
        first_n = envelopes[start].n if start else 0
        for fault in chain_faults(envelopes[start:end], run=run, first_n=first_n):
            explained = named.get(fault.at) == fault.code
            yield Damage.of(workspace.origin, run, fault, explained=explained)


def _log_damage(workspace: Workspace, known: Sequence[Damage]) -> Iterator[Damage]:
    """Gaps in the log, and rows whose columns are not what their bytes say."""
    explained = sum(each.explained and "missing" in each.text for each in known)
    told = {(each.run, each.at) for each in known}
    due = 0
    for row in Envelope.objects.filter(workspace=workspace).order_by("seq").iterator(ENVELOPES):
        if (row.run, row.n) not in told and not _columns_hold(workspace, row):
            text = f"Envelope {row.n} does not lie where its bytes say."
            yield Damage(log=workspace.origin, run=row.run, at=row.n, code="LOG-002", text=text)
        if row.seq != due:
            yield _gap(workspace, due, row.seq, explained=row.seq - due <= explained)
            explained -= row.seq - due
        due = row.seq + 1
    if due != workspace.size:
        missing = workspace.size - due
        yield _gap(workspace, due, workspace.size, explained=0 < missing <= explained)


def _gap(workspace: Workspace, due: int, found: int, *, explained: bool) -> Damage:
    text = f"The log goes on at seq {found}, but seq {due} was due."
    return Damage(
        log=workspace.origin, run="log", at=due, code="LOG-002", text=text, explained=explained
    )


def _columns_hold(workspace: Workspace, row: Envelope) -> bool:
    try:
        value = decode(bytes(row.bytes))
    except CanonicalError:
        return False
    if not isinstance(value, dict):
        return False
    said = [value.get(name) for name in ("log", "seq", "run", "n", "kind")]
    return said == [workspace.origin, row.seq, row.run, row.n, row.kind]


def _stray_damage(workspace: Workspace) -> Iterator[Damage]:
    """Envelopes of runs that do not exist."""

    @lru_cache(maxsize=RUNS)  # a run's envelopes lie near each other
    def exists(run: str) -> bool:
        try:
            return Run.objects.filter(workspace=workspace, pk=UUID(run)).exists()
        except ValueError:
            return False

    rows = Envelope.objects.filter(workspace=workspace).exclude(run=LOG_RUN).order_by("seq")
    for run, n in rows.values_list("run", "n").iterator(ENVELOPES):
        if not exists(run):
            text = "An envelope belongs to a run that does not exist."
            yield Damage(log=workspace.origin, run=run, at=n, code="LOG-002", text=text)


def _secret_damage(workspace: Workspace, run: Run, envelopes: Sequence[Stored]) -> Iterator[Damage]:
    """Commitments that do not open, and refs that are gone without an erasure to explain it."""
    committed, erased = (
        _committed(envelopes),
        _erased([*envelopes, *_since_restore(workspace, run)]),
    )
    rows = {secret.ref: secret for secret in Secret.objects.filter(run=run)}
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


def _since_restore(workspace: Workspace, run: Run) -> list[Stored]:
    """The run's erasures that the log after this one seals; none, while this one goes on."""
    closed = workspace.successor_id is not None
    return erasure_log.after_restore(str(run.id)) if closed else []


def _undone() -> Iterator[Damage]:
    """What the journal says was erased, and can be read again."""
    for secret in journal.undone():
        log, run = secret.run.workspace.origin, str(secret.run_id)
        text = f"Erased, and there again: {secret.slot}, {secret.ref}. {anchors.RESTORE}"
        yield Damage(log=log, run=run, at=0, code="PII-013", text=text)


def _opened(living: Sequence[Secret]) -> dict[str, str]:
    """The recomputed commitment of each secret that still opens."""
    found: dict[str, str] = {}
    for secret in living:
        try:
            found |= vaultstore.recomputed([secret.ref])
        except (VerificationError, OSError):
            found[secret.ref] = "does not open"
    return found


def _committed(envelopes: Sequence[Stored]) -> dict[str, tuple[int, str]]:
    """Each ref that an envelope commits to: the first place, and the commitment."""
    found: dict[str, tuple[int, str]] = {}
    for each in envelopes:
        listed = records.body_of(each).get("secrets")
        for secret in listed if isinstance(listed, list) else []:
            if isinstance(secret, dict) and "ref" in secret:
                found.setdefault(str(secret["ref"]), (each.n, str(secret.get("c"))))
    return found


def _erased(envelopes: Sequence[Stored]) -> set[str]:
    found: set[str] = set()
    for body in map(records.body_of, envelopes):
        given = body.get("in")
        refs = given.get("refs") if isinstance(given, dict) else None
        if str(body.get("kind")).startswith("erasure_") and isinstance(refs, list):
            found |= {str(ref) for ref in refs}
    return found


def _named_places(envelopes: Sequence[Stored]) -> dict[int, str]:
    """The places that ``integrity`` envelopes already name, with the rule they name."""
    named: dict[int, str] = {}
    for each in envelopes:
        body = records.body_of(each)
        at = body.get("at")
        if starts_segment(each) and isinstance(at, int):
            named[at] = str(body.get("rule"))
    return named
