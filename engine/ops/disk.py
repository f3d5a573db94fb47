"""Room on the disk that the data folder is on."""

import shutil
from dataclasses import dataclass

from django.conf import settings

WARNING_BYTES = 1_000_000_000  # some days' notice for whoever looks at /healthz
FULL_BYTES = 250_000_000  # what is left then is for runs under way, erasures and the log


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What this account may still write."""

    free_bytes: int

    @property
    def is_full(self) -> bool:
        """Whether no new document is taken any more."""
        return self.free_bytes < FULL_BYTES

    def said(self) -> dict[str, object]:
        """The same for a monitor, with what to do before anything is refused."""
        if self.free_bytes >= WARNING_BYTES:
            return {"free_bytes": self.free_bytes}
        now = "refused" if self.is_full else f"refused below {FULL_BYTES // 1_000_000} MB"
        text = f"new documents are {now}: make room on the disk of NANOVM_DATA"
        return {"free_bytes": self.free_bytes, "warning": text}


def room() -> Room:
    """The room as it is now."""
    return Room(free_bytes=shutil.disk_usage(settings.NANOVM_DATA).free)
