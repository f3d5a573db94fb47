"""Blind indexes: a workspace finds a supplier or a number by an HMAC that only its key makes.

The key is random and lies in the key store. Erasing a supplier rotates it: what was indexed under
the old key leads nowhere.
"""

import hmac
from hashlib import sha256

from engine.entropy import uuid4
from engine.models import Workspace
from engine.store import sql
from engine.vault.key_store import keystore
from nanovm_core.errors import VerificationError
from pipeline.models import Register

PREFIX = "index://"
CLAIMS = f"{PREFIX}claims-"  # before a workspace's id
WORDS = f"{PREFIX}words-"  # the same
SUBJECT = "register-"  # before a workspace's id, in the key store
OF_LOG = "SELECT index_ref FROM pipeline_register WHERE workspace_id = %s"
_FIRST = "SELECT id FROM pipeline_workspace WHERE successor_id = %s ORDER BY id LIMIT 1"


def key_of(workspace: Workspace) -> bytes:
    """The workspace's index key, made at first use under the log's lock; PII-002 if it is gone."""
    found = sql.execute(OF_LOG, (sql.key(workspace.id),))
    ref = found[0][0] if found else rotate(workspace)
    key = keystore().keys([ref]).get(ref)
    if key is None:
        raise VerificationError("PII-002", "The key of the register's index is gone.", at=-1)
    return key


def sweep(workspace: Workspace) -> None:
    """Destroy every index key of the workspace but the one that is in use, if any is."""
    used = Register.objects.filter(workspace=workspace).values_list("index_ref", flat=True)
    refs = {*keystore().refs_of(_subject(workspace))} - {*used}
    keystore().destroy([each for each in refs if not each.startswith((CLAIMS, WORDS))])


def lasting(workspace: Workspace, kind: str) -> tuple[str, str]:
    """Ref and subject of a key that no erasure rotates.

    ``kind``: CLAIMS, of the marks that compare across suppliers, or WORDS, by which runs are
    found. A log that goes on after a restore has them from the first one.
    """
    found = sql.execute(_FIRST, (sql.key(workspace.id),))
    first = sql.name(found[0][0]) if found else workspace.id
    return f"{kind}{first}", f"{SUBJECT}{first}"


def blind(key: bytes, kind: str, text: str) -> str:
    """The index entry for a text of this kind, 64 hex digits."""
    message = b"nanovm/index/v1\0" + kind.encode() + b"\0" + text.encode()
    return hmac.new(key, message, sha256).hexdigest()


def rotate(workspace: Workspace) -> str:
    """Give the workspace another key. ``sweep`` destroys the old one, once this is committed."""
    ref = f"{PREFIX}{uuid4()}"
    keystore().new_keys(_subject(workspace), [ref])
    Register.objects.update_or_create(workspace=workspace, defaults={"index_ref": ref})
    return ref


def _subject(workspace: Workspace) -> str:
    return f"{SUBJECT}{workspace.id}"
