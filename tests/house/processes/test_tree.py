"""The tree of processes is read strictly: what is not fully understood has its line and column."""

import pytest

from config import tree
from engine.store import actors
from nanovm_core.errors import ProgramError
from nanovm_core.supervision import SIMPLE_ONE_FOR_ONE, Child, Spec, problems

SHIPPED = tree.FILE.read_text()
PROGRAMS = ("queue", "stripe", "signer", "web", "controller", "follow")

WRONG = {  # what is replaced, by what, what is said, and the text that begins at its place
    "cycle": ('"payer"]', '"payer", "root"]', "'root' cannot be its child: it is in", '"root"]'),
    "named by two": ('"payer"]', '"payer", "web"]', "'web' cannot be its child: it is", '"web", "'),
    "named twice": ('"payer"]', '"payer", "payer"]',
        "children names something twice", "children ="),
    "unknown name": ('"payer"]', '"payr"]', "'payr' cannot be its child: there is none", '"payr"]'),
    "in no tree": ('"payer"]', "]", "no supervisor below root names it", 'name = "payer"'),
    "two of a name": ('name = "web"', 'name = "queue"', "called 'queue': rename", 'name = "queue"'),
    "strategy": ('"one_for_one"  #', '"one_for_two"  #',
        "is none of one_for_one,", 'strategy = "one'),
    "restart": ('"transient"', '"sometimes"', "'sometimes' is none of permanent", "restart ="),
    "slow": ('name = "web"', 'name = "web"\nshutdown_ms = 18001',
        "18001 ms to stop", "shutdown_ms"),
    "agent alone": ('agent = "payer"', "", "no child bears the agent 'payer'", "children]]"),
    "no such agent": ('agent = "payer"', 'agent = "teller"',
        "bears no agent of an", 'agent = "tell'),
    "no program": ('name = "web"', 'name = "wob"',
        "it is no program, and bears no", "children]]\nname"),
    "program with an agent": ('name = "web"', 'name = "web"\nagent = "payer"',
        "it is a program, which", 'agent = "payer"'),
    "queue late": ('["queue", "stripe", "signer", "agents", "web"',
        '["stripe", "signer", "agents", "queue", "web"', "left of 'reader'", 'name = "queue"'),
    "stripe late": ('["queue", "stripe", "signer", "agents", "web"',
        '["queue", "signer", "web", "stripe", "agents"', "left of 'web'", 'name = "stripe"'),
    "made": ('name = "agents"', 'name = "readers"', "NANOVM_READERS makes", 'name = "readers"'),
    "made child": ('name = "reader"', 'name = "reader-1"', "NANOVM_READERS makes", 'name = "read'),
    "key": ("within_s = 180", "within_m = 1", "unknown key 'within_m'", "within_m"),
    "version": ("agents/1", "agents/2", "'nanovm-agents/2' is none of nanovm-agents/1", "v ="),
    "no TOML": ('"payer"]', '"payer"', "is not TOML", None),
    "empty": (SHIPPED, 'v = "nanovm-agents/1"', "there is no supervisor", "v ="),
}  # fmt: skip


def load(text: str) -> tree.Tree:
    return tree.load(text.encode(), PROGRAMS, actors.agents())


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_refused_where_it_is(wrong: str) -> None:
    before, after, says, place = WRONG[wrong]
    text = SHIPPED.replace(before, after, 1)
    assert text != SHIPPED
    with pytest.raises(ProgramError) as caught:
        load(text)
    faults = [each for each in caught.value.faults if says in each.text]
    fault = faults[0] if faults else caught.value
    assert fault.code == "AGT-005"
    assert fault.line is not None
    assert fault.column is not None
    if place is not None:
        rest = "\n".join(text.splitlines()[fault.line - 1 :])[fault.column - 1 :]
        assert rest.startswith(place), rest[:60]


def test_the_shipped_tree_has_every_agent_and_is_cut_to_what_runs_here() -> None:
    found = load(SHIPPED)
    assert [*problems(found.root)] == []
    fitted = tree.fitted(found, ("queue",), "reader", 2)
    assert [each.name for each in fitted.root.children] == [
        "stripe",
        "signer",
        "agents",
        "web",
        "watchers",
    ]
    agents = fitted.root.children[2]
    assert isinstance(agents, Spec)
    readers, payer = agents.children
    assert readers.restart == agents.restart == "transient"  # what gave up stays down
    assert isinstance(readers, Spec)
    assert (readers.strategy, readers.children) == (SIMPLE_ONE_FOR_ONE, (Child("reader"),))
    assert payer == Child("payer")
    assert fitted.instances == {"readers": ("reader-1", "reader-2")}
    assert [fitted.agents[name] for name in fitted.instances["readers"]] == ["reader", "reader"]
    assert tree.fitted(found, (), "reader", 1) == found
