"""The parts of the crash loop; the gallery's test fires a whole one."""

import json
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.conf import settings

from engine.ops.members import GAVE_UP, STARTED, Happened
from engine.ops.process_file import RUNNING, STARTING
from engine.ops.processes import Child, ready, spawn, stop
from engine.runtime.processes import GAVE_UP_CODE
from engine.work import Answer, Work
from nanovm_core.supervision import SIMPLE_ONE_FOR_ONE, STRATEGIES, problems
from sabotage.crashes import house
from sabotage.crashes.house import AGENTS, House, tree_of
from sabotage.crashes.worker import HALTED, halting
from sabotage.gallery import crash_loop
from sabotage.kit import throwaway
from sabotage.kit.evidence import Evidence
from sabotage.kit.injector import Fired, InjectionError, Target
from sabotage.kit.stripe_view import StripeView

WAITING = f"print('{HALTED}1}}', flush=True); import time; time.sleep(60)"
PAID: dict[str, Any] = {
    "run_ended": "paid", "gave_up": "", "alert": {}, "killed_at": "charge", "breaches": [],
    "recomputed": {"exit_status": 0},
}  # fmt: skip
GAVE_UP_SAID = {"run_ended": "", "gave_up": "It gave up.", "alert": {"event": 3}}
TWICE = "Stripe has 2 succeeded payments for one run."


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_strategys_tree_is_a_sound_one_and_has_both_agents(strategy: str) -> None:
    spec, names = tree_of(strategy, ("reader", "payer"), "payer")
    assert list(problems(spec)) == []
    assert {name.partition("-")[0] for name in names} == {"reader", "payer"}
    own = next(each for each in (spec, *spec.children) if each.name == AGENTS)
    assert getattr(own, "strategy") == strategy  # noqa: B009 - of a child that is a supervisor
    assert ("payer-2" in names) == (strategy == SIMPLE_ONE_FOR_ONE)


def test_an_answer_is_kept_back_while_a_kill_is_to_come(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, work = tmp_path / "halts", SimpleNamespace(effect=SimpleNamespace(step="charge"))
    answer, given = cast(Answer, object()), list[Answer]()
    acted = halting(lambda _: answer, file)
    assert acted(cast(Work, work)) is answer
    assert capfd.readouterr().out == ""
    file.touch()
    thread = threading.Thread(target=lambda: given.append(acted(cast(Work, work))))
    thread.start()
    thread.join(0.2)
    said = capfd.readouterr().out
    assert said.startswith(HALTED)
    assert json.loads(said) == {"halted": "charge", "pid": os.getpid()}
    assert given == []
    file.unlink()
    thread.join(30)
    assert given == [answer]


@pytest.fixture
def attacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """A house of one process, which is to be killed twice. Nothing of it is sealed."""
    monkeypatch.setattr(settings, "NANOVM_DATA", tmp_path)
    monkeypatch.setattr(house, "stripe_view", lambda _: StripeView(reachable=True))
    quiet = SimpleNamespace(told=lambda _: None)
    made = House(env={}, tool="", times=2, run=cast(Any, None), sealing=cast(Any, quiet))
    node, process = {"ends_ms": [1], "max_restarts": 5}, {"state": STARTING}
    told = {"supervisors": {AGENTS: node}, "processes": {"payer": process}}
    made.supervisor = cast(Any, SimpleNamespace(status=lambda: told))
    made.halts.touch()
    return made


def halted(data: Path) -> Child:
    """A process that has halted."""
    child = spawn("payer", "the payer's process", [sys.executable, "-c", WAITING], data)
    child.answers = lambda: HALTED in child.written()
    return ready(child)


def test_what_halts_is_killed_once_all_processes_run_and_what_followed_is_kept(
    attacked: House, tmp_path: Path
) -> None:
    child = attacked.children["payer"] = halted(tmp_path)
    process = attacked.supervisor.status()["processes"]["payer"]
    try:
        attacked.kill_what_halts()
        assert child.ended() is None  # its supervisor still waits for its answer
        process["state"] = RUNNING
        attacked.kill_what_halts()
        assert "signal SIGKILL" in str(child.ended())
        assert attacked.halts.exists()
        attacked.told(Happened(STARTED, "payer", pid=7))
        child = attacked.children["payer"] = halted(tmp_path)
        attacked.kill_what_halts()
        assert "signal SIGKILL" in str(child.ended())
        assert not attacked.halts.exists()  # no other kill is to come
        attacked.told(Happened(GAVE_UP, AGENTS, text="It gave up."))
    finally:
        stop([child])
    first, second = attacked.kills
    assert first["started"] == [{"process": "payer", "pid": 7}]
    assert (second["pid"], second["started"], second["failures"]) == (child.popen.pid, [], 1)
    assert attacked.gave_up == "It gave up."


@pytest.mark.parametrize(
    ("facts", "verdict", "rule", "got_out"),
    [
        ({}, "IGNORED", "", ()),
        ({"killed_at": "extract"}, "IGNORED", "", ()),
        (GAVE_UP_SAID, "BLOCKED", GAVE_UP_CODE, ()),
        ({**GAVE_UP_SAID, "alert": {}}, "ACCEPTED", "", (crash_loop.LOST,)),
        ({"run_ended": ""}, "ACCEPTED", "", (crash_loop.LOST,)),
        ({"breaches": [TWICE]}, "ACCEPTED", "", (TWICE,)),
        ({**GAVE_UP_SAID, "breaches": [TWICE]}, "ACCEPTED", "", (TWICE,)),
        ({"recomputed": {"exit_status": 1}}, "ACCEPTED", "", (crash_loop.DAMAGED,)),
    ],
)
def test_two_payments_a_lost_run_and_damage_are_breaches(
    facts: dict[str, Any], verdict: str, rule: str, got_out: tuple[str, ...]
) -> None:
    found = crash_loop.assess(cast(Evidence, None), Fired(facts={**PAID, **facts}))
    assert (found.verdict, found.rule, found.breaches) == (verdict, rule, got_out)
    assert bool(found.where) == (verdict == "IGNORED")


def test_one_crash_loop_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "NANOVM_DATA", tmp_path)
    target = cast(Target, SimpleNamespace(values={}))
    with (
        throwaway.folder_in(tmp_path / crash_loop.FOLDER, crash_loop.WHAT),
        pytest.raises(InjectionError, match="Another crash loop is running"),
    ):
        crash_loop.inject(target)
