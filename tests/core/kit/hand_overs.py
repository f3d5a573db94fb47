"""Where messages belong in a run, said of the run of one agent: nothing of the kernel decides it.

The same events under the same rules, with every tool given to some agent.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice, product

from nanovm_core.core.events import Context, Event
from nanovm_core.core.fsm import transition
from nanovm_core.core.messages import Decision, Snapshot
from nanovm_core.core.program import Program
from tests.core.kit.refund_runs import PROGRAM

TOOL_OF = {  # whose tool a step is for; the others belong to the run's own agent
    "look_up": "orders.look_up",
    "ask": "model.ask",
    "judge": "money.refund",
    "refund": "money.refund",
    "letter": "letters.send",
    "apologise": "desk.apologise",
}
AGENTS = [
    dict(zip(sorted(set(TOOL_OF.values())), drawn, strict=True))
    for drawn in product(("", "reader", "payer"), repeat=5)
]


def given_to(agents: Mapping[str, str]) -> Program:
    """The program of the refund runs, under its own hash, with these agents at its tools."""
    tools = {name: replace(tool, agent=agents[name]) for name, tool in PROGRAM.tools.items()}
    return replace(PROGRAM, tools=tools)


PROGRAMS = [(agents, given_to(agents)) for agents in islice(AGENTS, 0, None, 7)]


def check(place: int, now: Snapshot, event: Event, known: Context, alone: Decision) -> None:
    """Hold a decision under some agents to the one of a run that is ``alone`` with all its tools.

    It differs by one message at the most: where another agent acts after it than before.
    """
    agents, program = PROGRAMS[place % len(PROGRAMS)]
    decision = transition(program, now, event, known)
    assert all(draft.kind != "message" for draft in alone.drafts)
    kept = tuple(draft for draft in decision.drafts if draft.kind != "message")
    assert decision._replace(drafts=kept) == alone
    who = {step: agents.get(TOOL_OF.get(step, ""), "") or now.agent for step in program.steps}
    left, to = who[now.step], who[alone.snapshot.step]
    before = [each.kind for each in decision.drafts].index("message") if left != to else None
    assert len(decision.drafts) == len(kept) + (left != to)
    if before is None:
        return
    message, after = decision.drafts[before], decision.drafts[before + 1 :]
    first = str(after[0].body["step"]) if after else alone.snapshot.step
    said = {"from": left, "to": to, "of": first, "step": first, "decided_by": "table"}
    assert message.body == said
    assert (who[first], first != now.step) == (to, True)
    for draft in decision.drafts[:before]:
        assert draft.body["step"] == now.step or who[str(draft.body["step"])] != to
    stood = decision.drafts[before - 1] if before else None
    assert message.after == (stood.after if stood else now)
    assert (message.at_ms, message.actor) == (known.at_ms, known.actor)
