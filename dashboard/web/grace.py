"""Ten seconds in which an erasure can be cancelled: a signed ticket that only counts after them."""

from typing import NamedTuple

from django.core import signing

from engine.clock import now_ms

SALT = "nanovm.dashboard.grace"
WAIT_MS = 10_000
OPEN_MS = 5 * 60_000  # after which the ticket says nothing any more


class Ticket(NamedTuple):
    """An erasure that was confirmed: its ground, and for how long it waits still."""

    reason: str
    wait_ms: int

    @property
    def wait_s(self) -> int:
        """Whole seconds, rounded up."""
        return -(-self.wait_ms // 1000)


def issued(of: str, reason: str) -> str:
    """A ticket for the erasure of ``of``, confirmed now."""
    return signing.dumps({"of": of, "reason": reason, "at_ms": now_ms()}, salt=SALT)


def read(of: str, text: str) -> Ticket | None:
    """What a ticket says; None for one that is over, of something else, or that we never issued."""
    try:
        said = signing.loads(text, salt=SALT)
    except signing.BadSignature:
        return None
    age_ms = now_ms() - said["at_ms"]
    if said["of"] != of or not 0 <= age_ms < OPEN_MS:
        return None
    return Ticket(said["reason"], max(0, WAIT_MS - age_ms))
