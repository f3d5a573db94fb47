"""Agents: a suspension holds from its commit on, and resuming loses and repeats nothing."""

from engine.evidence.fsck.audit import audit
from engine.runtime import agents
from nanovm_core.core import lifecycle as life
from tests.kit.house import House, reason, succeeded


def test_try(house: House) -> None:
    run = house.paused()
    log = run.workspace_id
    assert agents.suspend(log, "payer", by="operator").code == ""
    house.resumed(run)
    assert run.state == life.PAUSED
    agents.resume(log, "payer", by="operator")
    house.resumed(run)
    assert (run.state, len(succeeded(run))) == (life.COMPLETED, 1)
    assert audit().damage == ()


def test_claim(house: House) -> None:
    run = house.owing()
    log = run.workspace_id
    assert agents.suspend(log, "payer", by="operator").code == ""
    house.drive(run)
    assert (run.state, reason(run)) == (life.PAUSED, "CAP-040")
    agents.resume(log, "payer", by="operator")
    house.drive(run)
    assert (run.state, len(succeeded(run))) == (life.COMPLETED, 1)
    assert audit().damage == ()
