"""Workspaces: a visitor's own log, vault and budgets."""

from collections.abc import Mapping

from django.db import transaction

from nanovm_core.core.canonical import encode
from nanovm_core.core.envelope import LOG_RUN, VERSION, ZERO, canonical_hash
from nanovm_core.core.fsm import capabilities_hash
from pipeline.clock import now_ms
from pipeline.entropy import uuid7
from pipeline.models import Workspace
from pipeline.store import programs
from pipeline.store.logs import Line, append

ORIGIN_HOST = "nanovm.localhost"  # the first half of every log's name


def create(given: Mapping[str, object] | None = None) -> Workspace:
    """Make a workspace: an empty log whose first envelope is its own genesis.

    ``given``: what the genesis says besides of where this log comes from.
    """
    program = programs.current()
    workspace_id, at_ms = uuid7(), now_ms()
    origin = f"{ORIGIN_HOST}/{workspace_id.hex[-12:]}"
    with transaction.atomic():
        workspace = Workspace.objects.create(
            id=workspace_id,
            origin=origin,
            log_head=ZERO,
            created_ms=at_ms,
        )
        body: dict[str, object] = {
            "program": program.hash,
            "policy": program.policy.hash,
            "capabilities": capabilities_hash(program),
        }
        body |= {"in": dict(given)} if given else {}
        seal(workspace, "genesis", body, actor="runtime")
    return workspace


def seal(workspace: Workspace, kind: str, body: Mapping[str, object], *, actor: str) -> None:
    """Seal what belongs to no run on the workspace's own chain; the caller holds its lock."""
    place = {"log": workspace.origin, "seq": workspace.size, "run": LOG_RUN}
    data = encode(
        {
            "v": VERSION,
            **place,
            "n": workspace.log_length,
            "kind": kind,
            "at_ms": now_ms(),
            "actor": actor,
            "prev": workspace.log_head,
            **body,
        }
    )
    head = canonical_hash(data)
    line = Line(workspace.size, LOG_RUN, workspace.log_length, data, head, kind)
    workspace.size += 1
    workspace.log_length += 1
    workspace.log_head = head
    append(workspace, [line])
