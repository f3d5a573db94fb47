"""The wall clock of an agent: what is sealed of its time, and what ends and begins it."""

from pathlib import Path

import pytest
from django.conf import settings

from engine.clock import now_ms
from engine.evidence.fsck.audit import audit
from engine.runtime import agents
from nanovm_core.core import lifecycle as life
from nanovm_core.errors import RefusedError
from tests.engine.runtime.test_agents import BY, ledger, state
from tests.kit.clock import stopped
from tests.kit.house import POLICY, House, reason, snapshot, succeeded

CLOCK = '[[budgets]]\nscope = "agent"\nunit = "wall_ms"\nmax = 600_000\n'


def clocked(folder: Path, monkeypatch: pytest.MonkeyPatch, budget: str = CLOCK) -> Path:
    """A policy in force that gives each agent ten minutes."""
    file = folder / "policy.toml"
    monkeypatch.setattr(settings, "NANOVM_POLICY", file)
    file.write_text(POLICY % (budget, "workspace", 10**9))
    return file


def test_an_agent_whose_time_is_over_begins_nothing_until_a_person_resumes_it(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly then, for each agent that acts."""
    clocked(tmp_path, monkeypatch)
    leap = stopped(monkeypatch)
    reading, run = house.paused("extract"), house.paused()
    log, other = run.workspace_id, reading.workspace_id
    began = {name: each.since_ms for name, each in ledger(log).agents.items()}
    name_of_clock = {f"agent/wall_ms@{name}": 600_000 for name in ("payer", "reader")}
    assert name_of_clock.items() <= ledger(log).limits.items()
    leap(began["payer"] + 600_000 - 1 - now_ms())
    agents.require_running(log, "payer")
    assert state(log) == "running"
    leap(1)
    with pytest.raises(RefusedError, match="CAP-040"):
        agents.require_running(log, "payer")
    assert (house.resumed(run).state, succeeded(run)) == (life.PAUSED, [])
    found = ledger(log)
    assert {each.code for each in found.agents.values()} == {"BUD-005"}
    assert state(log) == state(log, "reader") == life.EXHAUSTED
    assert found.agents["payer"].account == "agent/wall_ms@payer"
    assert {*found.alerts} == {"agent/payer", "agent/reader"}
    assert "run for 600000 ms" in found.alerts["agent/payer"].text
    assert (house.resumed(reading).state, snapshot(reading).step) == (life.PAUSED, "extract")
    assert state(other, "reader") == life.EXHAUSTED
    assert audit().damage == ()


def test_a_resumption_and_an_incarnation_begin_anew(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocked(tmp_path, monkeypatch)
    leap = stopped(monkeypatch)
    run = house.paused()
    log = run.workspace_id
    leap(600_000)
    assert house.resumed(run).state == life.PAUSED
    leap(5)
    for each in ("payer", "reader"):
        assert agents.resume(log, each, by=BY).code == ""
    assert ledger(log).alerts == {}
    assert (house.resumed(run).state, len(succeeded(run))) == (life.COMPLETED, 1)
    leap(599_999)
    assert agents.read(log).agents["payer"].state == "running"
    assert agents.kill(log, "payer", by=BY).code == ""
    assert agents.declare(log, "payer", by=BY).agent.incarnation == 2
    leap(599_999)
    assert agents.read(log).agents["payer"].state == "running"
    assert agents.read(log).agents["reader"].state == life.EXHAUSTED
    leap(1)
    assert agents.read(log).agents["payer"].state == life.EXHAUSTED
    assert audit().damage == ()


def test_a_worker_that_began_nothing_yet_is_told_that_the_time_is_over(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a limit that is put in force after the agent began: it counts from there."""
    clocked(tmp_path, monkeypatch, "")
    leap = stopped(monkeypatch)
    run = house.owing()
    leap(600_000)
    clocked(tmp_path, monkeypatch)
    house.new(workspace=run.workspace)
    assert (house.drive(run).state, reason(run)) == (life.PAUSED, "CAP-040")
    assert (succeeded(run), state(run.workspace_id)) == ([], life.EXHAUSTED)
    assert audit().damage == ()
