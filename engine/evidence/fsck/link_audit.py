"""The audit of links: what their rows say, against what the log seals of each."""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.damage import Damage
from engine.models import Link, Workspace
from engine.runtime import links
from engine.store import log_chain, records
from nanovm_core.core.envelope import LOG_RUN

CODE = "LOG-003"


def link_damage(workspace: Workspace) -> Iterator[Damage]:
    """Rows that grant something else than was sealed, or say another end or other uses.

    A row that is missing grants nothing, and those of ended links are deleted after a while.
    """
    rows = Link.objects.filter(workspace=workspace).order_by("id")
    said = _sealed(workspace) if rows.exists() else {}
    for row in rows.iterator():
        if text := _fault(row, said.get(str(row.id), [])):
            what = f"The row of link {row.id} {text}."
            yield Damage(workspace.origin, LOG_RUN, row.sealed_n, CODE, what)


def _sealed(workspace: Workspace) -> dict[str, list[Mapping[str, Any]]]:
    """The events of each link, by its id, in their order."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for each in log_chain.read_chain(workspace.id):
        body = records.body_of(each.data)
        if body.get("kind") == links.KIND and "link" in body:
            found.setdefault(str(body["link"]), []).append(body)
    return found


def _fault(row: Link, said: list[Mapping[str, Any]]) -> str:
    if not said or not links.is_as_made(row, said[0]):
        return "grants what no event made"
    events = [each.get("event") for each in said]
    if (links.REVOKED in events) != (row.revoked_ms is not None):
        return "does not say whether the link was revoked"
    if any("outcome" in each for each in said) != (row.spent_ms is not None):
        return "does not say whether the link's act was done"
    return "" if events.count(links.USED) == row.uses else "counts other uses than were sealed"
