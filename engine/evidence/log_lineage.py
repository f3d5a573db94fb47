"""Which log continues which, by the ``restore`` envelopes of the present logs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q

from engine.models import Envelope, Workspace
from engine.store import records, tree
from nanovm_core.core.envelope import LOG_RUN
from nanovm_core.errors import VerificationError


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLog:
    """A log that a restore closed: its signed size, its stored tree, and the log after it."""

    log: str
    size: int
    found_size: int
    found_root: str
    vkeys: tuple[str, ...]
    successor: UUID


def closed_logs() -> dict[str, ClosedLog]:
    """Every restore that is sealed, by the old log's name."""
    return {each.log: each for each in _closings(Envelope.objects.all())}


def closing_of(workspace: Workspace) -> ClosedLog | None:
    """The restore that closed this log, as the logs after it seal it; None for an open one."""
    successor = workspace.successor_id
    if successor is None:
        return None
    after = Envelope.objects.filter(Q(workspace=successor) | Q(workspace__successor=successor))
    named = [each for each in _closings(after) if each.log == workspace.origin]
    return named[-1] if named else None


def is_unchanged(workspace: Workspace, origin: ClosedLog) -> bool:
    """Whether the closed log's tree is still the one that its restore found."""
    size = max(tree.size(workspace.id), origin.found_size)  # where a leaf's node is unknown
    return (size, root_of(workspace, size)) == (origin.found_size, origin.found_root)


def root_of(workspace: Workspace, size: int) -> str:
    """The root of a log's tree in hex; empty where its nodes do not make one."""
    try:
        return tree.head(workspace.id, workspace.origin, size).root.hex()
    except VerificationError:
        return ""


def _closings(rows: Any) -> Iterator[ClosedLog]:
    found = rows.filter(run=LOG_RUN, kind="restore").order_by("workspace", "seq")
    for successor, data in found.values_list("workspace_id", "bytes"):
        body = records.body_of(data)
        given, out = records.part_of(body, "in"), records.part_of(body, "out")
        there = records.part_of(given, "found")
        size, found_size = given.get("size"), there.get("size")
        if isinstance(size, int) and isinstance(found_size, int):
            yield ClosedLog(
                log=str(given.get("log")),
                size=size,
                found_size=found_size,
                found_root=str(there.get("root")),
                vkeys=tuple(str(each) for each in out.values()),
                successor=successor,
            )
