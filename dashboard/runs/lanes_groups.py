"""Which events of a run the swim lanes draw as one."""

from collections.abc import Hashable, Sequence
from itertools import groupby

from engine.queries.event_stream import RunEvent
from engine.queries.log import EventRow
from engine.queries.record import DELIVERY

STOPS, COPIER = ("refused", "ignored"), "attacker:double_exec"
SEVERAL = 3  # equal stops in a row that are drawn one by one


def grouped(moments: Sequence[RunEvent], packed: bool) -> list[list[RunEvent]]:
    """Events that are drawn as one: copies always, and other stops in a row that are alike."""
    groups: list[list[RunEvent]] = []
    for _, alike in groupby(moments, lambda moment: _kind(moment, packed)):
        group = [*alike]
        few = len(group) <= SEVERAL and not are_copies(group) and not packed
        groups += [[moment] for moment in group] if few else [group]
    return groups


def _kind(moment: RunEvent, packed: bool) -> Hashable:
    """What neighbours have in common that are drawn as one."""
    row = moment.row
    if row.kind not in STOPS:
        return row.number
    if packed:
        return STOPS
    return COPIER if copied(row) else (row.rule, row.state_event, row.actor, moment.call)


def are_copies(group: Sequence[RunEvent]) -> bool:
    """Whether all of them are copies of a message of the queue."""
    return all(copied(moment.row) for moment in group)


def copied(row: EventRow) -> bool:
    """Whether an event is a copy of a message of the queue, which changed nothing."""
    return row.kind in STOPS and (row.actor == COPIER or row.state_event == DELIVERY)
