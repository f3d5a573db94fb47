"""The runtime's own authority: the key that signs warrants, and the grants that were taken back."""

from functools import lru_cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings

from pipeline.keystore import made_once
from pipeline.models import Revocation, Workspace

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


@lru_cache(maxsize=8)
def _loaded(file: Path) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(made_once(file))
