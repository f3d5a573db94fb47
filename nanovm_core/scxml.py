"""A table of states and events as SCXML (W3C, 2015), for the tools that read it."""

from collections.abc import Iterable, Mapping
from xml.etree import ElementTree as ET

NAMESPACE = "http://www.w3.org/2005/07/scxml"
FINAL = "terminated"

Table = Mapping[tuple[str, str], tuple[str, ...]]


def scxml(name: str, table: Table, states: Iterable[str], initial: str) -> str:
    """The statechart of a table: states in their groups, one transition for each target.

    The first part of a state's name is its group. SCXML takes the first transition that matches,
    and ours depend on more than the state: so an event that may lead to several states bears the
    one that it led to, as in ``EffectDone.running.waiting``.
    """
    root = ET.Element("scxml", xmlns=NAMESPACE, version="1.0", name=name, initial=initial)
    groups: dict[str, ET.Element] = {}
    for state in states:
        group, _, inner = state.partition(".")
        if inner and group not in groups:
            groups[group] = ET.SubElement(root, "state", id=group, initial=state)
        within = groups[group] if inner else root
        moves = [(event, to) for (at, event), to in table.items() if at == state]
        kind = "final" if group == FINAL and not moves else "state"
        drawn = ET.SubElement(within, kind, id=state)
        for event, targets in moves:
            for target in targets:
                said = event if len(targets) == 1 else f"{event}.{target}"
                ET.SubElement(drawn, "transition", event=said, target=target)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"
