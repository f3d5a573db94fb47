"""Charges: the record of one attempt to take money."""

from stripe_sandbox.errors import JsonObject
from stripe_sandbox.identifiers import charge_id, object_id
from stripe_sandbox.resources.cards import Decline, empty_billing_details


def new_charge(intent: JsonObject, method: JsonObject, details: JsonObject, now: int) -> JsonObject:
    """Return the charge of an attempt of which nothing came yet: it is pending."""
    transfer_data = intent["transfer_data"]
    if transfer_data is not None:
        transfer_data = {"amount": None, **transfer_data}
    return {
        **_charge(charge_id(), intent["amount"], intent["currency"], now),
        "description": intent["description"],
        "metadata": intent["metadata"],
        "on_behalf_of": intent["on_behalf_of"],
        "payment_intent": intent["id"],
        "payment_method": method["id"],
        "payment_method_details": details,
        "receipt_email": intent["receipt_email"],
        "statement_descriptor_suffix": intent["statement_descriptor_suffix"],
        "transfer_data": transfer_data,
        "transfer_group": intent["transfer_group"] or (transfer_data and f"group_{intent['id']}"),
    }


def destination_payment(transfer: JsonObject) -> JsonObject:
    """Return what a transfer is in the records of the account that it goes to."""
    payment = _charge(
        object_id("py"), transfer["amount"], transfer["currency"], transfer["created"]
    )
    details = {"stripe_account": {}, "type": "stripe_account"}
    return succeeded({**payment, "payment_method_details": details}) | {
        "source_transfer": transfer["id"]
    }


def succeeded(charge: JsonObject) -> JsonObject:
    """Return the charge with its money taken."""
    return charge | {
        "amount_captured": charge["amount"],
        "captured": True,
        "outcome": _outcome(None),
        "paid": True,
        "status": "succeeded",
    }


def failed(charge: JsonObject, decline: Decline) -> JsonObject:
    """Return the charge as it was refused."""
    return charge | {
        "failure_code": decline.code,
        "failure_message": decline.message,
        "outcome": _outcome(decline),
        "status": "failed",
    }


def _charge(name: str, amount_minor: int, currency: str, now: int) -> JsonObject:
    return {
        **dict.fromkeys(_NULL_AT_FIRST),
        "id": name,
        "object": "charge",
        "amount": amount_minor,
        "amount_captured": 0,
        "amount_refunded": 0,
        "billing_details": empty_billing_details(),
        "captured": False,
        "created": now,
        "currency": currency,
        "disputed": False,
        "fraud_details": {},
        "livemode": False,
        "metadata": {},
        "paid": False,
        "refunded": False,
        "status": "pending",
    }


_NULL_AT_FIRST = (
    *("application", "application_fee", "application_fee_amount", "balance_transaction"),
    *("calculated_statement_descriptor", "customer", "description", "failure_balance_transaction"),
    *("failure_code", "failure_message", "on_behalf_of", "outcome", "payment_intent"),
    *("payment_method", "receipt_email", "receipt_number", "receipt_url", "review", "shipping"),
    *("source_transfer", "statement_descriptor", "statement_descriptor_suffix", "transfer_data"),
    "transfer_group",
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
