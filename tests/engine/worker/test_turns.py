"""Whose turn it is: the order of the statement, caps, giving way, and lost wake-ups."""

from collections.abc import Sequence
from typing import Any

import pytest
from django.conf import settings
from django.db import IntegrityError, transaction

from bench import seven
from bench.worker.application import Seven
from engine import application
from engine.application import Adapter
from engine.clock import now_ms
from engine.entropy import uuid7
from engine.models import Envelope, Run, Workspace
from engine.runtime import api, chains, create_run, decide, queue
from engine.runtime.decide import BegunEffect
from engine.runtime.transaction import LockedRun
from engine.store import leases, turns
from engine.work import Answer, Work
from engine.worker import drive, tasks
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import EffectDone, RunStarted
from tests.kit.clock import HOUR_MS, Leap, stopped
from tests.kit.house import House


@pytest.fixture
def tick(monkeypatch: pytest.MonkeyPatch, house: House) -> Leap:
    """The house, in which time stands still until a test moves it on."""
    return stopped(monkeypatch)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch, tick: Leap) -> list[str]:
    """The run of each effect that is done, in order; each takes a millisecond and does nothing."""
    found: list[str] = []

    def trivial(work: Work) -> Answer:
        tick(1)
        found.append(str(work.run.id))
        return Answer(event=EffectDone(key=work.effect.key, out={"result": "done"}))

    does = Seven(trivial)
    monkeypatch.setitem(application._INSTALLED, does.name, does)
    return found


def tools() -> dict[str, Adapter]:
    """What does the effects, by tool."""
    does = application.of_program(Seven.name)
    assert isinstance(does, Seven)
    return does.tools


def due(workspace: Workspace, count: int, tick: Leap) -> list[str]:
    """Runs of seven effects that are due, each made after the one before."""
    made = []
    for _ in range(count):
        tick(1)
        new = create_run.NewRun(
            workspace=workspace, program=seven.program(), policy=seven.POLICY, slots=seven.slots()
        )
        made.append(str(create_run.make_run(new, uuid7()).run.id))
        api.submit(made[-1], [RunStarted()])
    return made


def taken(tick: Leap) -> BegunEffect:
    """The effect of the run whose turn it is; the thread does not go on to another by itself."""
    tick(1)
    work = api.take_turn(until_ms=0).work
    assert work is not None
    return work


def answered(work: BegunEffect) -> BegunEffect | None:
    """The effect that follows."""
    return api.answer(work, EffectDone(key=work.effect.key, out={"result": "done"}), (), "").work


def named(works: Sequence[BegunEffect]) -> list[str]:
    return [str(each.run.id) for each in works]


def message(run: str) -> None:
    """The run's message arrives."""
    row = Run.objects.get(id=run)
    tasks.drive(run, row.program_hash, row.length)


def absorbed(run: str) -> int:
    """How many deliveries of the run were counted under its lease."""
    return Run.objects.get(id=run).deliveries


@pytest.mark.postgres
def test_a_lone_run_is_next_although_many_of_another_workspace_wait_longer(tick: Leap) -> None:
    many, one = chains.create(), chains.create()
    waiting = due(many, 5, tick)
    assert named([taken(tick)]) == waiting[:1]
    [lone] = due(one, 1, tick)
    assert named([taken(tick), taken(tick), taken(tick)]) == [lone, *waiting[1:3]]


@pytest.mark.postgres
def test_workspaces_take_turns_by_when_they_were_served_and_their_runs_by_age(tick: Leap) -> None:
    first, second = chains.create(), chains.create()
    ones, others = due(first, 3, tick), due(second, 3, tick)
    found = []
    for _ in range(6):
        work = taken(tick)
        found.append(str(work.run.id))
        Run.objects.filter(id=work.run.id).update(due_ms=now_ms() + HOUR_MS)
        leases.release(str(work.run.id), work.holder)
    assert found == [ones[0], others[0], ones[1], others[1], ones[2], others[2]]


@pytest.mark.postgres
def test_a_workspace_of_twice_the_weight_holds_twice_the_leases(
    tick: Leap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "NANOVM_WORKER_THREADS", 9)
    heavy, light = chains.create(), chains.create()
    Workspace.objects.filter(id=heavy.id).update(weight=2)
    ones = {*due(heavy, 6, tick)}
    due(light, 6, tick)
    assert sum(each in ones for each in named([taken(tick) for _ in range(6)])) == 4
    with pytest.raises(IntegrityError), transaction.atomic():
        Workspace.objects.filter(id=heavy.id).update(weight=0)


def test_what_has_no_turn_is_not_taken(tick: Leap) -> None:
    later, ended, closed, held, lone = (chains.create() for _ in range(5))
    [postponed] = due(later, 1, tick)
    Run.objects.filter(id=postponed).update(due_ms=now_ms() + HOUR_MS)
    [killed] = due(ended, 1, tick)
    api.kill(killed, "operator")
    due(closed, 1, tick)
    Workspace.objects.filter(id=closed.id).update(successor=lone)
    [driven] = due(held, 1, tick)
    assert named([taken(tick)]) == [driven]
    assert turns.next_run() is None
    tick(leases.TTL_MS)
    assert turns.next_run() is None
    tick(2)
    assert str(turns.next_run()) == driven  # its worker has died
    tick(HOUR_MS)
    assert str(turns.next_run()) == postponed


def test_a_passed_deadline_of_a_run_whose_driver_died_has_its_turn(tick: Leap) -> None:
    [run] = due(chains.create(), 1, tick)
    assert named([taken(tick)]) == [run]
    Run.objects.filter(id=run).update(due_ms=now_ms() + HOUR_MS, deadline_ms=now_ms())
    tick(leases.TTL_MS)
    assert turns.next_run() is None
    tick(2)
    assert turns.next_run() == run


def test_a_workspace_leaves_a_thread_to_the_others(tick: Leap) -> None:
    workspace, threads = chains.create(), settings.NANOVM_WORKER_THREADS
    due(workspace, threads, tick)
    works = [taken(tick) for _ in range(threads - 1)]
    assert api.take_turn(0).run is None
    [lone] = due(chains.create(), 1, tick)
    assert named([taken(tick)]) == [lone]
    leases.release(str(works[0].run.id), works[0].holder)
    assert named([taken(tick)]) == named(works[:1])


def test_a_drive_gives_way_after_four_effects_where_another_workspace_waits(
    tick: Leap, done: list[str]
) -> None:
    [long] = due(chains.create(), 1, tick)
    [lone] = due(chains.create(), 1, tick)
    message(long)
    assert done == [long] * 4 + [lone] * 4 + [long] * 3 + [lone] * 3
    assert {*Run.objects.values_list("state", flat=True)} == {life.COMPLETED}


def test_a_drive_goes_on_where_only_its_own_workspace_waits(tick: Leap, done: list[str]) -> None:
    first, second = due(chains.create(), 2, tick)
    message(first)
    assert done == [first] * 7 + [second] * 7


def test_what_gave_way_is_owed_and_not_begun(tick: Leap) -> None:
    [run] = due(chains.create(), 1, tick)
    work: BegunEffect | None = taken(tick)
    due(chains.create(), 1, tick)
    for _ in range(turns.EFFECTS_MAX):
        assert work is not None
        work = answered(work)
    assert work is None
    row = Run.objects.get(id=run)
    assert (row.step, row.owed_tool, row.begun_ms, row.holder) == ("s4", "t4", None, "")


@pytest.mark.postgres
def test_the_commit_that_ends_a_turn_begins_the_next_one(tick: Leap) -> None:
    first, second = due(chains.create(), 2, tick)
    work = api.take_turn(now_ms() + HOUR_MS).work
    for _ in range(seven.STEPS):
        assert work is not None
        assert str(work.run.id) == first
        work = answered(work)
    assert work is not None
    assert str(work.run.id) == second
    assert Run.objects.get(id=second).holder == work.holder


@pytest.mark.postgres
def test_each_message_is_answered_for_its_run_whosever_turn_it_is(
    tick: Leap, done: list[str]
) -> None:
    many, one = chains.create(), chains.create()
    first, second = due(many, 2, tick)
    turns.serve(many.id)
    [lone] = due(one, 1, tick)
    length = {run: Run.objects.get(id=run).length for run in (first, second, lone)}
    message(first)
    assert done[0] == lone
    assert absorbed(first) == 1  # it had to wait, and its delivery is counted
    assert {*Run.objects.values_list("state", flat=True)} == {life.COMPLETED}
    sealed = Envelope.objects.count()
    program = Run.objects.get(id=lone).program_hash
    tasks.drive(lone, program, length[lone])  # late: another message drove the run
    assert (Envelope.objects.count(), absorbed(lone)) == (sealed, 1)
    tasks.drive(lone, program)
    last = Envelope.objects.filter(run=lone).order_by("n").last()
    assert last is not None
    assert (last.kind, absorbed(lone)) == ("ignored", 1)


def test_a_message_that_finds_its_run_held_is_counted_and_drives_the_next(
    tick: Leap, done: list[str]
) -> None:
    held, free = due(chains.create(), 2, tick)
    assert named([taken(tick)]) == [held]
    message(held)
    assert (absorbed(held), done) == (1, [free] * 7)


def test_a_run_that_becomes_due_while_nobody_may_take_it_is_taken_by_the_thread_that_is_free(
    tick: Leap, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "NANOVM_WORKER_THREADS", 2)
    workspace = chains.create()
    [first] = due(workspace, 1, tick)
    late: list[str] = []
    real = tools()["t6"]

    def meanwhile(work: Work) -> Answer:
        if not late:
            late.extend(due(workspace, 1, tick))
            message(late[0])  # another thread: the workspace is at its cap
            assert late[0] not in done
        return real(work)

    monkeypatch.setitem(tools(), "t6", meanwhile)
    message(first)
    assert done == [first] * 7 + late * 7


def test_a_thread_hands_over_after_its_shift_and_the_sweep_calls_no_more_than_all(
    tick: Leap, done: list[str], queued: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = due(chains.create(), settings.NANOVM_WORKER_THREADS + 2, tick)
    real = tools()["t0"]

    def slow(work: Work) -> Answer:
        tick(drive.SHIFT_MS)
        return real(work)

    monkeypatch.setitem(tools(), "t0", slow)
    message(runs[0])
    assert (done, queued) == ([runs[0]] * 7, {queue.TURN: [""]})
    queued.clear()
    tick(tasks.SWEEP_AFTER_MS)
    tasks.sweep()
    assert queued == {queue.TURN: [""] * settings.NANOVM_WORKER_THREADS}
    while {*done} != {*runs}:
        tasks.turn()
    assert not turns.next_run()


def test_a_run_whose_row_is_gone_is_woken_by_its_name(
    tick: Leap, queued: dict[str, list[str]]
) -> None:
    [run] = due(chains.create(), 1, tick)
    Run.objects.filter(id=run).update(owed_key="", owed_tool="", due_ms=None)
    tasks.sweep()
    assert queued == {queue.DRIVE: [run], queue.TURN: [""]}


def break_claims_of(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = decide.start

    def broken(locked: LockedRun, *args: Any) -> BegunEffect:
        if str(locked.id) == run:
            raise ZeroDivisionError
        return real(locked, *args)

    monkeypatch.setattr(decide, "start", broken)


@pytest.mark.postgres
def test_a_run_that_cannot_be_claimed_does_not_stop_the_others(
    tick: Leap, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, *good = due(chains.create(), 3, tick)
    break_claims_of(bad, monkeypatch)
    with pytest.raises(ZeroDivisionError):
        message(bad)
    message(good[0])
    assert done == [good[0]] * 7 + [good[1]] * 7


def test_an_answer_is_stored_although_the_next_run_cannot_be_claimed(
    tick: Leap, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad, last = due(chains.create(), 3, tick)
    break_claims_of(bad, monkeypatch)
    message(good)
    assert done == [good] * 7 + [last] * 7


def test_a_forged_row_has_no_turn_twice(tick: Leap) -> None:
    [run] = due(chains.create(), 1, tick)
    Run.objects.filter(id=run).update(owed_key="0" * 64)
    assert api.take_turn(0).work is None
    assert api.take_turn(0).work is not None  # the row is what the snapshot owes again
