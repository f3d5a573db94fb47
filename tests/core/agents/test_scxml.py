"""The exported statecharts, read and driven by a public SCXML reader."""

from collections import deque

import pytest
from statemachine.io.scxml.processor import SCXMLProcessor

from nanovm_core import agents
from nanovm_core.core import lifecycle
from nanovm_core.scxml import Table, scxml

CHARTS = {"run": (lifecycle.TABLE, lifecycle.STATES), "agent": (agents.TABLE, agents.STATES)}


def paths(table: Table, initial: str) -> dict[str, list[str]]:
    """How each state is reached, as the events of the export."""
    found, waiting = {initial: list[str]()}, deque([initial])
    while waiting:
        state = waiting.popleft()
        for (at, event), targets in table.items():
            for target in targets:
                if at == state and target not in found:
                    found[target] = [*found[state], said(event, target, targets)]
                    waiting.append(target)
    return found


def said(event: str, target: str, targets: tuple[str, ...]) -> str:
    return event if len(targets) == 1 else f"{event}.{target}"


@pytest.mark.parametrize("name", CHARTS)
def test_a_public_reader_goes_where_the_table_says(name: str) -> None:
    table, states = CHARTS[name]
    processor = SCXMLProcessor()
    processor.parse_scxml(name, scxml(name, table, states, lifecycle.NEGOTIATION))
    known = paths(table, lifecycle.NEGOTIATION)
    assert known.keys() == {*states}
    for (state, event), targets in table.items():
        for target in targets:
            machine = processor.start()  # type: ignore[no-untyped-call]
            for each in [*known[state], said(event, target, targets)]:
                machine.send(each)
            assert target in {each.id for each in machine.configuration}, (state, event)
