"""Agents: each sequence of events against a model of their states that shares no code with ours."""

from random import Random

import pytest

from nanovm_core import agents
from nanovm_core.agents import Agent, AgentEvent, agent_of, halted, json_of, move
from nanovm_core.errors import VerificationError

SEQUENCES, LENGTH, BATCHES = 1_000, 12, 10
CLOCK = "agent/wall_ms@payer"
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, BATCHES))]


class Model:
    """What AGENTS.md says of an agent, in sentences instead of a table."""

    def __init__(self) -> None:
        self.at, self.life, self.timed = "new", 1, False

    def takes(self, event: AgentEvent) -> bool:
        was = self.at
        asleep = self.at in ("paused", "ruled", "spent")
        if event.name == "CapabilitiesGranted" and self.at == "new":
            self.at = "granted"
        elif event.name == "Started" and self.at == "granted":
            self.at = "up"
        elif self.at == "up" and event.name == "Suspended":
            self.at = "ruled" if event.code else "paused"
        elif self.at == "up" and event.name == "BudgetExceeded":
            self.at, self.timed = "spent", event.account == CLOCK
        elif (self.at == "up" and event.name in ("Completed", "Failed", "Killed")) or (
            asleep and event.name == "Killed"
        ):
            self.at = "over"
        elif (
            event.name == "Resumed"
            and asleep
            and (self.at != "spent" or event.raised or self.timed)
        ):
            self.at = "up"
        elif event.name == "Declared" and self.at == "over":
            self.at, self.life = "new", self.life + 1
        return self.at != was


WORDS = {
    "new": {"initializing.capability_negotiation"},
    "granted": {"initializing.resource_allocation"},
    "up": {"running"},
    "paused": {"suspended.user_paused"},
    "ruled": {"suspended.by_rule"},
    "spent": {"suspended.budget_exhausted"},
    "over": {"terminated.completed", "terminated.failed", "terminated.killed"},
}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_sequence_of_events_ends_where_the_model_does(seed: int) -> None:
    dice = Random(seed)  # noqa: S311  # it chooses examples
    names, reached = sorted({*agents.EVENTS, "TimePassed"}), set[str]()
    for _ in range(SEQUENCES):
        agent, model, now = Agent(), Model(), 1_000
        steps = ["CapabilitiesGranted", "Started"] if dice.random() < 0.8 else []
        steps += [dice.choice(names) for _ in range(LENGTH)]
        for name in steps:
            now += dice.choice((-5, 0, 7))
            code = dice.choice(("", "error-storm"))
            event = AgentEvent(name, "operator", now, code=code, raised=dice.random() < 0.5)
            event = event._replace(account=dice.choice(("", CLOCK, "agent/tokens@payer")))
            moved, takes = move(agent, event), model.takes(event)
            assert (moved.code == "") == takes, (agent, event)
            assert takes or moved.agent == agent
            assert moved.agent.state in WORDS[model.at]
            assert moved.agent.incarnation == model.life
            assert moved.agent.since_ms >= agent.since_ms
            assert agent_of(json_of(moved.agent)) == moved.agent
            assert bool(halted({"payer": moved.agent})) == (model.at != "up")
            agent = moved.agent
            reached.add(agent.state)
    assert reached == {*agents.STATES}


def test_a_running_agent_is_over_its_time_exactly_when_that_has_passed() -> None:
    started = Agent("running", since_ms=1_000)
    found = {"payer": started, "reader": started._replace(since_ms=1_001)}
    for name in agents.SUSPENDED:
        found[name.replace("_", "-")] = started._replace(state=name)
    limits = {"agent/wall_ms@payer": 50, "agent/wall_ms@reader": 50, "agent/tokens@payer": 1}
    for at_ms, over in ((1_049, []), (1_050, ["payer"]), (1_051, ["payer", "reader"])):
        asked = agents.over_time(found, limits, at_ms)
        assert [each.agent for each in asked] == over
        assert {(each.rule, each.account) for each in asked} <= {("BUD-005", "agent/wall_ms")}
    assert agents.over_time({"payer": started}, {"agent/wall_ms@payer": 0}, 1_000)
    assert agents.over_time({"clerk": started}, limits, 2**50) == ()


def test_a_refused_event_says_the_code_of_its_rule() -> None:
    assert move(Agent(), AgentEvent("Started", "operator", 1)).code == "AGT-001"


@pytest.mark.parametrize("value", [
    None, [], {}, {**json_of(Agent()), "state": "asleep"}, {**json_of(Agent()), "limit": "0"},
    {**json_of(Agent()), "limit": True}, {**json_of(Agent()), "incarnation": 0},
    {**json_of(Agent()), "more": 1},
    {key: each for key, each in json_of(Agent()).items() if key != "account"},
])  # fmt: skip
def test_what_is_no_agent_is_damage(value: object) -> None:
    with pytest.raises(VerificationError, match="LOG-011"):
        agent_of(value)
