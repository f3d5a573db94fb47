"""Workspaces: a visitor's own log, vault and budgets."""

from collections.abc import Mapping

from django.db import transaction

from nanovm_core.canonical import encode
from nanovm_core.envelope import LOG_RUN, VERSION, ZERO, canonical_hash
from nanovm_core.fsm import capabilities_hash
from pipeline import programs
from pipeline.models import Envelope, Workspace
from pipeline.world import now_ms, uuid7

ORIGIN_HOST = "nanovm.localhost"  # the first half of every log's name


def create() -> Workspace:
    """Make a workspace: an empty log whose first envelope is its own genesis."""
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
        body = {
            "program": program.hash,
            "policy": program.policy.hash,
            "capabilities": capabilities_hash(program),
        }
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
    Envelope.objects.create(
        workspace=workspace,
        seq=workspace.size,
        run=LOG_RUN,
        n=workspace.log_length,
        bytes=data,
        hash=canonical_hash(data),
        kind=kind,
    )
    workspace.size += 1
    workspace.log_length += 1
    workspace.log_head = canonical_hash(data)
    workspace.save(update_fields=["size", "log_length", "log_head"])
