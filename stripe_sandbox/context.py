"""For whom, when and by which request something is executed."""

from dataclasses import dataclass, replace

from stripe_sandbox.store import Account


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One execution: ``account`` is the platform, or the connected account it acts for.

    ``url`` is the address at which this counterpart serves its own pages. ``has_connect``: whether
    the platform has signed up for Connect.
    """

    account: Account
    platform: Account
    key: str
    now: int
    url: str
    request_id: str | None = None
    idempotency_key: str | None = None
    has_connect: bool = True

    @property
    def is_connected(self) -> bool:
        """Whether the account is a connected account of the platform."""
        return self.account != self.platform

    def acting_for(self, account_id: str) -> "Context":
        """The same execution, on the records of a connected account."""
        return replace(self, account=Account(self.platform.store, account_id))
