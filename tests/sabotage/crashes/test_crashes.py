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

from engine.ops.process_file import RUNNING, STARTING, STOPPED, Node, Process, Processes
from engine.ops.processes import Child, ready, spawn, stop
from engine.runtime.processes import GAVE_UP_CODE
from engine.work import Answer, Work
from nanovm_core.core.lifecycle import ACTIVE
from pipeline.register import sample_register
from sabotage.crashes import house
from sabotage.crashes.__main__ import AFTER, halting
from sabotage.crashes.house import AGENTS, HALTED, House
from sabotage.fire_scenario import fire_scenario
from sabotage.gallery import crash_loop
from sabotage.kit import throwaway
from sabotage.kit.evidence import Evidence
from sabotage.kit.injector import Fired, InjectionError, Target
from sabotage.kit.stripe_view import StripeView

WAITING = f"print('{HALTED}1}}', flush=True); import time; time.sleep(60)"
PAID: dict[str, Any] = {
    "run_ended": "paid", "alerts": [], "killed_at": "charge", "breaches": [],
    "recomputed": {"exit_status": 0},
}  # fmt: skip
GAVE_UP_SAID = {"run_ended": "", "alerts": [{"rule": GAVE_UP_CODE}]}
TWICE = "Stripe has 2 succeeded payments for one run."


def test_an_answer_is_kept_back_while_a_kill_is_to_come(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, work = tmp_path / "halts", SimpleNamespace(effect=SimpleNamespace(step="charge"))
    answer, given = cast(Answer, object()), list[Answer]()
    acted = halting(lambda _: answer, AFTER, file)
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


def halted(data: Path) -> Child:
    """A process that has halted."""
    child = spawn("payer", "the payer's process", [sys.executable, "-c", WAITING], data)
    child.answers = lambda: HALTED in child.written()
    return ready(child)


def test_what_halts_is_killed_once_all_processes_run_and_what_was_there_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house, "stripe_view", lambda _: StripeView(reachable=True))
    process = Process(pid=7, state=STARTING)
    told = Processes({AGENTS: Node("one_for_one", 5, 60, ["payer"])}, {"payer": process})
    turns = iter(range(1_000))

    def tend() -> None:
        if next(turns) == 1:  # in the first one its supervisor still waits for its answer
            process.state = RUNNING
        elif attacked.children["payer"].popen.poll() is not None:
            attacked.children["payer"] = halted(tmp_path)

    attacked = House.__new__(House)
    attacked.halts, attacked.children = tmp_path / "halts", {"payer": halted(tmp_path)}
    attacked.halts.touch()
    attacked.run = cast(Any, SimpleNamespace(refresh_from_db=lambda: None, state=ACTIVE))
    attacked.sealing = cast(Any, SimpleNamespace(incarnations={"payer": 2}))
    attacked.supervisor = cast(Any, SimpleNamespace(status=lambda: told, tend=tend))
    kills, child = attacked.kill(times=2), attacked.children["payer"]
    try:
        first = next(kills)
        assert (next(turns), child.ended()) == (2, None)
        assert first["before"] == {"payer": {"pid": 7, "incarnation": 2}}
        assert (first["killed"], first["payments"]) == ("payer", 0)
        assert next(kills)["killed"] == "payer"
        assert "signal SIGKILL" in str(child.ended())
        assert attacked.halts.exists()
        process.state = STOPPED  # its supervisor gives up
        assert next(kills)["killed"] == ""
        assert not attacked.halts.exists()  # no other kill is to come
    finally:
        stop([attacked.children["payer"]])


@pytest.mark.parametrize(
    ("facts", "verdict", "rule", "got_out"),
    [
        ({}, "IGNORED", "", ()),
        ({"killed_at": "extract"}, "IGNORED", "", ()),
        (GAVE_UP_SAID, "BLOCKED", GAVE_UP_CODE, ()),
        ({**GAVE_UP_SAID, "alerts": []}, "ACCEPTED", "", (crash_loop.LOST,)),
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


@pytest.mark.soak
@pytest.mark.usefixtures("runtime_here")
def test_after_too_many_kills_the_run_waits_and_an_alert_says_why() -> None:
    form = {"times": "6", "strategy": "one_for_all"}
    shot = fire_scenario(sample_register.new_workspace(), "crash_loop", form, "")
    told = shot.evidence
    assert (shot.verdict, shot.rule, shot.integrity) == ("BLOCKED", GAVE_UP_CODE, "HELD")
    assert {each["rule"] for each in told["alerts"]} == {GAVE_UP_CODE}
    assert [kill["after"]["reader"]["incarnation"] for kill in told["kills"][:5]] == [*range(2, 7)]
    assert {each["pid"] for each in told["kills"][5]["after"].values()} == {0}
    assert (len(told["paid"]), told["after"]) == (1, "RUNNING")
