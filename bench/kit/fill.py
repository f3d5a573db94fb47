"""Fills a log fast: copies of one run that was really driven, sealed under names of their own."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from unittest import mock
from uuid import UUID

from django.db import transaction
from django.db.models import Model, QuerySet

from bench import seven
from engine.clock import now_ms
from engine.entropy import run_code, uuid7
from engine.models import Envelope, Run, Workspace
from engine.runtime import api, chains, create_run
from engine.runtime.create_run import CreatedRun
from engine.store import logs, records, sql
from engine.store.logs import LogLine
from nanovm_core.core.envelope import ZERO, body_of, canonical_hash, snapshot_hash
from nanovm_core.core.events import EffectDone
from nanovm_core.ledger.fold import after
from nanovm_core.ledger.value import decode_ledger, encode_ledger, ledger_hash
from pipeline.models import Listed

RUNS_AT_ONCE = 500  # in one transaction
APART_MS = 1_000  # from run to run: so many a day are 1.4 million envelopes
Row = Mapping[str, object]


def made(workspace: Workspace, *, starts: bool = True, shared: bool = False) -> CreatedRun:
    """A run of seven steps: where it ``starts``, its first effect is begun in the same commit."""
    new = create_run.NewRun(
        workspace=workspace,
        program=seven.program(shared=shared),
        policy=seven.POLICY,
        slots=seven.slots(),
        actor="bench",
    )
    return create_run.make_run(new, uuid7(), starts=starts)


def driven(workspace: Workspace) -> Run:
    """Such a run through the shipped path to its end: eight commits, sixteen envelopes."""
    found = made(workspace)
    work = found.work
    while work is not None:
        done = EffectDone(key=work.effect.key, out={"result": "done"})
        work = api.answer(work, done, (), type(done).__name__).work
    return found.run


def filled(envelopes: int, new: Callable[[], Workspace] = chains.create) -> Workspace:
    """A new log of so many envelopes at least, in whole runs: one driven, the rest its copies.

    Bytes, hashes, chains, snapshots, accounts and tree are right: an audit finds nothing. Only
    no worker drove them, and their keys are not derived as a program's are.
    """
    began_ms = now_ms() - envelopes * APART_MS // seven.ENVELOPES
    with mock.patch.object(time, "time_ns", return_value=began_ms * 1_000_000):
        workspace = new()
        pattern = _Pattern.of(driven(workspace))
    codes, copied = {pattern.run.code}, 0
    short = max(0, -(-(envelopes - 1) // seven.ENVELOPES) - 1)
    while copied < short:
        due = range(copied, min(copied + RUNS_AT_ONCE, short))
        with transaction.atomic():
            _store(pattern, [pattern.copy(_code(codes), i * APART_MS) for i in due], workspace.pk)
        copied = due.stop
    return workspace


@dataclass(frozen=True, slots=True)
class _Copy:
    """A run that is to be stored, its envelopes yet to be sealed."""

    id: UUID
    row: dict[str, object]
    names: Sequence[tuple[bytes, bytes]]  # the name in the pattern, and the name in this run
    later_ms: int


@dataclass(frozen=True, slots=True)
class _Pattern:
    """The run that is copied, with its rows."""

    run: Run
    row: Row
    lines: Sequence[Envelope]
    keys: Sequence[str]  # of its effects

    @classmethod
    def of(cls, run: Run) -> "_Pattern":
        """The rows of a run that has ended."""
        run.refresh_from_db()
        return cls(
            run,
            _rows(Run.objects.filter(pk=run.pk))[0],
            [*Envelope.objects.filter(run=str(run.id)).order_by("n")],
            _keys_of(run),
        )

    def copy(self, code: str, later_ms: int) -> _Copy:
        """The run once more, so much later."""
        run = uuid7()
        old, new = str(self.run.id).encode(), str(run).encode()
        snapshot = bytes(self.run.snapshot).replace(old, new)
        times = {"created_ms": self.run.created_ms + later_ms}
        row = {**self.row, **times, "id": sql.key(run), "code": code, "snapshot": snapshot}
        keys = {key: sha256(key.encode() + new).hexdigest() for key in self.keys}
        texts = [*keys.items(), (snapshot_hash(self.run.snapshot), snapshot_hash(snapshot))]
        names = [(old, new), *((one.encode(), other.encode()) for one, other in texts)]
        return _Copy(run, row, names, later_ms)

    def sealed(self, copy: _Copy, log: Workspace, seq: int) -> Iterator[LogLine]:
        """The envelopes of a copy, chained, from this place in the log on; its row has the head.

        ``log.ledger`` becomes the one that they seal.
        """
        prev, ledger = ZERO, decode_ledger(bytes(log.ledger))
        for each in self.lines:
            data = bytes(each.bytes)
            for old, new in copy.names:
                data = data.replace(old, new)
            data = _counted(data, b"seq", seq - each.seq)
            data = _counted(data, b"at_ms", copy.later_ms)
            before = data.partition(b'"prev":"')[2][: len(prev)]
            data = data.replace(before, prev.encode(), 1)
            body = body_of(data)
            ledger = after(ledger, body)
            log.ledger = encode_ledger(ledger)
            if given := body.get("given"):
                data = data.replace(given["ledger"].encode(), ledger_hash(log.ledger).encode(), 1)
            prev = canonical_hash(data)
            yield LogLine(seq, str(copy.id), each.n, data, prev, each.kind)
            seq += 1
        copy.row["head"] = prev


def _store(pattern: _Pattern, copies: Sequence[_Copy], workspace: UUID) -> None:
    """Store copies as the runtime would have: log and tree, accounts, runs."""
    log = logs.lock([workspace])[workspace]
    lines: list[LogLine] = []
    for each in copies:
        lines += pattern.sealed(each, log, log.size + len(lines))
    log.size += len(lines)
    logs.append(log, lines)
    _insert(Run, [each.row for each in copies])
    (row,) = _rows(Listed.objects.filter(run=pattern.run))
    own = ({"run_id": sql.key(each.id), "code": each.row["code"]} for each in copies)
    _insert(Listed, [{**row, **each} for each in own])


def _keys_of(run: Run) -> list[str]:
    bodies = [records.body_of(each.data) for each in records.stored_envelopes(str(run.id))]
    return [body["idempotency_key"] for body in bodies if body["kind"] == "intent"]


def _rows(found: "QuerySet[Model]") -> list[Row]:
    """Rows as the database's columns hold them."""
    own = [each.attname for each in found.model._meta.concrete_fields]
    rows = found.values(*own)
    return [{k: sql.key(v) if isinstance(v, UUID) else v for k, v in row.items()} for row in rows]


def _insert(model: type[Model], rows: Sequence[Row]) -> None:
    names = [*rows[0]]
    into = f"INSERT INTO {model._meta.db_table} ({', '.join(names)})"
    sql.change_each(f"{into} VALUES {sql.marks(names)}", [[*row.values()] for row in rows])


def _counted(data: bytes, name: bytes, more: int) -> bytes:
    """The bytes with the number of this name counted up."""
    head, mark, rest = data.partition(b'"%s":' % name)
    number, end, tail = rest.partition(b",")
    return head + mark + b"%d" % (int(number) + more) + end + tail


def _code(taken: set[str]) -> str:
    """A code that no run has."""
    while (code := run_code()) in taken:
        pass
    taken.add(code)
    return code
