"""Charges: the record of one attempt to take money from a card."""

from stripe_sandbox.errors import JsonObject
from stripe_sandbox.identifiers import charge_id
from stripe_sandbox.resources.cards import (
    Card,
    Decline,
    empty_billing_details,
    payment_method_details,
)


def new_charge(
    intent: JsonObject,
    payment_method: JsonObject,
    card: Card,
    decline: Decline | None,
    now: int,
) -> JsonObject:
    """Return the charge of one attempt: succeeded, or failed where there is a ``decline``."""
    paid = decline is None
    return {
        **dict.fromkeys(_ALWAYS_NULL),
        "id": charge_id(),
        "object": "charge",
        "amount": intent["amount"],
        "amount_captured": intent["amount"] if paid else 0,
        "amount_refunded": 0,
        "billing_details": empty_billing_details(),
        "captured": paid,
        "created": now,
        "currency": intent["currency"],
        "description": intent["description"],
        "disputed": False,
        "failure_code": None if decline is None else decline.code,
        "failure_message": None if decline is None else decline.message,
        "fraud_details": {},
        "livemode": False,
        "metadata": intent["metadata"],
        "outcome": _outcome(decline),
        "paid": paid,
        "payment_intent": intent["id"],
        "payment_method": payment_method["id"],
        "payment_method_details": payment_method_details(card, intent["amount"], now),
        "receipt_email": intent["receipt_email"],
        "refunded": False,
        "statement_descriptor_suffix": intent["statement_descriptor_suffix"],
        "status": "succeeded" if paid else "failed",
    }


_ALWAYS_NULL = (
    *("application", "application_fee", "application_fee_amount", "balance_transaction"),
    *("calculated_statement_descriptor", "customer", "failure_balance_transaction"),
    *("on_behalf_of", "receipt_number", "receipt_url", "review", "shipping", "source_transfer"),
    *("statement_descriptor", "transfer_data", "transfer_group"),
)


def _outcome(decline: Decline | None) -> JsonObject:
    return {
        "advice_code": None if decline is None else decline.advice_code,
        "network_advice_code": None,
        "network_decline_code": None,
        "network_status": "approved_by_network" if decline is None else "declined_by_network",
        "reason": None if decline is None else decline.decline_code,
        "risk_level": "normal",
        "risk_score": 0,
        "seller_message": _seller_message(decline),
        "type": "authorized" if decline is None else "issuer_declined",
    }


def _seller_message(decline: Decline | None) -> str:
    if decline is None:
        return "Payment complete."
    if decline.decline_code == "generic_decline":
        return "The bank did not return any further details with this decline."
    return f"The bank returned the decline code `{decline.decline_code}`."
