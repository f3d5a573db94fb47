"""Connected accounts at Stripe: one for each supplier's bank details, and whom a payment goes to.

The register says whom a run pays; here that becomes an account which Stripe knows, so that "to
whom" is a fact of its own records. Nothing personal is sent: no name, no bank details.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import stripe

from engine.clock import now_ms
from engine.errors import PermanentError, TransientError
from engine.work import Work, slot_value
from nanovm_core.core.messages import Effect
from nanovm_core.errors import VerificationError
from pipeline.models import Supplier
from pipeline.register import suppliers
from pipeline.register.details import DetailsError
from pipeline.register.versions import Entry
from pipeline.steps.charge import gateway

NO_CONNECT = "signed up for Connect"  # Stripe's words for a platform that cannot make accounts
UNKNOWN = "none: Stripe does not know the payee"  # what is sealed in place of an account
# An account that can take transfers and nothing else; whoever it belongs to identifies himself to
# Stripe, and the platform bears what Stripe would charge it.
ACCOUNT: dict[str, Any] = {
    "capabilities": {"transfers": {"requested": True}},
    "controller": {
        "fees": {"payer": "application"},
        "losses": {"payments": "application"},
        "stripe_dashboard": {"type": "express"},
    },
}


@contextmanager
def register_failures() -> Iterator[None]:
    """Raise what is wrong in the register (PII-002, SUP-…) as the failure of an effect."""
    try:
        yield
    except (VerificationError, DetailsError) as error:
        raise PermanentError(error.code, error.text) from error


def account_of(entry: Entry) -> Entry:
    """The supplier with its account at Stripe, made and sealed where it has none.

    A crash between both makes no second account: the same key finds the first, or Stripe's list.
    The account stays empty where Stripe has no Connect for us.

    Raises:
        TransientError: STR-007, Stripe did not answer; the same key, later.
        OutcomeUnknownError: STR-004, Stripe's list does not end; a person decides.
        PermanentError: STR-009, Stripe refused.
        DetailsError: SUP-003 or SUP-005, the supplier changed meanwhile.
    """
    made = "" if entry.details.account else _create(entry)
    return suppliers.connect(entry, made) if made else entry


def named_by(effect: Effect) -> str:
    """The account that the sealed intent commits to, empty for none; STR-008 where it is silent."""
    if "destination" not in effect.args:
        raise _refused("The authorized call names no account of the payee.")
    sealed = slot_value(effect, "destination").decode()
    return "" if sealed == UNKNOWN else sealed


def refusal(work: Work, account: str) -> PermanentError | None:
    """Why nothing may be sent: the register, as it is now, has another account for the run.

    STR-008, also where the supplier was blocked or erased since; PII-002.
    """
    try:
        entry = suppliers.by_id(work.run.workspace, str(work.slots.get("supplier", "")))
    except VerificationError as error:
        return PermanentError(error.code, error.text)
    except (Supplier.DoesNotExist, ValueError):
        return _refused("The supplier is not in the register any more.")
    if entry.row.state != suppliers.ACTIVE:
        return _refused(f"The supplier was {entry.row.state} after the invoice was read.")
    if entry.details.account != account:
        return _refused("The register has another account for the supplier than the sealed intent.")
    return None


def _create(entry: Entry) -> str:
    """The account under the key of the bank details; empty where the platform can make none."""
    parts = ("nanovm/account/v1", entry.row.workspace.origin, entry.id, entry.details.former)
    key = sha256("\0".join(parts).encode()).hexdigest()
    try:
        if now_ms() - entry.row.created_ms >= gateway.KEY_LIFE_MS:  # none is older than it
            found = gateway.by_key("accounts", key, entry.row.created_ms)
            if found:
                return str(found["id"])
        metadata = {"supplier": entry.id, "workspace": entry.row.workspace.origin, "key": key}
        params: Any = {**ACCOUNT, "metadata": metadata}
        options: Any = {"idempotency_key": key}
        return str(gateway.configured().v1.accounts.create(params, options).id)
    except (stripe.APIConnectionError, stripe.RateLimitError) as error:
        text = "Stripe could not be reached for the supplier's account; trying again."
        raise TransientError("STR-007", text) from error
    except stripe.StripeError as error:
        if NO_CONNECT in str(error):
            return ""
        if error.http_status == 409 or (error.http_status or 500) >= 500:
            text = "Stripe did not make the supplier's account yet; trying again."
            raise TransientError("STR-007", text) from error
        text = f"Stripe made no account for the supplier ({error.code or error.http_status})."
        raise PermanentError("STR-009", f"{text} Nothing was paid.") from error


def _refused(text: str) -> PermanentError:
    return PermanentError("STR-008", f"{text} Nothing was sent to Stripe.")
