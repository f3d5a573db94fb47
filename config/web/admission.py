"""What may be open at once: connections and the bodies that they hold, by address and in all."""

import resource
from collections import Counter
from http import HTTPStatus
from typing import Protocol

from config.environment import UPLOAD_SIZE_BYTES_MAX

WAITING_MAX = 512  # connections whose next request is not whole, or not begun
WAITING_PER_ADDRESS_MAX = 64  # a browser opens six
USED_MAX = 1_024  # connections with a request in work, and sockets
USED_PER_ADDRESS_MAX = 256  # an office behind one address
BODIES_SIZE_BYTES_MAX = 4 * UPLOAD_SIZE_BYTES_MAX  # of bodies that are held in memory
BODIES_PER_ADDRESS_SIZE_BYTES_MAX = 2 * UPLOAD_SIZE_BYTES_MAX
FILES_OWN = 256  # the process's own: database, key store, queue, documents

TOO_MANY, NO_ROOM = HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE


class Connection(Protocol):
    """What the limits need of a connection."""

    address: str  # as it is counted; empty for the proxy's, which are everybody's

    def give_way(self) -> None:
        """End: another connection needs the place."""


class ConnectionLimits:
    """Counts connections and the bodies that they hold, and refuses what is too much.

    A connection waits for a request, then it is used, then it waits again. Where too many wait,
    the one that has waited longest gives way: a newcomer is never shut out by those who say
    nothing.
    """

    def __init__(self) -> None:
        self._waiting: dict[Connection, None] = {}  # the longest waiting first
        self._waiting_at: dict[str, dict[Connection, None]] = {}
        self._used: dict[Connection, str] = {}
        self._used_at: Counter[str] = Counter()
        self._held: dict[Connection, tuple[str, int]] = {}
        self._held_at: Counter[str] = Counter()

    def wait(self, visit: Connection) -> None:
        """Count it as waiting for its next request."""
        self.leave(visit)
        mine = self._waiting_at.setdefault(visit.address, {})
        self._waiting[visit] = mine[visit] = None
        if visit.address and len(mine) > WAITING_PER_ADDRESS_MAX:
            self._dismiss(next(iter(mine)))
        elif len(self._waiting) > WAITING_MAX:
            self._dismiss(next(iter(self._waiting)))

    def use(self, visit: Connection, address: str) -> HTTPStatus | None:
        """Count it as in use by this address; the refusal, or None."""
        self.leave(visit)
        refusal = self._too_much(address)
        self._used[visit] = address
        self._used_at[address] += 1
        return refusal

    def _too_much(self, address: str) -> HTTPStatus | None:
        if address and self._used_at[address] >= USED_PER_ADDRESS_MAX:
            return TOO_MANY
        return NO_ROOM if len(self._used) >= USED_MAX else None

    def hold(self, visit: Connection, size: int) -> HTTPStatus | None:
        """Reserve memory for the body of its request; the refusal, or None."""
        address = self._used[visit]
        if address and self._held_at[address] + size > BODIES_PER_ADDRESS_SIZE_BYTES_MAX:
            return TOO_MANY
        if sum(held for _, held in self._held.values()) + size > BODIES_SIZE_BYTES_MAX:
            return NO_ROOM
        self._held[visit] = (address, size)
        self._held_at[address] += size
        return None

    def drop(self, visit: Connection) -> None:
        """Release the memory of its body."""
        address, size = self._held.pop(visit, ("", 0))
        _less(self._held_at, address, size)

    def leave(self, visit: Connection) -> None:
        """Forget the connection; it may come again as one that waits or is used."""
        self.drop(visit)
        if visit in self._waiting:
            del self._waiting[visit]
            del self._waiting_at[visit.address][visit]
            if not self._waiting_at[visit.address]:
                del self._waiting_at[visit.address]
        if visit in self._used:
            _less(self._used_at, self._used.pop(visit), 1)

    def _dismiss(self, visit: Connection) -> None:
        self.leave(visit)
        visit.give_way()


def _less(counts: Counter[str], address: str, by: int) -> None:
    counts[address] -= by
    if not counts[address]:
        del counts[address]


def files_allowed() -> None:
    """Let this process open as many files as it admits connections.

    Raises:
        SystemExit: where the machine's hard limit is lower.
    """
    needed = WAITING_MAX + USED_MAX + FILES_OWN
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard not in (resource.RLIM_INFINITY,) and hard < needed:
        raise SystemExit(
            f"The web server needs {needed} open files and this machine allows {hard}; "
            "raise the hard limit (ulimit -Hn, or LimitNOFILE of the service)."
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
