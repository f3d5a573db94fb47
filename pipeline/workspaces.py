"""Workspaces: a visitor's own log, vault and budgets."""

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
    data = encode(
        {
            "v": VERSION,
            "log": origin,
            "seq": 0,
            "run": LOG_RUN,
            "n": 0,
            "kind": "genesis",
            "at_ms": at_ms,
            "actor": "runtime",
            "program": program.hash,
            "policy": program.policy.hash,
            "capabilities": capabilities_hash(program),
            "prev": ZERO,
        }
    )
    with transaction.atomic():
        workspace = Workspace.objects.create(
            id=workspace_id,
            origin=origin,
            size=1,
            log_length=1,
            log_head=canonical_hash(data),
            created_ms=at_ms,
        )
        Envelope.objects.create(
            workspace=workspace,
            seq=0,
            run=LOG_RUN,
            n=0,
            bytes=data,
            hash=canonical_hash(data),
            kind="genesis",
        )
    return workspace
