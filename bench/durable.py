"""Contestants for a bench of durable runs: seven trivial steps through the shipped runtime.

It is a plugin: the bench gives ``Base``, ``N`` and ``CTX``, and reads ``CONTESTANTS``. Runs go
through ``create_run.make_run`` and ``api.answer`` with tree, budgets and checkpoints on, on
SQLite (synchronous=FULL), or on the PostgreSQL server whose address the bench has for its own
contestants (``PGURL``), in a database that is made for it.
"""

import importlib
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

Base, N, CTX = (globals()[name] for name in ("Base", "N", "CTX"))  # the bench's own
ROOT = Path(sys.argv[sys.argv.index("--plugin") + 1]).resolve().parents[1]
sys.path.insert(0, str(ROOT))
seven, group, kit, database = (  # found by now
    importlib.import_module(f"bench.{each}")
    for each in ("seven", "kit.group", "kit.migrated", "kit.database")
)


class Nanovm(Base):  # type: ignore[misc, valid-type]
    """One run after the other; with ``conc`` above 1, so many in flight on one event loop."""

    database = ""  # a file in the data folder
    durable = "chain, tree, snapshot, budget, outbox and lease: one commit a step"
    least = seven.ENVELOPES

    def setup(self) -> None:
        """An empty data folder, migrated; one workspace; the signer in a thread of its own."""
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # the loop's own thread commits
        kit.migrated(self.d, DATABASE_URL=self.database)
        from engine.entropy import uuid7
        from engine.runtime import api, chains, create_run, group_commit
        from nanovm_core.core.events import EffectDone

        self.create_run, self.api, self.group_commit = create_run, api, group_commit
        self.done_event, self.uuid7 = EffectDone, uuid7
        self.workspace = chains.create()
        self.source, self.given = seven.program(), seven.slots(CTX)
        self._sign()

    def _sign(self) -> None:
        from engine.evidence import signer

        def forever() -> None:
            while True:
                time.sleep(1)
                signer.checkpoint(self.workspace.id)

        threading.Thread(target=forever, daemon=True).start()

    def new(self) -> Any:
        """A run that is to be made."""
        given = {"program": self.source, "policy": seven.POLICY, "slots": self.given}
        return self.create_run.NewRun(workspace=self.workspace, actor="bench", **given)

    def one(self) -> None:
        """One run, from its genesis to its end."""
        work: Any = self.create_run.make_run(self.new(), self.uuid7(), starts=True).work
        for i in range(N):
            work = self.api.answer(work, self.event(work, i), (), "EffectDone").work
        self.ended(work)

    def ended(self, work: object) -> None:
        """Nothing is owed any more."""
        if work is not None:
            raise RuntimeError("a run did not end where it should")

    def event(self, work: Any, i: int, clock: Any = None) -> Any:
        """What came of a step."""
        found = self.tool(i, clock) if clock is not None else self.tool(i)
        return self.done_event(key=work.effect.key, out={"result": found["ref"]})

    def run_many(self, secs: float) -> None:
        """Runs until the time is up, one for each in flight at least; they share commits."""

        async def one(shared: Any) -> None:
            began, clock = time.perf_counter(), dict[str, float]()
            made = self.create_run.create_job(self.new(), self.uuid7(), starts=True)
            work = (await shared.commit(made)).work
            for i in range(N):
                job = self.api.answer_job(work, self.event(work, i, clock))
                work = (await shared.commit(job)).work
            self.ended(work)
            self.done(began, clock)

        if self.conc == 1:
            super().run_many(secs)
        else:
            group.in_flight(self.conc, secs, self.commit, one)

    def commit(self, jobs: Any) -> list[Any]:
        """What came of each job, after the commit that they share."""
        self.group_commit.commit_together(jobs)
        return [job.error if job.error is not None else job.outcome() for job in jobs]

    def rows(self) -> int:
        """The envelopes that are stored; everything that is stored is recomputed first."""
        from engine.evidence.fsck.audit import audit
        from engine.models import Envelope

        report = audit()
        if report.exit_status:
            raise RuntimeError(f"fsck: {report.damage[:3]}")
        return Envelope.objects.count()


class NanovmPostgres(Nanovm):
    """The same on PostgreSQL, durable as its server is set (fsync on)."""

    durable = "as nanovm_sqlite, on PostgreSQL with synchronous_commit=on"

    def setup(self) -> None:
        """A database of this process's own on the bench's server."""
        self.database = database.made("nanovm")
        super().setup()


CONTESTANTS = {"nanovm_sqlite": Nanovm, "nanovm_postgres": NanovmPostgres}
