"""The pages of agents: what the ledger says, in words, and what a person does about it."""

import re
from functools import partial
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client

from dashboard.agents.words import budgets_of
from engine.clock import now_ms
from engine.entropy import uuid7
from engine.models import Envelope, Run, Workspace
from engine.queries import agents
from engine.runtime import agents as runtime
from engine.runtime import chains
from engine.runtime.agent_moves import Agents
from engine.runtime.group_commit import Job, committed
from nanovm_core.agents import Agent
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.budget import CLOCK
from nanovm_core.core.messages import Suspension
from nanovm_core.ledger.value import Ledger, Used
from pipeline.application import current
from tests.dashboard.visitor import Visitor, words

WHY = "Six calls in a minute, the last three failed."
FIRED = Suspension("payer", "errors-3", WHY)
USED_UP = Suspension("payer", "BUD-002", "No call is left.", "agent/calls@payer")
OTHER = "reader"
# By the chip of its state: what was done to the payer, what its page answers, and what it offers.
STATES: dict[str, tuple[Any, str, str]] = {
    "idle": (None, "It has no run that has begun.", "Suspend"),
    "suspended by a person": (
        partial(runtime.suspend, name="payer", by="visitor", why="Lunch & <b>rest</b>"),
        "It was suspended by visitor at",
        "Resume",
    ),
    "suspended by a rule": (FIRED, f"{WHY} (rule errors-3)", "Resume"),
    "budget used up": (USED_UP, "First raise this limit in the policy", "Resume"),
    "budget used up ": (
        Suspension("payer", "BUD-005", "It has run for an hour.", CLOCK),
        "Its time begins anew when you press Resume.",
        "Resume",
    ),
    "killed": (partial(runtime.kill, name="payer", by="operator"), "killed by operator", "Declare"),
}


def suspend(log: UUID, asked: Suspension) -> None:
    """What a commit does with the command of a decision."""

    def on_log(commit: Any) -> None:
        Agents(commit.ledgers, commit.logs[str(log)]).suspend(asked)

    committed(Job(on_log, logs=(log,)))


def log_of(visitor: Visitor) -> Workspace:
    """The workspace of a visitor, who makes a run for it."""
    return Run.objects.get(id=visitor.make(hold=True).id).workspace


def payer_of(log: Workspace) -> Any:
    return runtime.read(log.id).agents["payer"]


@pytest.mark.parametrize("chip", STATES)
def test_each_state_is_said_with_its_time_its_reason_and_its_event(
    visitor: Visitor, chip: str
) -> None:
    (done, says, offers), log = STATES[chip], log_of(visitor)
    if done:
        suspend(log.id, done) if isinstance(done, Suspension) else done(log.id)
    agent, chain = payer_of(log), Envelope.objects.filter(workspace=log, run="agent:payer")
    page, listed = visitor.read("/agents/payer/"), visitor.read("/agents/")
    why = page.partition('id="why"')[2].partition("</section>")[0]
    row = next(each for each in listed.split("<tr>")[1:] if "/agents/payer/" in each)
    assert f'href="#event-{chain.count()}"' in why
    assert says in words(why)
    assert agent.text in words(why)
    assert "<b>" not in why
    assert re.search(rf">{offers}[ a-z]*</button>", why)
    for shown in (page, row):
        assert f">{chip.strip()}</span>" in shown
    for shown in (why, row):
        assert f"{agent.since_ms // 1000 % 60:02} UTC" in shown
    sealed = visitor.get(f"/agents/payer/events/{chain.count()}/bytes/").content
    assert sealed == bytes(chain.get(n=chain.count() - 1).bytes)
    for path in ("/", "/runs/", "/policy/", "/agents/payer/"):
        assert ('class="alerts"' in visitor.read(path)) == bool(agent.code), path


def test_what_is_left_of_tokens_and_time_is_said_and_what_is_overdrawn() -> None:
    began = Agent("running", since_ms=now_ms() - 30 * 60_000)
    limits = {"agent/tokens@payer": 10_000, "agent/wall_ms@payer": 3 * 3_600_000}
    spent = {"agent/tokens@payer": Used(0, 4_000)}
    ledger = Ledger(limits=limits, accounts=spent, agents={"payer": began})

    def said(ledger: Ledger) -> list[str]:
        return [f"{each.left} {each.limit}" for each in budgets_of(ledger, "payer")]

    assert said(ledger) == ["6,000 of 10,000 left", "2 h of 3 h left"]
    halted = {"payer": began._replace(state="suspended.budget_exhausted")}
    overdrawn = {"agent/tokens@payer": Used(8_000, 14_000)}
    ledger = ledger._replace(accounts=overdrawn, agents=halted)
    assert said(ledger) == ["overdrawn by 12,000, limit 10,000", " 3 h"]


def test_what_failed_before_a_rule_suspended_it_is_named(visitor: Visitor) -> None:
    paid = visitor.make()
    runs = [visitor.make(payment_method="pm_card_chargeDeclined") for _ in range(2)]
    suspend(Run.objects.get(id=paid.id).workspace_id, FIRED)
    later = visitor.read("/agents/payer/").partition("What failed before it:")[2]
    said = words(later.partition("</ul>")[0])
    assert all(f"run {each.code} , stripe.create_payment_intent ," in said for each in runs)
    assert (paid.code in said, said.count("STR-001")) == (False, 2)


def test_a_command_is_guarded_as_every_form_is(visitor: Visitor) -> None:
    log = log_of(visitor)
    before = Envelope.objects.filter(workspace=log).count()
    strict = Client(enforce_csrf_checks=True)
    strict.cookies.load({name: each.value for name, each in visitor.cookies.items()})
    assert strict.post("/agents/payer/suspend/").status_code == 403
    assert visitor.get("/agents/payer/suspend/").status_code == 405
    assert visitor.post("/agents/payer/explode/").status_code == 404
    assert visitor.post("/agents/nobody/suspend/").status_code == 404
    for confirm in ("", "KILL", "KILL reader"):
        assert "Nothing was changed." in visitor.refused(
            "/agents/payer/kill/", {"confirm": confirm}
        )
    assert Envelope.objects.filter(workspace=log).count() == before
    form = {"Idempotency-Key": "k", "why": "\x1b[2J\u202e" + "x" * 500}
    answers = [visitor.post("/agents/payer/suspend/", form)["Location"] for _ in range(2)]
    assert answers == ["/agents/payer/"] * 2
    assert payer_of(log).text == "[2J" + "x" * 197  # nothing that changes a terminal
    assert Envelope.objects.filter(workspace=log, run="agent:payer").count() == 3
    refused = visitor.post("/agents/payer/suspend/")["Location"]
    page = visitor.read(refused)
    assert "Not done: The agent's state does not allow this command." in words(page)
    assert 'href="#event-3"' in page  # the one that suspended it, not the refusal after it
    visitor.post("/agents/payer/kill/", {"confirm": "KILL payer"})
    assert payer_of(log).state == "terminated.killed"
    visitor.post("/agents/payer/declare/")
    assert (payer_of(log).state, payer_of(log).incarnation) == ("running", 2)


def test_agents_and_alerts_of_another_workspace_are_out_of_reach(
    owner: Visitor, visitor: Visitor
) -> None:
    theirs, mine = log_of(owner), log_of(visitor)
    suspend(theirs.id, FIRED)
    Workspace.objects.filter(id=theirs.id).update(ledger=b"{}")  # which opens an alert
    runtime.suspend(theirs.id, OTHER, by="owner")
    assert "ledger" in runtime.read(theirs.id).alerts
    before = runtime.read(theirs.id)
    assert "Acknowledge" in owner.read("/agents/")
    for path in ("/agents/", "/agents/payer/", "/"):
        page = visitor.read(path)
        assert WHY not in page
        assert 'class="alerts"' not in page
    visitor.post("/alerts/acknowledge/", {"alert": "ledger"})
    visitor.post("/agents/payer/resume/")
    visitor.post("/agents/payer/suspend/", {"why": "mine"})
    assert payer_of(mine).text == "mine"
    assert visitor.get("/agents/payer/events/4/bytes/").status_code == 200
    for path in ("payer/", "payer/events/1/bytes/"):
        Visitor().read(f"/agents/{path}", 404)
    assert Visitor().post("/agents/payer/suspend/").status_code == 404
    assert Visitor().post("/alerts/acknowledge/", {"alert": "ledger"}).status_code == 404
    assert runtime.read(theirs.id) == before
    owner.post("/alerts/acknowledge/", {"alert": "agent/payer"})  # only its agent's move closes it
    owner.post("/alerts/acknowledge/", {"alert": "ledger"})
    assert {*runtime.read(theirs.id).alerts} == {"agent/payer"}


def test_what_a_running_agent_does_follows_from_its_runs(db: None) -> None:
    program, drawn = current(), Random(7)  # noqa: S311
    by_step = {name: program.acting(step.tool, "payer") for name, step in program.steps.items()}
    for _ in range(60):
        log, made = chains.create(), []
        for name in ("payer", OTHER):
            runtime.declare(log.id, name, by="operator")
        for _ in range(drawn.randrange(5)):
            step, state = drawn.choice([*by_step]), drawn.choice(life.STATES)
            code = drawn.choice(["CAP-040", "FSM-009"])
            made.append((by_step[step], state, code))
            Run.objects.create(
                id=uuid7(),
                workspace=log,
                code=uuid4().hex[:8],
                created_ms=1,
                program_hash=program.hash,
                policy_hash=program.policy.hash,
                state=state,
                step=step,
                ended_ms=1 if state in life.TERMINAL else None,
                snapshot=b'{"reason":["%b","x"]}' % code.encode(),
            )
        log.refresh_from_db()
        views = agents.of_log(log)
        assert [view.name for view in views] == ["payer", OTHER]
        for view in views:
            mine = [each for each in made if each[0] == view.name]
            states = [state for _, state, _ in mine if state not in life.TERMINAL]
            begun = [state for state in states if not state.startswith("initializing")]
            expected = "active" if life.ACTIVE in begun else "waiting" if begun else "idle"
            assert (view.doing, len(view.runs)) == (expected, len(states))
            assert view.stopped == mine.count((view.name, life.PAUSED, "CAP-040"))


def test_a_run_that_is_paused_with_its_agent_says_so_first(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    log = Run.objects.get(id=run.id).workspace
    suspend(log.id, FIRED)
    runtime.suspend(log.id, OTHER, by="visitor")
    visitor.command(run, "start")
    page = visitor.read(f"/runs/{run.code}/")
    assert "Stopped with its agent reader . Resume the agent:" in words(page)
    assert f"/runs/{run.code}/resume/" not in page
    listed = visitor.read("/agents/reader/")
    assert f'href="/runs/{run.code}/"' in listed
    assert "1 paused with reader" in listed
