"""Room on the disk that the data folder is on."""

import shutil

from django.conf import settings

WARNING_BYTES = 1_000_000_000  # some days' notice for whoever looks at /healthz
FULL_BYTES = 250_000_000  # what is left then is for runs under way, erasures and the log


def free_bytes() -> int:
    """What this account may still write."""
    return shutil.disk_usage(settings.NANOVM_DATA).free


def is_full() -> bool:
    """Whether no new document is taken any more."""
    return free_bytes() < FULL_BYTES
