"""A run's secrets, opened for whoever owns them."""

from collections.abc import Sequence

from engine.models import Secret
from engine.queries.runs import RunHead
from engine.vault import secret_store
from nanovm_core.errors import VerificationError

DAMAGED = "unreadable: the stored bytes were changed"


def opened(ref: str) -> str:
    """One secret for its owner's page."""
    return opened_all((ref,))[ref]


def opened_all(refs: Sequence[str]) -> dict[str, str]:
    """Secrets for their owner's page: the value, the tombstone, or that it was damaged."""
    try:
        return secret_store.read_all(refs)
    except VerificationError:
        return {ref: _one(ref) for ref in refs}


def _one(ref: str) -> str:
    try:
        return secret_store.read(ref)
    except VerificationError:
        return DAMAGED


def given(run: RunHead, slots: Sequence[str]) -> dict[str, bytes | None]:
    """What a run was given under these names, from its vault; None for what was erased.

    Raises:
        VerificationError: PII-002, where something of it does not open.
    """
    rows = Secret.objects.filter(run_id=run.id, slot__in=slots).values_list("slot", "ref")
    refs = dict(rows.order_by("-created_ms", "-ref"))  # the first of a name stands
    values = secret_store.read_bytes([*refs.values()])
    return {slot: values[ref] for slot, ref in refs.items()}
