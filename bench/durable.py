"""Contestants for a bench of durable runs: seven trivial steps through the shipped runtime.

It is a plugin: the bench gives ``Base``, ``N`` and ``CTX``, and reads ``CONTESTANTS``. Runs go
through ``create_run.make_run`` and ``api.answer`` with tree, budgets and checkpoints on, on
SQLite (synchronous=FULL), or on the PostgreSQL server whose address the bench has for its own
contestants (``PGURL``), in a database that is made for it.
"""

import asyncio
import importlib
import os
import sys
import threading
import time
from contextvars import copy_context
from pathlib import Path
from types import ModuleType
from typing import Any

Base, N, CTX = (globals()[name] for name in ("Base", "N", "CTX"))  # the bench's own
ROOT = Path(sys.argv[sys.argv.index("--plugin") + 1]).resolve().parents[1]
sys.path.insert(0, str(ROOT))
seven = importlib.import_module("bench.seven")  # found by now, and the same for every bench


class Nanovm(Base):  # type: ignore[misc, valid-type]
    """One run after the other; with ``conc`` above 1, so many in flight on one event loop."""

    database = ""  # a file in the data folder
    durable = "chain, tree, snapshot, budget, outbox and lease: one commit a step"

    def setup(self) -> None:
        """An empty data folder, migrated; one workspace; the signer in a thread of its own."""
        os.environ["NANOVM_DATA"] = self.d
        os.environ["DATABASE_URL"] = self.database
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # the loop's own thread commits
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0, interactive=False)
        from engine.clock import now_ms
        from engine.entropy import uuid7
        from engine.runtime import api, chains, create_run, group_commit
        from nanovm_core.core.events import EffectDone

        self.create_run, self.api, self.group_commit = create_run, api, group_commit
        self.done_event = EffectDone
        self.now_ms, self.uuid7 = now_ms, uuid7
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
        return self.create_run.NewRun(
            workspace=self.workspace,
            program=self.source,
            policy=seven.POLICY,
            slots=self.given,
            actor="bench",
        )

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
        if self.conc == 1:
            super().run_many(secs)
        else:
            asyncio.run(self._together(time.perf_counter() + secs))

    async def _together(self, end: float) -> None:
        group = Group(asyncio.get_running_loop(), self.group_commit)

        async def one() -> None:
            while True:
                began, clock = time.perf_counter(), dict[str, float]()
                made = self.create_run.create_job(self.new(), self.uuid7(), starts=True)
                work = (await group.commit(made)).work
                for i in range(N):
                    job = self.api.answer_job(work, self.event(work, i, clock))
                    work = (await group.commit(job)).work
                self.ended(work)
                self.done(began, clock)
                if time.perf_counter() >= end:
                    return

        await asyncio.gather(*[one() for _ in range(self.conc)])

    def rows(self) -> int:
        """The envelopes that are stored; everything that is stored is recomputed first."""
        from engine.evidence.fsck.audit import audit
        from engine.models import Envelope

        report = audit()
        if report.exit_status:
            raise RuntimeError(f"fsck: {report.damage[:3]}")
        return Envelope.objects.count()


class Group:
    """Jobs of one event loop, committed together once every task has had its turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop, committer: ModuleType) -> None:
        self.loop, self.committer = loop, committer
        self.context = copy_context()  # one, so that all commits are on one connection
        self.waiting: list[tuple[Any, asyncio.Future[Any]]] = []

    def commit(self, job: Any) -> asyncio.Future[Any]:
        """The outcome of a job, after the commit that it shares."""
        future: asyncio.Future[Any] = self.loop.create_future()
        self.waiting.append((job, future))
        if len(self.waiting) == 1:
            self.loop.call_soon(self._turn, context=self.context)
        return future

    def _turn(self) -> None:
        self.loop.call_soon(self._flush, context=self.context)

    def _flush(self) -> None:
        taken, self.waiting = self.waiting, []
        self.committer.commit_together([job for job, _ in taken])
        for job, future in taken:
            if job.error is not None:  # of this run's own task: the others are not to wait for ever
                future.set_exception(job.error)
            else:
                future.set_result(job.outcome())


class NanovmPostgres(Nanovm):
    """The same on PostgreSQL, durable as its server is set (fsync on)."""

    durable = "as nanovm_sqlite, on PostgreSQL with synchronous_commit=on"

    def setup(self) -> None:
        """A database of this process's own on the bench's server."""
        import psycopg

        server, name = sys.modules["__main__"].PGURL, f"nanovm_{os.getpid()}"
        with psycopg.connect(f"{server}postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
            row = connection.execute("SHOW fsync").fetchone()
        if row != ("on",):
            raise RuntimeError("The server has fsync off, so nothing is durable; set it on.")
        self.database = f"{server}{name}"
        super().setup()


CONTESTANTS = {"nanovm_sqlite": Nanovm, "nanovm_postgres": NanovmPostgres}
