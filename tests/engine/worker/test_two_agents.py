"""A reader's and a payer's process on one database: whose turns, queues, leases and sweeps."""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
from celery.worker import control
from django.conf import settings
from kombu.matcher import match

from bench import seven
from bench.worker.application import Shared
from config import celery, health
from engine import application
from engine.clock import now_ms
from engine.entropy import uuid7
from engine.models import Run, Workspace
from engine.ops import processes
from engine.runtime import api, chains, create_run, queue, step_times
from engine.store import actors, leases, sql, turns
from engine.work import Answer, Work
from engine.worker import drive, tasks
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import EffectDone, RunStarted
from sabotage.doors import redeliver
from tests.kit.clock import DAY_MS, HOUR_MS, Leap, stopped
from tests.kit.house import House
from tests.pipeline.after_payment.pages import asked

READER, PAYER = "celery.reader", "celery"
OTHER = {"reader": "payer", "payer": "reader"}
ACTING = ["reader" if i in seven.READS else "payer" for i in range(seven.STEPS)]
Sent = list[tuple[str, str]]


@pytest.fixture
def tick(monkeypatch: pytest.MonkeyPatch, house: House) -> Leap:
    """The house and the shared steps, in which time stands still until a test moves it on."""
    leap = stopped(monkeypatch)
    does = Shared(lambda work: Answer(event=EffectDone(key=work.effect.key, out={"result": "x"})))
    monkeypatch.setitem(application._INSTALLED, does.name, does)
    return leap


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """What makes this process that of an agent; of none, where it has no name."""
    return lambda agent: monkeypatch.setattr(settings, "NANOVM_AGENT", agent)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """The queue and the task of each message."""
    found: Sent = []

    def send_task(name: str, *_: object, queue: str, **__: object) -> None:
        found.append((queue, name))

    fake = SimpleNamespace(send_task=send_task)
    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setattr(queue, "current_app", fake)
    return found


def due(workspace: Workspace, tick: Leap, done: int = 0) -> str:
    """A run of shared steps that owes the one after so many."""
    tick(1)
    source = seven.program(shared=True)
    new = create_run.NewRun(
        workspace=workspace, program=source, policy=seven.POLICY, slots=seven.slots()
    )
    run = str(create_run.make_run(new, uuid7()).run.id)
    api.submit(run, [RunStarted()])
    for _ in range(done):
        work = api.take(run)[1]
        assert work is not None
        api.submit(
            run, [EffectDone(key=work.effect.key, out={"result": "done"})], holder=work.holder
        )
        leases.release(run, work.holder)
    return run


def tools_done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tools that are used from now on."""
    found: list[str] = []

    def noted(work: Work) -> Answer:
        found.append(work.effect.tool)
        return Answer(event=EffectDone(key=work.effect.key, out={"result": "x"}))

    does = application.of_program(Shared.name)
    assert isinstance(does, Shared)
    monkeypatch.setattr(does, "tools", dict.fromkeys(does.tools, noted))
    return found


@pytest.mark.postgres
@pytest.mark.parametrize("lost", [False, True])
def test_a_run_is_handed_over_and_its_other_agent_called_or_swept_up(
    tick: Leap, acts: Callable[[str], None], sent: Sent, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    run, used = due(chains.create(), tick), tools_done(monkeypatch)
    for agent, count, to in [
        ("reader", 2, PAYER),
        ("payer", 3, READER),
        ("reader", 4, PAYER),
        ("payer", 7, ""),
    ]:
        acts(OTHER[agent])
        tasks.turn()  # is not the other's
        sent.clear()
        acts(agent)
        tasks.turn()
        assert used == [f"u{i}" for i in range(count)]
        assert sent == ([(to, queue.TURN)] if to else [])
        row = Run.objects.get(id=run)
        assert (row.holder, row.begun_ms) == ("", None)
        if lost and to:
            sent.clear()
            tick(tasks.SWEEP_AFTER_MS + 1)
            tasks.sweep()
            assert sent == [(to, queue.TURN)]
    assert Run.objects.get(id=run).state == life.COMPLETED


def by_message(run: str) -> object:
    row = Run.objects.get(id=run)
    return tasks.drive(run, row.program_hash, row.length)


PATHS: dict[str, Callable[[str], object]] = {
    "turn": lambda _: tasks.turn(),
    "named message": by_message,
    "drive": drive.drive,
    "take": api.take,
    "begin": api.begin_effect,
    "sweep": lambda _: tasks.sweep(),
    "wake": lambda run: api.wake(run, "operator"),
}


@pytest.mark.parametrize("path", PATHS)
def test_no_path_begins_a_tool_of_another_agent(
    tick: Leap, acts: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    used = tools_done(monkeypatch)
    for place, agent in enumerate(ACTING):
        run = due(chains.create(), tick, place)
        tick(tasks.SWEEP_AFTER_MS + 1)
        acts(OTHER[agent])
        PATHS[path](run)
        row = Run.objects.get(id=run)
        assert (used, row.step, row.begun_ms, row.holder) == ([], f"s{place}", None, "")
        acts("")
        api.kill(run, "operator")


def test_a_passed_deadline_is_everybodys_but_what_is_waited_for_is_asked_by_its_own(
    tick: Leap, house: House, acts: Callable[[str], None], sent: Sent
) -> None:
    late, waits = due(chains.create(), tick, 2), asked(house)
    Run.objects.filter(id=late).update(deadline_ms=now_ms(), due_ms=now_ms() + HOUR_MS)
    acts("reader")
    assert turns.next_run() == late
    assert api.take_turn(0).work is None  # the row is what the snapshot says again
    assert turns.next_run() is None
    api.kill(late, "operator")
    tick(DAY_MS)
    assert turns.next_run() is None
    assert api.take(str(waits.id)) == (False, None)
    assert Run.objects.get(id=waits.id).state == life.WAITING
    acts("payer")
    assert turns.next_run() == str(waits.id)


@pytest.mark.postgres
def test_leases_of_the_other_agent_take_up_no_turn(tick: Leap, acts: Callable[[str], None]) -> None:
    many, one = chains.create(), chains.create()
    payed = [due(many, tick, 2) for _ in range(turns.leases_max())]
    acts("payer")
    assert {str(each.run.id) for _ in payed if (each := api.take_turn(0).work)} == {*payed}
    acts("")
    more, lone = [due(many, tick) for _ in payed], due(one, tick)
    acts("payer")
    assert turns.next_run() is None
    acts("reader")
    found = [str(api.take_turn(0).run) for _ in range(2)]
    assert found == [more[0], lone]
    acts("")
    assert turns.next_run() is None  # one that acts for all counts all leases


@pytest.mark.postgres
def test_only_what_its_own_agent_served_puts_a_workspace_behind_another(
    tick: Leap, acts: Callable[[str], None]
) -> None:
    first, second = chains.create(), chains.create()
    older, younger = due(first, tick), due(second, tick)
    turn = {"": older, "reader": older}
    for agent, served in (
        ("payer", first),
        ("reader", first),
        ("reader", second),
        ("", first),
        ("", second),
        ("", first),
    ):
        tick(1)
        acts(agent)
        turns.serve(served.id)
        turn[agent] = younger if served == first else older
        for own in ("", "reader"):
            acts(own)
            assert turns.next_run() == turn[own], (agent, own)


@pytest.mark.postgres
def test_the_leases_of_an_ended_process_are_freed_and_no_others(
    tick: Leap, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = {}
    for tag in ("0123abcd", "0123abce", ""):
        monkeypatch.setattr(settings, "NANOVM_PROCESS", tag)
        held[tag] = {due(chains.create(), tick) for _ in range(2)}
        for run in held[tag]:
            work = api.take(run)[1]
            assert work is not None
            assert work.holder.startswith(tag)
            assert len(work.holder) == 36
    assert leases.free_of("") == []
    assert {*leases.free_of("0123abcd")} == held["0123abcd"]
    freed = Run.objects.filter(holder="", until_ms=0).values_list("id", flat=True)
    assert {*map(str, freed)} == held["0123abcd"]
    assert leases.free_of("0123abcd") == []


@pytest.mark.postgres
@pytest.mark.parametrize("agent", ["", "reader", "payer"])
def test_sql_finds_the_tools_that_are_this_processs(
    tick: Leap, acts: Callable[[str], None], agent: str
) -> None:
    acts(agent)
    assert actors.agents() == ("payer", "reader")
    for tool in ("document.receive", "vault.split", "u0", "u2", "of.an.older.program", ""):
        [(found,)] = sql.execute(f"SELECT CAST(%s AS VARCHAR(64)) {actors.own_in_sql()}", (tool,))
        assert bool(found) == actors.is_own(tool) == (agent in ("", actors.of_tool(tool)))


@pytest.mark.parametrize(
    ("agent", "to", "prepared"),
    [("", [PAYER, READER], 1), ("reader", [READER], 1), ("payer", [PAYER], 0)],
)
def test_a_worker_that_is_ready_takes_turns_of_its_queue_and_the_payers_sweeps(
    tick: Leap,
    acts: Callable[[str], None],
    sent: Sent,
    monkeypatch: pytest.MonkeyPatch,
    agent: str,
    to: list[str],
    prepared: int,
) -> None:
    acts(agent)
    began: list[str] = []
    monkeypatch.setattr(tasks, "_ask_for", lambda task: began.append(task.name))
    monkeypatch.setattr(threading, "Thread", lambda **_: SimpleNamespace(start=list))
    monkeypatch.setattr(type(application.main()), "worker_started", lambda _: began.append("it"))
    monkeypatch.setattr(step_times, "put_off", list)
    tasks.begin()
    assert sent == [(to[0], queue.TURN)] * settings.NANOVM_WORKER_THREADS
    assert began == ["it"] * prepared + [queue.TIDY, queue.SWEEP] * (agent != "reader")
    chosen: list[Any] = []
    monkeypatch.setattr(celery.app.amqp.queues, "select", chosen.extend)
    monkeypatch.setattr(control.Panel, "data", {**control.Panel.data})
    celery.select_queues()
    assert chosen == to
    acts("nobody")
    with pytest.raises(SystemExit, match="none of payer, reader"):
        celery.select_queues()


ALIVE = {
    "ok": ("reader-0a1b2c3d@h payer-00000000@h", "worker-0a1b2c3d@h", "celery@h"),
    "no worker answers for reader:": ("payer-00000000@h",),
    "no worker answers for payer:": ("reader-00000001@h reader-00000002@h",),
    "no worker answers:": ("",),
}


@pytest.mark.parametrize(("said", "nodes"), [(k, each) for k, v in ALIVE.items() for each in v])
def test_health_names_the_agent_that_has_no_worker(
    house: House, monkeypatch: pytest.MonkeyPatch, said: str, nodes: str
) -> None:
    def ping(pattern: Any, matcher: Any, **_: object) -> list[str]:
        return [each for each in nodes.split() if match(cast("Any", each), pattern, matcher)]

    monkeypatch.setattr(health, "app", SimpleNamespace(control=SimpleNamespace(ping=ping)))
    assert health._ask_workers().startswith(said)


def test_an_agents_process_and_its_messages_are_called_after_it(
    tick: Leap, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    monkeypatch.setattr(processes, "spawn", lambda *given, **named: made.append((given, named)))
    monkeypatch.setattr(processes, "_announcing", lambda child: child)
    env = {"NANOVM_DATA": "/x", "NANOVM_AGENT": "reader", "NANOVM_PROCESS": "0123abcd"}
    processes.spawn_celery_worker(env, name="reader-2")
    processes.spawn_celery_worker({"NANOVM_DATA": "/x"})
    (name, title, command, _), named = made[0]
    assert (name, title) == ("reader-2", "the reader's process")
    assert "reader-0123abcd@127.0.0.1" in command
    assert (made[1][0][0], made[1][1]["env"]["NANOVM_AGENT"]) == ("worker", "")
    assert named["env"] == env
    to: list[str] = []
    fake = SimpleNamespace(
        send_task=lambda *_, queue, **__: to.append(queue), producer_or_acquire=nullcontext
    )
    monkeypatch.setattr(redeliver, "current_app", fake)
    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    for done in (0, 2):
        redeliver.deliver(due(chains.create(), tick, done), "0" * 64, 2)
    assert to == [READER] * 2 + [PAYER] * 2
