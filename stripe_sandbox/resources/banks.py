"""The test bank account whose debits stay in ``processing`` (ACH Direct Debit)."""

import hashlib

from stripe_sandbox.errors import JsonObject
from stripe_sandbox.identifiers import object_id
from stripe_sandbox.resources.cards import Decline, empty_billing_details

PROCESSING = "pm_usBankAccount_processing"
DEBIT_RETURNED = Decline(
    code="payment_intent_payment_attempt_failed",
    decline_code="payment_intent_payment_attempt_failed",
    message="The payment failed.",
)


def new_payment_method(now: int) -> JsonObject:
    """Return a PaymentMethod of its own for one use of the test bank account."""
    return {
        "id": object_id("pm"),
        "object": "payment_method",
        "allow_redisplay": "unspecified",
        "billing_details": empty_billing_details(),
        "created": now,
        "customer": None,
        "customer_account": None,
        "livemode": False,
        "metadata": {},
        "type": "us_bank_account",
        "us_bank_account": {
            **_facts(),
            "financial_connections_account": None,
            "networks": {"preferred": "ach", "supported": ["ach"]},
            "status_details": {},
        },
    }


def payment_method_details() -> JsonObject:
    """Return what a charge says about the bank account that it debits."""
    return {"type": "us_bank_account", "us_bank_account": {**_facts(), "payment_reference": None}}


def _facts() -> JsonObject:
    return {
        "account_holder_type": "individual",
        "account_type": "checking",
        "bank_name": "STRIPE TEST BANK",
        "fingerprint": hashlib.sha256(PROCESSING.encode()).hexdigest()[:16],
        "last4": "0009",
        "routing_number": "110000000",
    }
