"""The parts of the decision path, each with the run that needs it and four ways to break it."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from celery import Celery
from django.conf import settings
from django.db import OperationalError, connections

from config import health, queue_settings
from engine.models import Run, Workspace
from engine.ops.processes import free_port, redis_server
from engine.runtime import api, queue, warrants
from engine.store import log_chain
from engine.vault import key_store
from engine.worker import drive, tasks
from nanovm_core.core import lifecycle as life
from pipeline.steps import advise
from pipeline.steps.charge import gateway
from tests import postgres
from tests.engine.runtime.test_authority import CALM
from tests.kit import house as kit
from tests.kit.clock import HOUR_MS, stopped
from tests.kit.completions import completions
from tests.kit.house import House, reason, snapshot, sql
from tests.pipeline.breaks import (
    WAIT_S,
    Break,
    Put,
    edited,
    for_good,
    held,
    holder,
    moved,
    nothing,
    renamed,
    silent,
)
from tests.pipeline.steps.test_unknown import FarSide

ENVELOPES, INDEX = "pipeline_envelope", "pipeline_supplierindex"


class Part:
    """A part of the decision path: the run that needs it, four ways to break it, the way on.

    Each break is mended where its block ends.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.request = request
        self.house: House = request.getfixturevalue("house")
        self.patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        self.leap = stopped(self.patch)

    def prepared(self) -> Run:
        """A run that is about to do what needs the part."""
        return self.house.owing()

    def breaks(self) -> tuple[Break, Break, Break, Break]:
        """Missing, garbage, slow and raising, each not entered yet."""
        raise NotImplementedError

    def work(self, run: Run) -> None:
        """What a worker does."""
        drive.drive_patiently(str(run.id))

    def go_on(self, run: Run) -> Run:
        """Have the run go on once the part is mended, as the table says; the one that pays."""
        if snapshot(run).state == life.APPROVAL:
            api.approve(str(run.id), "operator")
        return self.house.drive(run)

    def policy(self, more: str, most: int) -> Path:
        """Put an operator's policy in force."""
        file = self.house.folder / "policy.toml"
        file.write_text(kit.POLICY % (more, "workspace", most))
        self.patch.setattr(settings, "NANOVM_POLICY", file)
        return file

    def resumed(self, step: str, **options: Any) -> Run:
        """A run that is about to do a step."""
        run = self.house.paused(step, **options)
        api.resume(str(run.id), "visitor")
        return run

    def second(self) -> Run:
        """A run that waits for its model, in a log of which another run has paid."""
        first = self.house.run()
        self.leap(2 * HOUR_MS)
        return self.resumed("propose", workspace=first.workspace)


class Policy(Part):
    """The policy file, and the copy of it that a run under way carries."""

    def prepared(self) -> Run:
        self.file = self.policy("", 100_000_000)
        return self.house.owing()

    @contextmanager
    def broken(self, copy: bytes, put: Put) -> Iterator[None]:
        sql((f"UPDATE pipeline_terms SET policy = x'{copy.hex()}'", ()))
        with moved(self.file, put):
            yield

    def breaks(self) -> tuple[Break, Break, Break, Break]:
        other = self.file.read_bytes().replace(b"100000000", b"1")
        garbage = self.broken(b"{", lambda file: file.write_bytes(b"{"))
        slow, raising = self.broken(b"v =", os.mkfifo), self.broken(other, Path.mkdir)
        return self.broken(b"", nothing), garbage, slow, raising

    def work(self, run: Run) -> None:
        self.house.drive(run)
        assert (run.state, reason(run)) == (life.FAILED, "PRG-011")
        assert health._policy().startswith("no policy (PRG-003)")
        self.house.new(workspace=run.workspace)

    def go_on(self, run: Run) -> Run:
        assert Run.objects.count() == 1
        return self.house.run(workspace=run.workspace)


class Windows(Part):
    """The rows that say what had been counted when a window began."""

    def prepared(self) -> Run:
        self.policy(CALM, 100_000_000)
        return self.second()

    def breaks(self) -> tuple[Break, Break, Break, Break]:
        table = "pipeline_tally"
        missing = edited(table, "total > 0", f"DELETE FROM {table}")
        garbage = edited(table, "total > 0", f"UPDATE {table} SET total = total + 1000")
        return missing, garbage, held(self.house, table), renamed(table)


class TheLedger(Part):
    """The ledger in the row of a log that has not enough left for this run."""

    def prepared(self) -> Run:
        self.policy("", 20_000)
        return self.second()

    def breaks(self) -> tuple[Break, Break, Break, Break]:
        table = "pipeline_workspace"
        put = f"UPDATE {table} SET ledger = x'%s'"
        missing, garbage = for_good(put % ""), for_good(put % "7b22")
        return missing, garbage, held(self.house, table), renamed(table, "ledger")

    def go_on(self, run: Run) -> Run:
        kit.limit(run, "workspace/*", 100_000_000)
        return self.house.resumed(run) if run.state == life.EXHAUSTED else self.house.drive(run)


class Revocations(Part):
    """The log's own chain, which is read for revoked grants: there is none."""

    def breaks(self) -> tuple[Break, Break, Break, Break]:
        last = f"run = 'log' AND n = {log_chain.length(Workspace.objects.get().id) - 1}"
        missing = edited(ENVELOPES, last, f"DELETE FROM {ENVELOPES} WHERE {last}")
        put = f"UPDATE {ENVELOPES} SET bytes = x'7b7d' WHERE {last}"
        garbage = edited(ENVELOPES, last, put)
        return missing, garbage, held(self.house, ENVELOPES), self.raising()

    @contextmanager
    def raising(self) -> Iterator[None]:
        def read(_: object) -> None:
            raise OperationalError("disk I/O error in the log's own chain")

        with self.patch.context() as patch:
            patch.setattr(log_chain, "length", read)
            yield


class WarrantKey(Part):
    """The file of the key that signs warrants, as a process finds it that starts now."""

    def prepared(self) -> Run:
        self.house.run()
        return self.house.owing()

    @contextmanager
    def broken(self, put: Put) -> Iterator[None]:
        with moved(self.house.folder / warrants.KEY_FILE, put):
            warrants._loaded.cache_clear()
            yield

    def breaks(self) -> tuple[Break, Break, Break, Break]:
        garbage = self.broken(lambda file: file.write_bytes(b"short"))
        return self.broken(nothing), garbage, self.broken(os.mkfifo), self.broken(Path.mkdir)


class Keys(Part):
    """The key store's own database."""

    @contextmanager
    def broken(self, put: Put) -> Iterator[None]:
        key_store._kept.close()
        with moved(self.house.folder / "keys.sqlite3", put):
            yield
            key_store._kept.close()

    def breaks(self) -> tuple[Break, Break, Break, Break]:
        garbage = self.broken(lambda file: file.write_bytes(b"no database, no key" * 500))
        return self.broken(nothing), garbage, self.slow(), self.broken(Path.mkdir)

    @contextmanager
    def slow(self) -> Iterator[None]:
        key_store._kept.close()
        with self.patch.context() as patch:
            patch.setattr(key_store, "LOCK_SECONDS_MAX", WAIT_S)
            with closing(holder(str(self.house.folder / "keys.sqlite3"), "", "")):
                yield
        key_store._kept.close()


class TheDatabase(Part):
    """What holds all rows."""

    @contextmanager
    def broken(self, put: Put) -> Iterator[None]:
        connections.close_all()
        with moved(Path(self.house.database.name), put):
            yield
            connections.close_all()

    @contextmanager
    def away(self) -> Iterator[None]:
        name = self.house.database.name
        for old, new in ((name, f"was_{name}"), (f"was_{name}", name)):
            connections.close_all()
            postgres.execute(f'ALTER DATABASE "{old}" RENAME TO "{new}"')
            if old == name:
                yield

    def breaks(self) -> tuple[Break, Break, Break, Break]:
        missing, garbage = self.away(), renamed("pipeline_run", "snapshot")
        if not self.house.database.url:
            missing = self.broken(nothing)
            garbage = self.broken(lambda file: file.write_bytes(b"no pages" * 9999))
        return missing, garbage, held(self.house, "pipeline_run"), renamed(ENVELOPES)


class Queue(Part):
    """The queue server: a run that is woken by it alone."""

    @contextmanager
    def at(self, url: str) -> Iterator[None]:
        """The queue server of this address, asked as the product asks it."""
        sender = Celery("sender", set_as_current=False)
        sender.config_from_object(queue_settings)
        options = queue_settings.broker_transport_options
        assert 0 < options["socket_timeout"] <= queue.ANSWER_SECONDS_MAX * 5
        short = {**options, "socket_timeout": WAIT_S}
        sender.conf.update(broker_url=url, broker_transport_options=short)
        with closing(sender), self.patch.context() as patch:
            patch.setattr(queue, "current_app", sender)
            patch.setattr(queue, "ANSWER_SECONDS_MAX", WAIT_S)
            patch.setattr(settings, "REDIS_URL", url)
            yield

    @contextmanager
    def garbage(self) -> Iterator[None]:
        with completions() as web, self.at(f"redis://{urlsplit(web.url).netloc}/0"):
            yield

    @contextmanager
    def raising(self) -> Iterator[None]:
        with redis_server(self.house.folder / "other") as url:
            other = url.replace("redis://:", "redis://:not-")
            with self.at(other):
                yield

    def breaks(self) -> tuple[Break, Break, Break, Break]:
        missing = self.at(f"redis://127.0.0.1:{free_port()}/0")
        slow = silent(lambda place: self.at(f"redis://{place}/0"))
        return missing, self.garbage(), slow, self.raising()

    def work(self, run: Run) -> None:
        api.wake(str(run.id), "visitor")

    def go_on(self, run: Run) -> Run:
        with redis_server(self.house.folder / "queue") as url, self.at(url):
            self.leap(tasks.SWEEP_AFTER_MS + 1)
            tasks.sweep()
            assert queue.counts(url)[0] > 0
        return self.house.drive(run)


class StripesAnswer(Part):
    """What Stripe's counterpart answers to the one request that moves money."""

    def prepared(self) -> Run:
        self.far: FarSide = self.request.getfixturevalue("far")
        self.patch.setattr(drive, "TRIES_MAX", 1)
        return self.house.owing()

    @contextmanager
    def told(self, kind: str, **more: object) -> Iterator[None]:
        self.far.told(kind, **more)
        with self.patch.context() as patch:
            patch.setattr(gateway, "TIMEOUT_S", 6 * WAIT_S)
            yield

    @contextmanager
    def garbage(self) -> Iterator[None]:
        with completions() as answers, self.patch.context() as patch:
            answers.body = b"<html>"
            patch.setitem(settings.STRIPE, "api_base", answers.url)
            yield

    def breaks(self) -> tuple[Break, Break, Break, Break]:
        slow = self.told("delay_after", delay_ms=400)
        return self.told("hang_up_after"), self.garbage(), slow, self.told("error_before")


class SupplierRegister(Part):
    """The register: what finds a supplier, and the supplier's row."""

    def prepared(self) -> Run:
        is_missing = self.request.node.callspec.params["cell"]["break"] == "missing"
        return self.resumed("vault") if is_missing else self.house.owing()

    def breaks(self) -> tuple[Break, Break, Break, Break]:
        table = "pipeline_supplier"
        missing = edited(INDEX, "kind <> ''", f"DELETE FROM {INDEX}")
        garbage = edited(table, "state <> ''", f"UPDATE {table} SET ciphertext = x'00'")
        return missing, garbage, held(self.house, table), renamed(table)

    def go_on(self, run: Run) -> Run:
        if snapshot(run).state == life.FAILED:
            run = self.house.run(kit.invoice(), workspace=run.workspace)
            assert snapshot(run).held_by == "duplicate"
        return super().go_on(run)


class Advisor(Part):
    """The advisor's endpoint: a run whose invoice presses, so that it is asked."""

    def prepared(self) -> Run:
        pressing = kit.invoice(kit.TOTAL, "URGENT: pay today")
        return self.resumed("advise", document=pressing, advisor=advise.ENDPOINT)

    @contextmanager
    def at(self, url: str, seconds: float = advise.TIMEOUT_S) -> Iterator[None]:
        with self.patch.context() as patch:
            patch.setattr(settings, "NANOVM_ADVISOR", {"url": url, "name": "tiny", "key": ""})
            patch.setattr(advise, "TIMEOUT_S", seconds)
            yield

    @contextmanager
    def answering(self, words: str, status: int) -> Iterator[None]:
        with completions() as answers, self.at(answers.url):
            answers.says(words)
            answers.status = status
            yield
            assert len(answers.asked) == 1

    def breaks(self) -> tuple[Break, Break, Break, Break]:
        garbage, raising = self.answering("Pay it.", 200), self.answering('{"risk": 0}', 500)
        slow = silent(lambda place: self.at(f"http://{place}/v1", WAIT_S))
        return self.at(f"http://127.0.0.1:{free_port()}/v1"), garbage, slow, raising

    def go_on(self, run: Run) -> Run:
        now = snapshot(run)
        assert (now.held_by, now.slots["risk_score"]) == ("advised-risk", advise.MOST)
        return super().go_on(run)


PARTS: dict[str, type[Part]] = {
    "policy file": Policy,
    "window totals": Windows,
    "ledger": TheLedger,
    "revocations": Revocations,
    "warrant key": WarrantKey,
    "key store": Keys,
    "database": TheDatabase,
    "queue": Queue,
    "Stripe's answer": StripesAnswer,
    "supplier register": SupplierRegister,
    "advisor": Advisor,
}
