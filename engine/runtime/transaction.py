"""One transaction of the runtime: the rows it locked and read, and the rows it writes.

The only module that writes a transition: envelopes, tree, snapshot, ledger, outbox and secrets
together, or none of it.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from engine.application import installed, is_outside
from engine.clock import monotonic_ns, now_ms
from engine.models import Run, Workspace
from engine.runtime.agent_moves import Agents
from engine.runtime.ledgers import ALERT, Ledgers
from engine.store import ledgers, log_chain, logs, outbox, records, run_rows, sql
from engine.store.logs import LogLine
from engine.store.records import Chain
from engine.store.run_rows import Stood
from engine.vault.key_store import keystore
from engine.vault.secret_store import Sealed, keep
from nanovm_core.core import lifecycle as life
from nanovm_core.core.canonical import encode
from nanovm_core.core.envelope import (
    LOG_RUN,
    VERSION,
    ZERO,
    Place,
    canonical_hash,
    encode_snapshot,
    seal,
    snapshot_hash,
)
from nanovm_core.core.fsm import moves
from nanovm_core.core.messages import Decision, Draft, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.ledger.value import Ledger

KEPT_MS = 1_000  # so long a commit goes by what was committed, without reading it again

_STAGED = "SELECT ref FROM pipeline_secret WHERE run_id = %s AND staging AND erased_ms IS NULL"
_FORGET = "UPDATE pipeline_secret SET erased_ms = %s, ciphertext = NULL WHERE ref = %s"
_ABSORBED = (
    "INSERT INTO pipeline_absorbed (run_id, kind, count) VALUES (%s, %s, 1)"
    " ON CONFLICT (run_id, kind) DO UPDATE SET count = pipeline_absorbed.count + 1"
)


@dataclass(slots=True)
class LockedRun:
    """A run under its lock, with what was read of it."""

    run: Run
    workspace: Workspace
    chain: Chain
    stood: Stood | None = None  # its row as it was read; None: it is new
    refs: frozenset[str] = frozenset()  # those that its slots held
    program: Program | None = None  # its own, once this commit has looked for it
    before: Snapshot | None = None  # the value that the first decision of this commit began with
    after: Snapshot | None = None  # that of the last; None: nothing was decided

    @property
    def id(self) -> UUID:
        """The run's id."""
        return self.run.id


class _KeptRun(NamedTuple):
    """A run's row and chain as they were committed."""

    log: str
    values: Mapping[str, object]
    chain: Chain
    stood: Stood


@dataclass(slots=True)
class _Kept:
    """What lies in SQLite as this thread's connection committed it, while ``stamp`` is the same.

    Bytes that are changed in the file, past SQLite, change no stamp: nothing is kept for longer
    than KEPT_MS, and what is read then is compared and recomputed as ever.
    """

    until_ns: int
    stamp: sql.Stamp | None = None
    runs: dict[str, _KeptRun] = field(default_factory=dict)
    logs: dict[str, tuple[Mapping[str, object], Ledger]] = field(default_factory=dict)


class _Thread(threading.local):
    kept: _Kept | None = None
    commits = 0


_thread = _Thread()


def _committed_last(now: sql.Stamp | None) -> _Kept:
    """What this thread keeps, if it is all as it was; none is kept until its next commit."""
    kept, _thread.kept = _thread.kept, None
    if kept is None or now is None or kept.stamp != now or kept.until_ns <= monotonic_ns():
        return _Kept(monotonic_ns() + KEPT_MS * 1_000_000)
    return kept


class Commit:
    """What one transaction has read and will write; made inside of it.

    Locks go in one order for all: logs, then runs, each by its id, and the house log last.
    """

    def __init__(self, runs: Collection[str], workspaces: Collection[UUID] = ()) -> None:
        self.runs: dict[str, LockedRun] = {}  # by name, as the logs
        self.logs: dict[str, Workspace] = {}
        self.ledgers = Ledgers(self.logs, partial(self.seal, actor="runtime"))
        self.after: list[Callable[[], object]] = []  # to be called once it is committed
        self._lines: dict[str, list[LogLine]] = {}
        self._ends: dict[tuple[str, str], tuple[int, str]] = {}  # by log and owner: n and prev
        _thread.commits = self._number = _thread.commits + 1
        self._stamp = sql.stamp()
        self._kept = _committed_last(self._stamp)
        names = [each for each in runs if not self._recalls(each)]
        unknown = [each for each in workspaces if not self._knows(sql.name(each))]
        if names or unknown:
            self._lock(names, unknown)

    def _knows(self, log: str) -> bool:
        """Whether a log is as the commit before left it; it is locked then."""
        if log not in self.logs and log in self._kept.logs:
            values, self.ledgers.now[log] = self._kept.logs[log]
            self.logs[log] = sql.row_of(Workspace, values)
        return log in self.logs

    def _recalls(self, name: str) -> bool:
        """Whether a run is as a commit before left it; it is locked then."""
        found = self._kept.runs.get(name)
        if found is None or not self._knows(found.log):
            return False
        log = self.logs[found.log]
        self.runs[name] = LockedRun(run_rows.again(found.values, log), log, *found[2:])
        return True

    def _lock(self, names: Sequence[str], workspaces: Collection[UUID]) -> None:
        """Lock logs and runs, and read them: asked for at once, answered one after the other."""
        if not names:
            for each in logs.lock(workspaces).values():
                self.logs[each.name] = each
            return
        keys = [sql.key_of(each) for each in names]
        answer = logs.ask_lock(workspaces, keys) if workspaces else dict
        found = run_rows.ask(keys)
        lines = records.ask_chains(names)
        self.logs |= {each.name: each for each in answer().values() if each.name not in self.logs}
        rows = found()
        chains = records.chains_of(names, lines())
        for values in rows:
            run = run_rows.run_of(values, self.logs)
            self.logs[run.workspace.name] = log = run.workspace
            self.runs[run.name] = LockedRun(run, log, chains[run.name], run_rows.stood(run))
            for last in chains[run.name].envelopes[-1:]:
                if last.hash == run.head:
                    self.ledgers.read.add((last.data, last.hash))
                else:
                    self.ledgers.doubted.add(last.hash)

    def join(self, run: str) -> LockedRun:
        """Lock one more run, which ``turns.next_run`` chose and locked without waiting."""
        self._lock([run], ())
        return self.runs[run]

    def begin(self, run: Run) -> LockedRun:
        """Hold a run that is new: it is stored with what is recorded of it.

        Raises:
            RefusedError: LOG-009, where a restore closed its log.
        """
        locked = LockedRun(run, self.logs[sql.name(run.workspace_id)], Chain(rows=[], envelopes=[]))
        if locked.workspace.successor_id is not None:
            raise logs.closed_error(locked.workspace)
        run._state.fields_cache["workspace"], run.head, run.length = locked.workspace, "", 0
        self.runs[run.name] = locked
        return locked

    def record(
        self,
        locked: LockedRun,
        decision: Decision,
        program: Program | None,
        secrets: Sequence[Sealed] = (),
        *,
        begins: bool = False,
    ) -> None:
        """Take in everything that a decision says; ``begins``: its effects are begun with it.

        ``program``: the run's, that its calls are counted by; None where the run is damaged.
        """
        if locked.after is None:
            locked.before = locked.chain.snapshot
        locked.after = decision.snapshot
        self._seal(locked, decision, program)
        for each in decision.commands:
            Agents(self.ledgers, locked.workspace).suspend(each)
        if decision.budgets:
            self.ledgers.settle(locked.workspace, decision.snapshot.agent, decision.budgets)
        _owe(locked.run, decision, program, begins=begins)
        self._keep_secrets(locked, decision, secrets)
        if decision.absorbed and not decision.drafts:
            self.count(locked, decision.absorbed)

    def count(self, locked: LockedRun, kind: str) -> None:
        """Count an event that changed nothing and is not sealed."""
        sql.later(_ABSORBED, (sql.key(locked.id), kind))

    def _seal(self, locked: LockedRun, decision: Decision, program: Program | None) -> None:
        """Give each draft its seq, n and prev; keep the run's new value beside them.

        Each says the totals that it changes, the last one the ledger of the log after all of them.
        """
        run, log, drafts, after = locked.run, locked.workspace, decision.drafts, decision.snapshot
        data, last = b"", len(drafts)
        counts = self.ledgers.are_counted(log, program, after.agent)  # before the log grows
        for place, draft in enumerate(drafts, 1):
            data = encode_snapshot(draft.after)
            totals = self.ledgers.count(log, program, draft) if program and counts else {}
            given: dict[str, object] = {"totals": totals} if totals else {}
            if given or "budget" in draft.body:
                said = {"run": run.name, "kind": draft.kind, "at_ms": draft.at_ms, **draft.body}
                said["given"] = given
                self.ledgers.take(log, said)
            if place == last:
                given["ledger"] = self.ledgers.sealed(log)
            self._add(locked, draft, {"given": given} if given else {}, data)
        if not drafts or drafts[-1].after is not after:
            data = encode_snapshot(after)
        if drafts or data != run.snapshot:
            _keep(run, after, data)
        records.remember(run, locked.chain, locked.workspace.origin, after)

    def _add(self, locked: LockedRun, draft: Draft, names: dict[str, object], data: bytes) -> None:
        run, workspace = locked.run, locked.workspace
        if draft.kind == "integrity":  # the row may lie: its place is behind all that is there
            places: list[object] = [run.length, *(each.n + 1 for each in locked.chain.envelopes)]
            run.length = max((each for each in places if isinstance(each, int)), default=0)
            run.quarantined = True
        prev = ZERO if draft.kind == "integrity" else (run.head or ZERO)
        n, seq = run.length, workspace.size
        names |= {"program": draft.after.program, "policy": draft.after.policy}
        names["snapshot"] = snapshot_hash(data)
        stored = seal(draft, Place(workspace.origin, seq, run.name, n, prev), names=names)
        line = LogLine(seq, run.name, n, stored.data, stored.hash, draft.kind)
        self._lines.setdefault(workspace.name, []).append(line)
        locked.chain.rows.append((run.name, *stored))
        locked.chain.envelopes.append(stored)
        run.head, run.length, workspace.size = stored.hash, n + 1, seq + 1

    def _keep_secrets(
        self, locked: LockedRun, decision: Decision, secrets: Sequence[Sealed]
    ) -> None:
        """Store the secrets that an envelope of this commits to; drop a finished staging."""
        if secrets:
            named = set(_committed(decision.drafts))
            keep(locked.run, [each for each in secrets if each.ref in named])
        kept = locked.chain.refs
        dropped, locked.refs = locked.refs - kept, kept
        if not dropped:
            return
        staged = sql.execute(_STAGED, (sql.key(locked.id),))
        gone = [ref for (ref,) in staged if ref not in kept]
        sql.change_each(_FORGET, [(now_ms(), ref) for ref in gone])
        self.after.append(partial(keystore().drop, gone))

    def seal(
        self,
        log: Workspace,
        kind: str,
        body: Mapping[str, object],
        *,
        actor: str,
        owner: str = LOG_RUN,
    ) -> int:
        """Seal what is no run's on the chain of its owner, and return its ``n`` there.

        ``owner``: the log itself, whose chain ends where its row says, or ``agent:<name>``.
        """
        if "ledger" not in body:  # what is found not to be sealed is told before this
            self.ledgers.of(log)
        key = (log.name, owner)
        self.logs.setdefault(log.name, log)
        if key not in self._ends:
            ends = [(log.log_length, log.log_head)] if owner == LOG_RUN else []
            if owner != LOG_RUN or kind == ALERT:  # which is sealed where the row was set back too
                ends.append(log_chain.end(log.id, owner))
            self._ends[key] = max(ends, key=itemgetter(0))
        n, prev = self._ends[key]
        if n == 0:  # whatever is sealed first
            kind = "genesis"
        place = {"log": log.origin, "seq": log.size, "run": owner, "n": n, "prev": prev}
        said = {"v": VERSION, "kind": kind, "at_ms": now_ms(), "actor": actor, **place, **body}
        self.ledgers.take(log, said)
        data = encode({**said, "given": {"ledger": self.ledgers.sealed(log)}})
        line = LogLine(log.size, owner, n, data, canonical_hash(data), kind)
        self._lines.setdefault(log.name, []).append(line)
        self._ends[key], log.size = (n + 1, line.hash), log.size + 1
        return n

    def settle(self) -> None:
        """Store the rows of runs as they are by now, for a query within this transaction."""
        if new := [each.run for each in self.runs.values() if each.stood is None]:
            run_rows.insert(new)
        for each in self.runs.values():
            stood = run_rows.stood(each.run)
            if each.stood is not None:
                run_rows.update(each.run, each.stood, stood)
            each.stood = stood

    def write(self) -> None:
        """Store it all. The commit itself is the caller's."""
        for each in self.runs.values():
            if each.after is not None:
                for application in installed():
                    application.recorded(each.run, each.before, each.after)
        self.ledgers.close()
        for (name, owner), end in self._ends.items():
            if owner == LOG_RUN:  # until here the row says how much of the chain is stored
                self.logs[name].log_length, self.logs[name].log_head = end
        self.settle()
        for name, lines in self._lines.items():
            logs.append(self.logs[name], lines)
            newest = (lines[-1].data, lines[-1].hash)
            ledgers.remember(self.logs[name], newest, self.ledgers.now[name])
        self._stamp = self._stamp and self._stamp.after()

    def keep(self) -> None:
        """Keep what is committed by now for this thread's next commit, which need not read it.

        Nothing is kept of a run that has ended or is quarantined, nor where another commit was a
        part of this one.
        """
        kept = self._kept
        if self._stamp is None or _thread.commits != self._number:
            return
        for name, log in self.logs.items():
            if name in self.ledgers.now:
                kept.logs[name] = {**log.__dict__}, self.ledgers.now[name]
        for name, each in self.runs.items():
            kept.runs.pop(name, None)
            if each.stood is not None and each.run.ended_ms is None and not each.run.quarantined:
                values = {**each.run.__dict__}
                kept.runs[name] = _KeptRun(each.workspace.name, values, each.chain, each.stood)
        kept.stamp, _thread.kept = self._stamp, kept


def _keep(run: Run, snapshot: Snapshot, data: bytes) -> None:
    """The run's new value; its columns repeat what a query needs."""
    run.snapshot = data
    run.state, run.step = snapshot.state, snapshot.step
    run.program_hash, run.policy_hash = snapshot.program, snapshot.policy
    waits = snapshot.deadline_ms and life.GROUP[snapshot.state] == "running"
    run.deadline_ms = snapshot.deadline_ms if waits else None  # elsewhere its clock stands still
    if snapshot.state in life.TERMINAL and run.ended_ms is None:
        run.ended_ms = now_ms()


def with_words(decision: Decision, secrets: Sequence[Sealed]) -> Decision:
    """The decision, its first envelope committing to what a person said beside it.

    No slot holds it, and nothing is judged by it; of a refused decision nothing is kept.
    """
    known = {*_committed(decision.drafts)}
    said = moves.listed(tuple(each.commitment for each in secrets if each.ref not in known))
    if decision.refusal or decision.absorbed or not decision.drafts or not said:
        return decision
    first, *rest = decision.drafts
    body = {**first.body, "secrets": (*first.body.get("secrets", ()), *said)}  # type: ignore[misc]
    return decision._replace(drafts=(first._replace(body=body), *rest))


def _committed(drafts: Sequence[Draft]) -> Iterator[str]:
    """The refs that these envelopes commit to."""
    for draft in drafts:
        listed = draft.body.get("secrets", ())
        yield from (each["ref"] for each in listed if isinstance(each, Mapping))  # type: ignore[attr-defined]


def _owe(run: Run, decision: Decision, program: Program | None, *, begins: bool) -> None:
    """Keep the run's row equal to what its snapshot owes."""
    owed = decision.snapshot.owed
    if not outbox.owes(run, owed) or owed in decision.effects:
        outbox.owe(run, owed)
    if owed is not None and program is not None and is_outside(program, owed.tool):
        run.due_ms = decision.snapshot.deadline_ms  # a worker has nothing to do before it is over
    if begins and owed is not None and owed in decision.effects:
        outbox.begin(run, owed, is_sealed=False)
