"""The processes on the page of agents, from a status file of each kind; alerts about them."""

from dataclasses import replace
from typing import Any

import pytest

from engine.clock import now_ms
from engine.ops import process_file
from engine.ops.process_file import Node, Process, Processes
from engine.runtime import agents as runtime
from engine.runtime.agent_moves import Agents
from engine.runtime.group_commit import Job, committed
from engine.store import ledgers
from nanovm_core.core.messages import Suspension
from tests.dashboard.visitor import Visitor, words

pytestmark = pytest.mark.usefixtures("own_folder")
AGENTS = Node("one_for_one", 5, 60, ["reader", "payer"])
EACH = Process(pid=41, incarnation=1, since_ms=1, state=process_file.RUNNING)
WALLS: Any = {"confined": "files, ports, signals", "missing": "", "ports": ["queue 4711"]}
WALLS |= {"files": ["kek (read)", "x (read)"]}
LACKS = {**WALLS, "confined": "files", "missing": "ports (ABI 3), signals (ABI 3)"}
NOTHING = {**WALLS, "confined": "", "missing": "files (not supported)"}
ONLY = "may open only Files kek (read): the key that encrypts these keys x (read) Ports queue 4711"


def write(agents: dict[str, Any], reader: dict[str, Any], *others: str) -> None:
    """What a supervisor of a reader, a payer, other processes and a web server writes."""
    root = replace(AGENTS, children=["agents", "web"])
    processes = dict.fromkeys(("payer", *others, "web"), EACH)
    processes["reader"] = replace(EACH, agent="reader", **reader)
    process_file.write(Processes({"root": root, "agents": replace(AGENTS, **agents)}, processes))


@pytest.mark.parametrize(
    ("walls", "says", "never"),
    [
        (WALLS, f"{ONLY} Closed to it all other files, among them the keys that sign", "lacks"),
        (LACKS, "this system lacks: ports (ABI 3), signals (ABI 3).", "Stripe’s among"),
        (NOTHING, "may open all that its account may Walls", "Closed to it"),
        (None, "payer, web, reader : no walls: all that the operating", "Closed to it"),
    ],
)
def test_open_files_are_listed(visitor: Visitor, walls: Any, says: str, never: str) -> None:
    write({}, {"walls": walls})
    page = words(visitor.read("/agents/"))
    assert (says in page, never in page) == (True, False)


def test_the_tree_says_how_each_process_runs_and_what_its_supervisor_did(visitor: Visitor) -> None:
    visitor.make(hold=True)
    process_file.remove()
    assert "No supervisor runs here" in visitor.read("/agents/")
    assert "Its process" not in visitor.read("/agents/reader/")
    now = now_ms()
    ended = {"restarts": 2, "restarted_ms": now, "ended": "died with status 1"}
    write({"ends_ms": [now - 61_000, now - 9_000, now]}, {"pid": 77, "incarnation": 3, **ended})
    for path in ("/agents/", "/agents/reader/"):
        page = words(visitor.read(path))
        assert "pid 77 · incarnation 3 , since 00:00:00 · 2 restarts , the last" in page
        assert "before: died with status 1" in page
    assert "starts a process again when it ends 2 of 5 restarts" in words(visitor.read("/agents/"))
    write({"gave_up_ms": now}, {"state": "stopped", "pid": 0})
    assert "Agents gave up at" in (page := words(visitor.read("/agents/")))
    assert "reader : does not run now." in page
    copies = [f"reader-{number}" for number in range(16)]
    write({"strategy": "simple_one_for_one", "children": copies}, {}, *copies)
    assert ">16 copies</summary>" in visitor.read("/agents/")


def test_an_alert_about_a_process_is_shown_and_no_visitor_closes_it(visitor: Visitor) -> None:
    def gave_up(commit: Any) -> None:
        found = Agents(commit.ledgers, commit.ledgers.house())
        found.declare(["reader"], "runtime")
        found.suspend(Suspension("reader", "AGT-004", "It ended 6 times."))

    visitor.make(hold=True)
    committed(Job(gave_up, logs=()))
    for each in (visitor, Visitor()):
        assert "Process reader stopped." in words(each.read("/"))
        listed = each.read("/agents/").partition('id="alerts"')[2].partition("</section>")[0]
        assert "Process reader stopped. It ended 6 times." in words(listed)
        assert "who runs this server closes it" in listed
    visitor.post("/alerts/acknowledge/", {"alert": "agent/reader"})
    visitor.post("/agents/reader/resume/")
    assert (house := ledgers.house())
    assert "agent/reader" in runtime.read(house.id).alerts
