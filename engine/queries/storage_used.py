"""How many bytes a workspace uses on the disk."""

from contextlib import suppress
from uuid import UUID

from engine.models import Secret, Workspace
from engine.vault.secret_store import media

# An envelope, its part of the tree, and its share of the rows and secrets of its run: measured.
ENVELOPE_BYTES = 6_000


def bytes_of(workspace: UUID) -> int:
    """Its documents, as their files are, and its log, as long as an average one is."""
    sizes = Workspace.objects.filter(id=workspace).values_list("size", flat=True)
    secrets = Secret.objects.filter(run__workspace=workspace, erased_ms=None).exclude(file="")
    total = sum(sizes) * ENVELOPE_BYTES
    for name in secrets.values_list("file", flat=True).iterator():
        with suppress(OSError):  # lost, which fsck tells: it uses nothing
            total += (media() / name).stat().st_size
    return total
