"""Several processes on one PostgreSQL: nothing waits in a circle, and nothing is done twice."""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet

from engine.evidence import signer
from engine.evidence.fsck.audit import audit
from engine.models import Envelope, Run, Workspace
from engine.ops.processes import redis_server, running, spawn_celery_worker
from engine.runtime import chains, decide
from engine.runtime.group_commit import Job, committed
from engine.runtime.queue import DRIVE
from engine.runtime.transaction import Commit
from engine.store import ledgers, logs, programs, sql, turns
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import Event
from nanovm_core.core.messages import Snapshot
from nanovm_core.core.program import Program
from nanovm_core.ledger.value import Ledger
from tests import postgres
from tests.kit.databases import on_postgres_alone
from tests.kit.house import POLICY, House, invoice, other_number, reason, snapshot, succeeded

pytestmark = on_postgres_alone

DONE_SECONDS_MAX = 90
CUTS = 2
WAITING = "SELECT COUNT(*) FROM pg_locks WHERE NOT granted"
UNITS = ("EUR", "USD")
MINOR = {"EUR": 12_000, "USD": 13_000}
TOTALS = {"EUR": "Total  EUR 120.00", "USD": "Total  USD 130.00"}
GLOBAL = '[[budgets]]\nscope = "global"\nunit = "money"\nmax = 100_000_000\n'
SHARED_POLICY = POLICY % (GLOBAL, "workspace", 100_000_000)


def environment(house: House, **more: str) -> dict[str, str]:
    """What a process needs to work on this house."""
    env = {"STRIPE_API_BASE": house.counterpart.url, "STRIPE_SECRET_KEY": settings.STRIPE["key"]}
    env |= {"NANOVM_DATA": str(house.folder), "DJANGO_SETTINGS_MODULE": "config.settings"}
    return {**os.environ, **env, **more}


def assert_paid_once(runs: Mapping[str, str]) -> None:
    """Each run ended well with one payment, and the accounts are the sum of them."""
    states = Counter(Run.objects.values_list("state", flat=True))
    assert states == {life.COMPLETED: len(runs)}, [reason(run) for run in Run.objects.all()]
    for run in Run.objects.all():
        unit = runs[str(run.id)]
        assert succeeded(run) == [(MINOR[unit], unit.lower())]
    count = Counter(runs.values())
    spent = Counter[str]()
    for workspace in Workspace.objects.exclude(ledgers.is_house()):
        for name, account in (ledgers.stored(workspace) or Ledger()).accounts.items():
            spent[name.rpartition("/")[2]] += account.spent
            assert account.reserved == 0
    assert +spent == {unit: count[unit] * MINOR[unit] for unit in count}


def deadlocks() -> list[str]:
    """What the server said of each transaction that it ended, as several waited in a circle."""
    _, *found = (postgres.FOLDER / "log").read_text().split("deadlock detected")
    return [each[:2_000] for each in found]


@pytest.fixture
def shared_budgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy under which everybody draws from the same two accounts."""
    file = tmp_path / "policy.toml"
    file.write_text(SHARED_POLICY)
    monkeypatch.setattr(settings, "NANOVM_POLICY", file)


def spread(logs: int, count: int, made: Callable[[bytes, Workspace], Run]) -> dict[str, str]:
    """Runs of two currencies, spread over some logs: the currency of each."""
    owners = [chains.create() for _ in range(logs)]
    units = [UNITS[number // logs % 2] for number in range(count)]
    bills = [invoice(TOTALS[unit], number=other_number(f"{n}")) for n, unit in enumerate(units)]
    return {
        str(made(bills[number], owners[number % logs]).id): unit
        for number, unit in enumerate(units)
    }


@pytest.mark.usefixtures("shared_budgets")
def test_commits_that_need_the_global_accounts_in_opposite_orders_wait_in_no_circle(
    house: House,
) -> None:
    """What two processes do that decide several runs at once, each in its own order."""
    paused = spread(2, 4, lambda *given: house.paused("propose", given[0], workspace=given[1]))
    found = [Run.objects.get(id=run) for run in paused]
    here, there = found[::2], found[1::2]  # of one log each, the accounts of which are its own
    both_inside, before = threading.Barrier(2), deadlocks()

    def decide(first: Run, second: Run) -> None:
        try:
            with transaction.atomic():
                ledger = Commit(()).ledgers
                ledger.left(first.workspace, *ledger_of(first))
                with suppress(threading.BrokenBarrierError):  # the other one is kept out
                    both_inside.wait(timeout=1)
                ledger.left(second.workspace, *ledger_of(second))
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        decided = [threads.submit(decide, *order) for order in (here, there[::-1])]
        assert [each.result() for each in decided] == [None, None]
    assert deadlocks() == before


@pytest.mark.usefixtures("house")
def test_the_house_log_is_locked_after_those_that_are_locked_with_it() -> None:
    """As a commit locks it that has locked another log already."""
    own, before = chains.create().id, deadlocks()
    house = committed(Job(lambda commit: commit.ledgers.house().id))
    until = time.monotonic() + DONE_SECONDS_MAX

    def lock_both() -> None:
        with transaction.atomic():
            logs.lock([house, own])
        connection.close()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            logs.lock([own])
            both = threads.submit(lock_both)
            while sql.execute(WAITING) == [(0,)]:
                assert time.monotonic() < until
            logs.lock([house])
        both.result()
    assert deadlocks() == before


def test_messages_that_name_each_the_run_that_the_other_takes_wait_in_no_circle(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = started(house, 2)  # whose turns come in this order
    pick, has_picked, both = turns.next_run, threading.Event(), threading.Barrier(2)
    before = deadlocks()

    def picked(besides: Collection[str] = ()) -> str | None:
        run = pick(besides)
        has_picked.set()
        both.wait(timeout=DONE_SECONDS_MAX)
        return run

    def take(commit: Commit, named: str) -> str | None:
        if named == one:
            has_picked.wait(timeout=DONE_SECONDS_MAX)
        return decide.take_turn(commit, [], decide.TimeSlice(0), named).run

    def taken(named: str) -> str | None:
        try:
            with transaction.atomic():
                run = committed(Job(partial(take, named=named)))
                both.wait(timeout=DONE_SECONDS_MAX)  # each has counted while the other was open
            return run
        except DatabaseError:
            both.abort()
            raise
        finally:
            connection.close()

    monkeypatch.setattr(turns, "next_run", picked)
    with ThreadPoolExecutor(2) as threads:
        found = [*threads.map(taken, (other, one))]
    assert found == [one, other]
    assert deadlocks() == before
    assert [*Run.objects.order_by("id").values_list("deliveries", flat=True)] == [1, 1]


def ledger_of(run: Run) -> tuple[Program, Snapshot, Event]:
    """What the accounts that bear on a run are found by."""
    return programs.program_of(run), snapshot(run), Event()


def started(house: House, count: int) -> dict[str, str]:
    """Runs that nobody drives yet, spread over four logs; with their currencies."""
    return spread(4, count, lambda *given: house.started(given[0], workspace=given[1]))


@contextmanager
def workers(house: House, runs: Mapping[str, str], count: int) -> Iterator[None]:
    """Workers behind an outside queue server, in which each run's message lies three times."""
    messages = [(run, Run.objects.get(id=run).program_hash) for run in runs] * 3
    random.Random(4).shuffle(messages)  # noqa: S311 - an order, and no secret
    with ExitStack() as stack:
        url = stack.enter_context(redis_server(house.folder / "outside"))
        queue = stack.enter_context(Celery("tests", broker=url))
        for message in messages:
            queue.send_task(DRIVE, args=message)
        env = environment(house, REDIS_URL=url)
        at_work = [stack.enter_context(running(spawn_celery_worker(env))) for _ in range(count)]
        yield
        assert [each.ended() for each in at_work] == [None] * count


@pytest.mark.usefixtures("shared_budgets")
def test_two_workers_whose_connections_are_cut_go_on_and_pay_each_run_once(house: House) -> None:
    runs, cut = started(house, 4), 0
    sealed, before = Envelope.objects.count(), deadlocks()
    with workers(house, runs, 2):
        for number in range(1, CUTS + 1):
            await_count(Envelope.objects.all(), sealed + 10 * number)
            cut += cut_all_but_ours(house)
        await_count(Run.objects.filter(state__in=life.TERMINAL), len(runs))
    assert cut >= CUTS
    assert deadlocks() == before
    assert_paid_once(runs)
    for workspace in Workspace.objects.all():
        assert signer.checkpoint(workspace.id).size == workspace.size
    assert audit().damage == ()


def cut_all_but_ours(house: House) -> int:
    """End every other session on the house's database, as a server that restarts does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = %s AND pid <> pg_backend_pid()",
            [house.database.name],
        )
        return int(cursor.rowcount)


def await_count(rows: QuerySet[Any], count: int) -> None:
    """Wait until there are so many of these."""
    deadline = time.monotonic() + DONE_SECONDS_MAX
    while rows.count() < count:
        assert time.monotonic() < deadline, Counter(Run.objects.values_list("state", flat=True))
        time.sleep(0.05)
