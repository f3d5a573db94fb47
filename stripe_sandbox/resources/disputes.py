"""Disputes: a charge that the owner of the card contests (docs.stripe.com/disputes)."""

from stripe_sandbox.context import Context
from stripe_sandbox.errors import JsonObject
from stripe_sandbox.identifiers import object_id
from stripe_sandbox.resources.cards import Card
from stripe_sandbox.resources.events import emit

EVIDENCE_S = 7 * 24 * 60 * 60
"""How long evidence may be handed in; Stripe's page names 7 to 21 days, by card network."""
_EVIDENCE = (
    *("access_activity_log", "billing_address", "cancellation_policy"),
    *("cancellation_policy_disclosure", "cancellation_rebuttal", "customer_communication"),
    *("customer_email_address", "customer_name", "customer_purchase_ip", "customer_signature"),
    *("duplicate_charge_documentation", "duplicate_charge_explanation", "duplicate_charge_id"),
    *("product_description", "receipt", "refund_policy", "refund_policy_disclosure"),
    *("refund_refusal_explanation", "service_date", "service_documentation", "shipping_address"),
    *("shipping_carrier", "shipping_date", "shipping_documentation", "shipping_tracking_number"),
    *("uncategorized_file", "uncategorized_text"),
)


def contest(context: Context, charge: JsonObject, card: Card) -> None:
    """Dispute a charge that succeeded; its money is withdrawn, but for an inquiry.

    The platform bears the dispute of a destination charge; the transfer stays.
    """
    dispute = _new_dispute(context, charge, card)
    charge["disputed"] = not card.is_inquiry
    context.account.replace(charge)
    context.account.add(dispute)
    emit(context, "charge.dispute.created", dispute)
    if not card.is_inquiry:
        is_available = context.account.is_available(charge["id"])
        context.account.move(
            -charge["amount"], charge["currency"], is_available=is_available, source=dispute["id"]
        )
        emit(context, "charge.dispute.funds_withdrawn", dispute)


def _new_dispute(context: Context, charge: JsonObject, card: Card) -> JsonObject:
    return {
        "id": object_id("du"),
        "object": "dispute",
        "amount": charge["amount"],
        "balance_transactions": [],
        "charge": charge["id"],
        "created": context.now,
        "currency": charge["currency"],
        "enhanced_eligibility_types": [],
        "evidence": {**dict.fromkeys(_EVIDENCE), "enhanced_evidence": {}},
        "evidence_details": {
            "due_by": context.now + EVIDENCE_S,
            "enhanced_eligibility": {},
            "has_evidence": False,
            "past_due": False,
            "submission_count": 0,
        },
        "is_charge_refundable": card.is_inquiry,
        "livemode": False,
        "metadata": {},
        "payment_intent": charge["payment_intent"],
        "payment_method_details": {
            "card": {
                "brand": card.brand,
                "case_type": "inquiry" if card.is_inquiry else "chargeback",
                "network": card.brand,
                "network_reason_code": None,
            },
            "type": "card",
        },
        "reason": card.dispute,
        "status": "warning_needs_response" if card.is_inquiry else "needs_response",
    }
