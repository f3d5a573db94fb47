"""The runtime's own authority: the key that signs warrants, and the grants that were taken back."""

from functools import lru_cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings
from django.db import transaction

from nanovm_core.core.capabilities import grant_id, resolve
from nanovm_core.core.messages import Effect, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.core.warrants import binding, sign
from pipeline.clock import now_ms
from pipeline.models import Revocation, Workspace
from pipeline.store import programs, records, workspaces
from pipeline.vault.key_store import made_once

KEY_FILE = "warrant_key"  # its own file, 0600: an adapter needs the public half alone


def signing_key() -> Ed25519PrivateKey:
    """The key that signs warrants; made at first use, readable by its owner alone."""
    return _loaded(settings.NANOVM_DATA / KEY_FILE)


def public_key() -> Ed25519PublicKey:
    """What an adapter checks warrants with."""
    return signing_key().public_key()


def revoked(workspace: Workspace) -> frozenset[str]:
    """The ids of the grants that were taken back in a workspace."""
    found = Revocation.objects.filter(workspace=workspace)
    return frozenset(found.values_list("grant", flat=True))


def token(program: Program, now: Snapshot, effect: Effect) -> bytes:
    """The signed warrant that goes with an effect; empty where its tool needs none."""
    if effect.warrant is None:
        return b""
    bound = binding(now.run, now.program, effect)
    grant = program.grants[effect.tool]
    grants = [grant_id(grant), *grant.narrowed_from]
    return sign(effect.warrant, bound, signing_key(), grants=grants)


def revoke(workspace_id: str, tool: str, actor: str) -> str:
    """Take the grant of a tool back in a workspace, for every run of it, and return its id.

    Sealed on the workspace's log first; a repeat changes nothing. What a worker has in hand
    already may still be done; what is not begun is not.

    Raises:
        RefusedError: CAP-001 where the program in force grants no such tool.
    """
    grant = grant_id(resolve(programs.current().grants, tool))
    with transaction.atomic():
        workspace = records.lock_log(workspace_id)
        if not Revocation.objects.filter(workspace=workspace, grant=grant).exists():
            body = {"tool": tool, "outcome": "revoked", "in": {"grant": grant}}
            workspaces.seal(workspace, "capability", body, actor=actor)
            Revocation.objects.create(workspace=workspace, grant=grant, tool=tool, at_ms=now_ms())
    return grant


@lru_cache(maxsize=8)
def _loaded(file: Path) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(made_once(file))
