"""Damage of what this very process stored or verified before: it is compared, and not believed."""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from asgiref.sync import SyncToAsync
from django.db import connection
from django.db.transaction import atomic, on_commit

from engine import clock
from engine.evidence.fsck.audit import audit
from engine.models import AdapterCall, Run
from engine.runtime import api, chains, decide, transaction
from engine.runtime.group_commit import Job, commit_together, committed
from engine.runtime.transaction import Commit
from engine.store import ledgers, logs, records, run_rows
from engine.store.sql import Stamp, key_of
from engine.work import Answer, Work
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import RunStarted
from pipeline.application import INVOICES
from pipeline.steps import adapters
from tests.engine.evidence.test_damage import DAMAGE, Statement, row, terms, two_paused
from tests.kit.databases import on_sqlite_alone
from tests.kit.house import House, bodies, reason, sql, succeeded

FLIPPED = "UPDATE pipeline_envelope SET bytes = %s WHERE run = %s AND n = 1"


class BrokenOffError(Exception):
    """A commit that does not come to its end."""


def moved(commit: Commit, run: Run) -> None:
    """A transition that seals a refusal and leaves the run as it is."""
    decide.apply(commit, commit.runs[run.name], [RunStarted()])


def moving(run: Run) -> Job[None]:
    return Job(lambda commit: moved(commit, run), runs=(run.name,))


def warm(house: House) -> tuple[Run, Run]:
    """Two runs that this process knows, byte by byte: a second transition recomputes nothing."""
    runs = house.once(two_paused)
    records._KNOWN.clear()
    for run in runs:
        committed(moving(run))
        assert records._KNOWN[run.name].snapshot is not None
        run.refresh_from_db()
    return runs


def one_byte(run: Run) -> Statement:
    """A stored envelope in which one byte is another."""
    data = bytearray(records.stored_envelopes(run.name)[1].data)
    data[len(data) // 2] ^= 1
    return FLIPPED, (bytes(data), run.name)


OF_ONE = {
    **DAMAGE,
    "one byte": (one_byte, "LOG-001"),
    "another log": (lambda run: row(run, "workspace_id", chains.create().id.hex), "LOG-003"),
}
RENAMED = "UPDATE pipeline_workspace SET origin = 'another/log' WHERE id = %s"
OF_ITS_LOG: dict[str, tuple[Callable[[Run], Statement], str]] = {
    "another name": (lambda run: (RENAMED, (run.workspace_id.hex,)), "LOG-003"),
    "policy": (lambda run: terms(run, "policy", b"not a policy"), "PRG-011"),
}


@pytest.mark.parametrize(
    "name", [pytest.param("bytes", marks=pytest.mark.postgres), *sorted({*OF_ONE} - {"bytes"})]
)
def test_damage_of_a_known_run_is_found_in_a_commit_that_it_shares(house: House, name: str) -> None:
    run, other = warm(house)
    damage, code = OF_ONE[name]
    sql(damage(run))
    commit_together([moving(run), moving(other)])
    for each in (run, other):
        each.refresh_from_db()
    assert (run.state, reason(run), run.quarantined) == (life.FAILED, code, True)
    assert (other.state, other.quarantined) == (life.PAUSED, False)
    assert run.name not in records._KNOWN


@pytest.mark.parametrize("name", OF_ITS_LOG)
def test_damage_that_runs_share_is_found_in_a_known_one(
    house: House, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run, _ = warm(house)
    monkeypatch.setattr(INVOICES, "policy_files", {})  # no other copy has the hash of the genesis
    damage, code = OF_ITS_LOG[name]
    sql(damage(run))
    assert (state_after(run), reason(run)) == (life.FAILED, code)


def test_an_exchanged_program_of_a_known_run_is_found(house: House) -> None:
    run, _ = warm(house)
    sql(terms(run, "program", b"not a program"))
    committed(moving(run))
    assert "PRG-011" in [body.get("rule") for body in bodies(run)]


def state_after(run: Run) -> str:
    committed(moving(run))
    run.refresh_from_db()
    return run.state


@on_sqlite_alone
def test_what_another_connection_changed_is_found_at_the_next_transition(house: House) -> None:
    run, _ = warm(house)
    assert state_after(run) == life.PAUSED  # by what was committed before, and not read
    with closing(sqlite3.connect(connection.settings_dict["NAME"])) as other, other:
        other.execute("UPDATE pipeline_run SET head = ? WHERE id = ?", ("0" * 64, run.id.hex))
    assert (state_after(run), reason(run)) == (life.FAILED, "LOG-004")


@on_sqlite_alone
@pytest.mark.whole
@pytest.mark.parametrize("when", ["in the job", "in a hook", "after it", "in another thread"])
def test_what_others_wrote_about_a_commit_is_read_at_the_next(house: House, when: str) -> None:
    """An application may write with the ORM: that is no statement of the commit path."""
    run, other = warm(house)
    write = partial(Run.objects.filter(id=other.id).update, pace_ms=1, snapshot=b"{}")

    def job(commit: Commit) -> None:
        assert other.name in commit._kept.runs
        moved(commit, run)
        if when == "in the job":
            write()
        elif when == "after it":
            on_commit(write)

    with pytest.MonkeyPatch.context() as patch:
        if when == "in a hook":
            patch.setattr(type(INVOICES), "recorded", lambda *_: write())
        committed(Job(job, runs=(run.name,)))
    if when == "in another thread":
        SyncToAsync.single_thread_executor.submit(write).result()  # on a connection of its own
    assert (state_after(other), reason(other)) == (life.FAILED, "LOG-003")
    assert state_after(run) == life.PAUSED


@on_sqlite_alone
@pytest.mark.whole
@pytest.mark.parametrize(
    ("step", "error"), [("settle", KeyboardInterrupt), ("write", BrokenOffError)]
)
def test_nothing_is_kept_of_a_commit_that_was_broken_off(
    house: House, step: str, error: type[BaseException]
) -> None:
    run, _ = warm(house)
    real = getattr(Commit, step)

    def broken(commit: Commit) -> None:
        real(commit)
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Commit, step, broken)
        with pytest.raises(error):
            committed(moving(run))
    assert transaction._thread.kept is None
    assert state_after(run) == life.PAUSED
    assert audit().damage == ()


@on_sqlite_alone
def test_a_commit_within_a_commit_that_was_undone_is_read_at_the_next(house: House) -> None:
    run, other = warm(house)

    def job(commit: Commit) -> None:
        with suppress(BrokenOffError), atomic():
            committed(moving(other))
            raise BrokenOffError
        moved(commit, run)

    committed(Job(job, runs=(run.name,)))
    assert transaction._thread.kept is None
    assert {state_after(each) for each in (run, other)} == {life.PAUSED}
    assert audit().damage == ()


@on_sqlite_alone
def test_bytes_changed_in_the_file_are_found_after_a_second(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = warm(house)
    data = records.stored_envelopes(run.name)[1].data
    connection.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    file = Path(connection.settings_dict["NAME"])
    whole = file.read_bytes()
    with file.open("r+b") as opened:
        opened.seek(whole.index(data[-64:]))  # hashes: they are nowhere else
        opened.write(b"?")
    connection.connection.execute("PRAGMA shrink_memory")
    assert state_after(run) == life.PAUSED
    later_ns = clock.monotonic_ns() + transaction.KEPT_MS * 1_000_000
    monkeypatch.setattr(transaction, "monotonic_ns", lambda: later_ns)
    assert (state_after(run), reason(run)) == (life.FAILED, "LOG-001")


@on_sqlite_alone
def test_what_is_kept_is_what_a_reading_gives(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a run through its steps, and of two that share commits; leases alone count deliveries."""
    real, compared = transaction._committed_last, list[str]()

    def read_too(now: Stamp | None) -> transaction._Kept:
        kept = real(now)
        for name, (values, ledger) in kept.logs.items():
            log, _ = logs.read_log(UUID(name))
            assert {each: log.__dict__[each] for each in logs._LOG}.items() <= {**values}.items()
            assert ledgers.checked(log).ledger == ledger
        for name, each in kept.runs.items():
            found = run_rows.run_of(run_rows.ask([key_of(name)])()[0], {})
            both = {*found.__dict__} & {*each.values} - {
                "_state",
                "deliveries",
            }
            assert both >= {"snapshot", "head", "length", "program_source", "policy_source"}
            assert [found.__dict__[part] for part in both] == [each.values[part] for part in both]
            assert run_rows.stood(found) == each.stood
            assert records.ask_chains([name])() == each.chain.rows
            compared.append(name)
        return kept

    monkeypatch.setattr(transaction, "_committed_last", read_too)
    monkeypatch.setattr(transaction, "KEPT_MS", 600_000)
    assert (house.run().state, len(compared) > 5) == (life.COMPLETED, True)
    two = house.once(two_paused)
    commit_together([moving(each) for each in two])
    assert {house.resumed(each).state for each in two} == {life.COMPLETED}
    assert {each.name for each in two} <= {*compared}


@pytest.mark.postgres
def test_what_was_rolled_back_is_not_believed(house: House) -> None:
    run, other = warm(house)

    def broken_off(commit: Commit) -> None:
        moved(commit, run)
        moved(commit, run)
        commit.write()
        raise BrokenOffError

    for _ in range(2):
        with pytest.raises(BrokenOffError):
            committed(Job(broken_off, runs=(run.name,)))
    jobs = [moving(other), Job(broken_off, runs=(run.name,))]
    commit_together(jobs)
    assert isinstance(jobs[1].error, BrokenOffError)
    assert Run.objects.get(id=run.id).length == run.length
    assert house.resumed(run).state == life.COMPLETED
    assert len(succeeded(run)) == 1
    assert audit().damage == ()


@pytest.mark.postgres
def test_a_granted_call_is_recorded_with_its_intent_and_before_it_is_made(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    granted = ("stripe.create_payment_intent", "notify.send_email")
    seen: list[tuple[str, list[str]]] = []

    def looking(work: Work) -> Answer:
        calls = AdapterCall.objects.filter(run=work.run.id, key=work.effect.key)
        seen.append((work.effect.tool, [*calls.values_list("outcome", flat=True)]))
        return real[work.effect.tool](work)

    real = dict(adapters.ADAPTERS)
    monkeypatch.setattr(adapters, "ADAPTERS", dict.fromkeys(real, looking))
    run = house.run()
    assert run.state == life.COMPLETED
    assert [each for each in seen if each[0] in granted] == [(each, ["begun"]) for each in granted]
    assert [tool for tool, outcomes in seen[1:] if outcomes and tool not in granted] == []
    assert api.check(run.name) is None
