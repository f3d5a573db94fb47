"""The runtime's own authority: the key that signs warrants, and the grants that were revoked.

Revocations are read from the log alone: there is no row that could be deleted or added beside it.
"""

import logging
from functools import lru_cache
from pathlib import Path
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings
from django.db import transaction

from engine.application import installed
from engine.errors import BrokenPartError
from engine.models import AdapterCall, Envelope, Workspace
from engine.runtime import chains
from engine.store import log_chain, programs, records
from engine.vault.key_store import load_or_create_key
from nanovm_core.core.authority.capabilities import grant_id, resolve
from nanovm_core.core.envelope import LOG_RUN, check_chain
from nanovm_core.core.messages import Effect, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.core.warrants import binding, sign
from nanovm_core.errors import VerificationError

log = logging.getLogger(__name__)

KEY_FILE = "warrant_key"  # its own file, 0600: an adapter needs the public half alone


def signing_key() -> Ed25519PrivateKey:
    """The key that signs warrants; made at first use, readable by its owner alone.

    Raises:
        BrokenPartError: as ``require_key``.
    """
    return _loaded(settings.NANOVM_DATA / KEY_FILE)


def require_key() -> None:
    """Return if the key can be read, or no call was answered yet that needs one.

    Raises:
        BrokenPartError: it cannot be read, holds no key, or is gone although calls were signed.
    """
    file: Path = settings.NANOVM_DATA / KEY_FILE
    if file.exists():
        load_or_create_key(file)
        return
    signed = {tool for each in installed() for tool in programs.compiled(each.source()).grants}
    calls = AdapterCall.objects.filter(tool__in=signed).exclude(outcome="begun")
    if not all(map(_is_unsigned, calls.iterator())):
        raise BrokenPartError(
            f"The key file {file} is gone, and warrants were signed with it. Put it back from a"
            " backup. Where it is lost, put 32 random bytes there: no warrant outlives its call."
        )


def _is_unsigned(call: AdapterCall) -> bool:
    """Whether a call's sealed intent has no warrant: its program grants no tool of this name."""
    sealed = Envelope.objects.filter(run=str(call.run_id), kind="intent")
    bodies = (records.body_of(each.bytes) for each in sealed.iterator())
    return any(b.get("idempotency_key") == call.key and "warrant" not in b for b in bodies)


def public_key() -> Ed25519PublicKey:
    """What an adapter checks warrants with."""
    return signing_key().public_key()


def revoked(workspace: Workspace, program: Program) -> frozenset[str]:
    """The ids of the grants that are revoked in a workspace, as its log says under this head.

    The log's own chain is recomputed once for each head. It must be as long as the row says or
    longer: a row that was set back hides no revocation, and a chain that lost its end is damage.
    Where the chain is damaged, every grant counts as revoked.
    """
    length = max(workspace.log_length, log_chain.length(workspace.id))
    try:
        return _sealed(workspace.id, length, workspace.log_length, workspace.log_head)
    except VerificationError as damage:
        log.error("the log %s is damaged, so no grant of it holds: %s", workspace.origin, damage)  # noqa: TRY400
        granted = program.grants.values()
        return frozenset(name for each in granted for name in (grant_id(each), *each.narrowed_from))


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

    Sealed on the workspace's log; a repeat changes nothing. What a worker is doing already may
    still be done; what is not begun is not.

    Raises:
        RefusedError: CAP-001 where no program in force grants such a tool.
    """
    granted = [programs.current(each).grants for each in installed()]
    found = [grants for grants in granted if tool in grants] or granted[:1]
    ids = [grant_id(resolve(grants, tool)) for grants in found]
    with transaction.atomic():
        workspace = records.lock_log(workspace_id)
        before = dict(log_chain.revocations(workspace.id))
        for each in ids:
            if each not in before:
                chains.revoke(workspace.id, tool, each, actor=actor)
    return ids[0]


@lru_cache(maxsize=4096)
def _sealed(workspace: UUID, length: int, known: int, head: str) -> frozenset[str]:
    """The grants revoked in the log's own chain of this length.

    Raises:
        VerificationError: LOG-001 or LOG-002, where the chain does not hold, or where its first
            ``known`` envelopes do not end in ``head``.
    """
    chain = log_chain.read_chain(workspace)[:length]
    check_chain(chain, run=LOG_RUN, head=chain[-1].hash if chain else "")
    if len(chain) != length or known < 1 or chain[known - 1].hash != head:
        text = "The log's own chain is damaged or incomplete."
        raise VerificationError("LOG-002", text, at=len(chain))
    return frozenset(dict(log_chain.revocations(workspace, chain)))


@lru_cache(maxsize=8)
def _loaded(file: Path) -> Ed25519PrivateKey:
    require_key()
    return Ed25519PrivateKey.from_private_bytes(load_or_create_key(file))
