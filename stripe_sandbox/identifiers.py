"""Ids in the form of Stripe's: a prefix and random characters."""

import secrets
import string

_ALPHABET = string.ascii_letters + string.digits


def random_text(length: int) -> str:
    """Return ``length`` letters and digits from the system's source of randomness."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def payment_intent_id() -> str:
    return "pi_3" + random_text(23)


def charge_id() -> str:
    return "ch_3" + random_text(23)


def object_id(prefix: str) -> str:
    """Return an id of any other kind of object: ``po`` for a payout, ``acct`` for an account."""
    return f"{prefix}_1" + random_text(16 if prefix == "acct" else 23)


def request_id() -> str:
    return "req_" + random_text(14)


def client_secret(intent_id: str) -> str:
    return f"{intent_id}_secret_{random_text(25)}"
