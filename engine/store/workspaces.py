"""Workspaces: a visitor's own log, vault and budgets."""

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from django.db import transaction

from engine.application import main
from engine.clock import now_ms
from engine.entropy import uuid7
from engine.models import Workspace
from engine.store import programs, records, sql
from engine.store.logs import Line, append
from nanovm_core.core.canonical import encode
from nanovm_core.core.envelope import LOG_RUN, VERSION, ZERO, Stored, canonical_hash
from nanovm_core.core.fsm import capabilities_hash

_CHAIN = (
    "SELECT n, bytes, hash FROM pipeline_envelope WHERE run = %s AND workspace_id = %s ORDER BY n"
)
_LENGTH = "SELECT MAX(n) + 1 FROM pipeline_envelope WHERE run = %s AND workspace_id = %s"
ORIGIN_HOST = "nanovm.localhost"  # the first half of every log's name


def create(given: Mapping[str, object] | None = None) -> Workspace:
    """Make a workspace: an empty log whose first envelope is its own genesis.

    ``given``: what the genesis says besides of where this log comes from.
    """
    program = programs.current(main())
    workspace_id, at_ms = uuid7(), now_ms()
    origin = f"{ORIGIN_HOST}/{workspace_id.hex[-12:]}"
    with transaction.atomic():
        workspace = Workspace.objects.create(
            id=workspace_id, origin=origin, log_head=ZERO, created_ms=at_ms
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


def chain(workspace: UUID) -> list[Stored]:
    """The log's own envelopes, which belong to no run, in order of ``n``; nothing is recomputed."""
    rows = sql.execute(_CHAIN, (LOG_RUN, sql.key(workspace)))
    return [Stored(n, sql.blob(data), str(leaf)) for n, data, leaf in rows]


def chain_length(workspace: UUID) -> int:
    """How many envelopes the log's own chain has, whatever the workspace's row says."""
    [(length,)] = sql.execute(_LENGTH, (LOG_RUN, sql.key(workspace)))
    return int(length or 0)


def revoke(workspace: Workspace, tool: str, grant: str, *, actor: str) -> None:
    """Seal that a grant is revoked; the caller holds the log's lock."""
    body = {"tool": tool, "outcome": "revoked", "in": {"grant": grant}}
    seal(workspace, "capability", body, actor=actor)


def revocations(
    workspace: UUID, envelopes: Sequence[Stored] | None = None
) -> Iterator[tuple[str, str]]:
    """Grant and tool of each sealed revocation: in these envelopes, or in all that can be read."""
    for each in chain(workspace) if envelopes is None else envelopes:
        body = records.body_of(each.data)
        if body.get("kind") == "capability" and (given := records.part_of(body, "in")):
            yield str(given.get("grant")), str(body.get("tool"))
