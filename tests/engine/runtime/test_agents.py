"""Agents: a suspension holds from its commit on, and resuming loses and repeats nothing."""

import json
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings

from engine.evidence import bundles, signer
from engine.evidence.fsck.audit import audit
from engine.models import AdapterCall, Run, Workspace
from engine.runtime import agents, api, chains
from engine.runtime.agent_moves import Agents
from engine.runtime.group_commit import Job, committed
from engine.runtime.transaction import Commit
from engine.store import ledgers
from engine.worker import drive, effects, tasks
from nanovm_core import verify
from nanovm_core.agents import AGENTS_MAX, TABLE, Agent, AgentEvent
from nanovm_core.core import lifecycle as life
from nanovm_core.core.messages import Suspension
from nanovm_core.errors import RefusedError
from tests.kit.clock import Leap
from tests.kit.house import (
    POLICY,
    House,
    bodies,
    crash,
    invoice,
    know_the_usual,
    reason,
    refusal,
    snapshot,
    sql,
    succeeded,
)

BY = "operator"
BROKEN = b'{"reason":["CAP-040",'
SEEDS = [(0, 4), *(pytest.param(seed, 25, marks=pytest.mark.soak) for seed in range(1, 5))]


def ledger(log: UUID) -> Any:
    found = ledgers.stored(Workspace.objects.get(id=log))
    assert found is not None
    return found


def state(log: UUID, name: str = "payer") -> str:
    return str(ledger(log).agents[name].state)


def ruled(log: UUID, rule: str = "storm", account: str = "") -> None:
    """A decision commands the suspension of the payer."""
    asked = Suspension("payer", rule, "Three payments failed.", account)

    def on_log(commit: Any) -> None:
        [found] = commit.logs.values()
        Agents(commit.ledgers, found).suspend(asked)

    committed(Job(on_log, logs=(log,)))


# --- a suspension holds, and nothing is lost -------------------------------------------------


def scattered(house: House, dice: Random, count: int) -> list[Run]:
    """Runs of one workspace, each as far as some steps, with an effect that is owed, or paused."""
    log, runs = chains.create(), []
    know_the_usual(log)
    for place in range(count):
        document = invoice(f"Total  EUR {100 + place}.00")
        runs.append(run := house.new(document, workspace=log, stepping=True))
        api.start(str(run.id), "visitor")
        for _ in range(dice.randrange(7)):
            house.drive(run)
            api.step(str(run.id), "visitor")
        if snapshot(run).state == life.PAUSED and dice.random() < 0.7:
            api.resume(str(run.id), "visitor")  # it owes the next effect, and nobody began it
    return runs


def settled(house: House, runs: list[Run], *, again: bool) -> None:
    """Drive runs as far as they come; those that a person steps through, ``again`` and again."""
    for run in runs:
        house.drive(run)
        for _ in range(8 if again else 0):
            if snapshot(run).state == life.PAUSED:
                house.resumed(run)


@pytest.mark.parametrize(("seed", "count"), SEEDS)
@pytest.mark.parametrize("ends", ["resumed", "killed"])
def test_nothing_begins_after_the_suspension_and_each_run_pays_once_or_ends(
    house: House, leap: Leap, seed: int, count: int, ends: str
) -> None:
    """By the adapters' own record; runs are at seeded random steps."""
    runs = scattered(house, Random(seed), count)  # noqa: S311 - seeded
    log, both = runs[0].workspace_id, ("payer", "reader")
    for name in both:
        agents.suspend(log, name, by=BY)
    begun, paid = AdapterCall.objects.count(), [len(succeeded(run)) for run in runs]
    leap(10_000)
    for run in runs:
        house.drive(run)
        api.resume(str(run.id), "visitor")
    settled(house, runs, again=False)
    tasks.sweep()
    assert AdapterCall.objects.count() == begun
    for name in both:
        (agents.resume if ends == "resumed" else agents.kill)(log, name, by=BY)
    settled(house, runs, again=ends == "resumed")
    found = [(snapshot(run).state, reason(run)) for run in runs]
    print(f"seed {seed}: {len(runs)} runs, {begun} effects before: {sorted({*found})}")
    now = [len(succeeded(run)) for run in runs]
    if ends == "resumed":
        assert (now, {*found}) == ([1] * count, {(life.COMPLETED, "")})
    else:
        assert (now, AdapterCall.objects.count()) == (paid, begun)
        assert "CAP-040" not in {code for _, code in found}
        assert (life.KILLED, "FSM-006") in found
    assert audit().damage == ()


# --- each of the places that refuse ----------------------------------------------------------


def test_an_effect_that_is_owed_is_not_begun(house: House) -> None:
    run = house.owing()
    agents.suspend(run.workspace_id, "payer", by=BY)
    calls = AdapterCall.objects.count()
    assert api.begin_effect(str(run.id)) is None
    assert (snapshot(run).state, reason(run)) == (life.PAUSED, "CAP-040")
    assert AdapterCall.objects.count() == calls
    assert refusal(api.resume(str(run.id), "visitor")) == "CAP-040"
    agents.resume(run.workspace_id, "payer", by=BY)
    assert house.drive(run).state == life.COMPLETED
    assert len(succeeded(run)) == 1


def test_what_is_under_way_is_answered_and_nothing_follows_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next effect would begin in the commit of the answer, where nobody claims it."""
    run, perform, done = house.started(), effects.perform, list[str]()

    def late(work: Any) -> Any:
        done.append(work.effect.step)
        agents.suspend(run.workspace_id, "reader", by=BY)
        return perform(work)

    with monkeypatch.context() as patched:
        patched.setattr(effects, "perform", late)
        house.drive(run)
    assert done == ["receive"]
    assert (snapshot(run).state, snapshot(run).step, reason(run)) == (
        life.PAUSED,
        "extract",
        "CAP-040",
    )
    agents.resume(run.workspace_id, "reader", by=BY)
    assert (house.drive(run).state, len(succeeded(run))) == (life.COMPLETED, 1)


@pytest.mark.parametrize("then", ["resumed", "killed", "crashed"])
def test_a_call_that_was_begun_is_refused_at_the_adapter_and_not_lost(
    house: House, monkeypatch: pytest.MonkeyPatch, leap: Leap, then: str
) -> None:
    """The agent is suspended between the commit that begins the payment and the payment."""
    run, checked = house.owing(), effects.check_warrant
    log = run.workspace_id

    def late(work: Any) -> None:
        agents.suspend(log, "payer", by=BY)
        checked(work)

    with monkeypatch.context() as patched:
        patched.setattr(effects, "check_warrant", late)
        if then == "crashed":
            patched.setattr(drive, "_leave", crash)
            with pytest.raises(KeyboardInterrupt):
                house.drive(run)
        house.drive(run)
    leap(60_000)
    house.drive(run)
    assert (snapshot(run).state, reason(run), succeeded(run)) == (life.PAUSED, "CAP-040", [])
    if then == "killed":
        agents.kill(log, "payer", by=BY)
        assert (snapshot(run).state, succeeded(run)) == (life.KILLED, [])
        return
    agents.resume(log, "payer", by=BY)
    assert (house.drive(run).state, len(succeeded(run))) == (life.COMPLETED, 1)
    assert audit().damage == ()


def test_a_payment_that_may_have_been_made_is_not_ended_with_its_agent(
    house: House, leap: Leap
) -> None:
    """Its run waits, and the next incarnation asks what became of it, under the same key."""
    run = house.owing()
    log = run.workspace_id
    begun = api.begin_effect(str(run.id))
    assert begun is not None
    effects.perform(effects.work_of(begun))  # and the worker ends before it says so
    leap(60_000)
    agents.kill(log, "payer", by=BY)
    for _ in range(2):
        house.drive(run)
        tasks.sweep()
        assert (snapshot(run).state, reason(run)) == (life.PAUSED, "CAP-040")
    length = Run.objects.get(id=run.id).length
    tasks.sweep()
    assert Run.objects.get(id=run.id).length == length  # what was refused once is not asked again
    leap(-1_000)  # a clock that is set back: the next state is of the same time
    assert agents.declare(log, "payer", by=BY).agent.incarnation == 2
    assert (house.drive(run).state, len(succeeded(run))) == (life.COMPLETED, 1)


def test_the_sweep_lets_runs_go_on_where_the_command_was_cut_off(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where an earlier run that waits was damaged: that one ends."""
    damaged, run = house.paused(), house.paused()
    for each in (damaged, run):
        api.resume(str(each.id), "visitor")
        agents.suspend(each.workspace_id, "payer", by=BY)
        house.drive(each)
    sql(("UPDATE pipeline_run SET snapshot = %s WHERE id = %s", (BROKEN, damaged.id.hex)))
    with monkeypatch.context() as patched:
        patched.setattr(agents, "go_on", crash)
        with pytest.raises(KeyboardInterrupt):
            agents.resume(run.workspace_id, "payer", by=BY)
    assert (state(run.workspace_id), snapshot(run).state) == ("running", life.PAUSED)
    tasks.sweep()
    assert snapshot(run).state == life.ACTIVE
    assert snapshot(damaged).state == life.FAILED


def test_a_run_that_a_person_steps_through_takes_no_further_step_with_its_agent(
    house: House,
) -> None:
    run = house.paused("vault")
    api.step(str(run.id), "visitor")
    agents.suspend(run.workspace_id, "payer", by=BY)
    assert (house.drive(run).state, reason(run)) == (life.PAUSED, "CAP-040")
    agents.resume(run.workspace_id, "payer", by=BY)
    assert (house.drive(run).state, snapshot(run).step) == (life.PAUSED, "propose")


# --- rules, budgets, names -------------------------------------------------------------------


def test_a_rule_suspends_once_and_says_so_once(house: House) -> None:
    run = house.paused()
    log, other = run.workspace_id, house.paused().workspace_id
    ruled(log)
    ruled(log)
    agent, [alert] = ledger(log).agents["payer"], ledger(log).alerts.items()
    assert (agent.state, agent.code) == ("suspended.by_rule", "POL-004")
    assert alert[0] == "agent/payer"
    assert alert[1].text == agent.text == "Three payments failed. (rule storm)"
    assert [each["kind"] for each in bodies("log")].count("alert") == 1
    assert (state(log, "reader"), state(other)) == ("running", "running")
    assert house.resumed(run).state == life.PAUSED
    agents.resume(log, "payer", by=BY)
    assert (ledger(log).alerts, ledger(other).alerts) == ({}, {})


def test_a_used_up_account_suspends_its_agent_until_the_limit_is_raised(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A maximum of 1.00 after 120.00 were allowed; then a higher one."""
    file = tmp_path / "policy.toml"
    monkeypatch.setattr(settings, "NANOVM_POLICY", file)

    def maximum(most: int) -> None:
        file.write_text(POLICY % ("", "agent", most))

    maximum(200_000)
    first = house.run()
    log, run = first.workspace_id, house.paused(workspace=first.workspace)
    maximum(100)
    waiting = house.paused(workspace=first.workspace)
    assert (house.resumed(run).state, reason(run)) == (life.EXHAUSTED, "BUD-001")
    assert state(log) == life.EXHAUSTED
    assert [*ledger(log).alerts] == ["agent/payer"]
    assert house.resumed(waiting).state == life.PAUSED
    assert agents.resume(log, "payer", by=BY).code == "AGT-001"
    maximum(300_000)
    house.new(workspace=first.workspace)
    assert agents.resume(log, "payer", by=BY).code == ""
    assert house.resumed(run).state == house.resumed(waiting).state == life.COMPLETED
    assert [len(succeeded(each)) for each in (first, run, waiting)] == [1, 1, 1]
    assert audit().damage == ()


def test_each_transition_is_sealed_and_the_export_is_verified(house: House, tmp_path: Path) -> None:
    """So is each event that does not fit: as refused, and the agent stays as it is."""
    log = house.new().workspace
    for place, ((before, event), targets) in enumerate(sorted(TABLE.items())):
        for at in {before, *([] if place % 4 else ["terminated.failed"])}:
            for code in ("", "rule-x") if len(targets) > 1 else ("",):
                name, fits = f"a{place}{len(at)}{len(code)}", (at, event) in TABLE
                asked = AgentEvent(event, BY, 1, code=code, text="why", raised=True)

                def on_log(
                    commit: Commit, name: str = name, at: str = at, asked: AgentEvent = asked
                ) -> Any:
                    found = commit.logs[str(log.id)]
                    said = {"out": {**Agent(at)._asdict()}}
                    commit.seal(found, "agent", said, actor=BY, owner=f"agent:{name}")
                    return Agents(commit.ledgers, found).moved(name, asked)

                moved = committed(Job(on_log, logs=(log.id,)))
                assert (moved.code == "") == fits
                assert ledger(log.id).agents[name] == moved.agent
                last = bodies(f"agent:{name}")[-1]
                assert last["state"] == {"from": at, "event": event, "to": moved.agent.state}
                assert (last.get("outcome"), last.get("rule", "")) == (
                    (None, code) if fits else ("refused", "AGT-001")
                )
    file = tmp_path / "log.zip"
    bundles.write_bundle(log, None, file, signer.checkpoint(log.id))
    assert verify.main([str(file), "--key", signer.verifiers(log.origin)[0].vkey]) in (0, 3)
    assert audit().damage == ()


def test_names_and_numbers_of_agents_are_held(house: House) -> None:
    log = house.new().workspace_id
    size = Workspace.objects.get(id=log).size
    for name in ("Payer", "a b", "", "x" * 31, "log", "operator"):
        with pytest.raises(RefusedError, match="AGT-002"):
            agents.declare(log, name, by=BY)
    with pytest.raises(RefusedError, match="AGT-003"):
        agents.suspend(log, "clerk", by=BY)
    with pytest.raises(RefusedError, match="AGT-003"):
        agents.acknowledge(log, "ledger", by=BY)
    assert Workspace.objects.get(id=log).size == size
    for place in range(AGENTS_MAX - 2):
        agents.declare(log, f"clerk-{place}", by=BY)
    with pytest.raises(RefusedError, match=r"AGT-002.*at most 64"):
        agents.declare(log, "one-more", by=BY)
    assert len(ledger(log).agents) == AGENTS_MAX


def test_the_command_shows_and_commands(house: House) -> None:
    run = house.new()
    ruled(run.workspace_id)
    shown = json.loads(house.command("agents", "--json").stdout)
    assert (shown["agents"]["payer"]["state"], [*shown["alerts"]]) == (
        "suspended.by_rule",
        ["agent/payer"],
    )
    for words, status, after in (
        (("suspend", "payer"), 1, "suspended.by_rule"),
        (("resume", "payer"), 0, "running"),
        (("suspend", "payer", "--why", "An audit."), 0, "suspended.user_paused"),
        (("kill", "payer"), 0, "terminated.killed"),
        (("declare", "payer"), 0, "running"),
        (("kill", "clerk"), 2, "running"),
        (("kill",), 2, "running"),
    ):
        done = house.command("agents", *words, "--json")
        assert (done.returncode, state(run.workspace_id)) == (status, after), words
    assert house.command("agents").stdout.splitlines() == ["payer  running", "reader  running"]
