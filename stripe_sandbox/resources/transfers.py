"""Transfers: the part of a destination charge that goes to a connected account."""

from stripe_sandbox.context import Context
from stripe_sandbox.errors import JsonObject
from stripe_sandbox.identifiers import object_id
from stripe_sandbox.resources.charges import destination_payment
from stripe_sandbox.resources.events import emit


def transfer_of(context: Context, charge: JsonObject, *, is_available: bool) -> JsonObject:
    """Move a destination charge's money to its destination, and return the transfer."""
    data = charge["transfer_data"]
    transfer: JsonObject = {
        "id": object_id("tr"),
        "object": "transfer",
        "amount": charge["amount"] if data["amount"] is None else data["amount"],
        "amount_reversed": 0,
        "balance_transaction": None,
        "created": context.now,
        "currency": charge["currency"],
        "description": None,
        "destination": data["destination"],
        "livemode": False,
        "metadata": {},
        "reversed": False,
        "source_transaction": charge["id"],
        "source_type": "card",
        "transfer_group": charge["transfer_group"],
    }
    transfer["reversals"] = {
        "object": "list",
        "data": [],
        "has_more": False,
        "total_count": 0,
        "url": f"/v1/transfers/{transfer['id']}/reversals",
    }
    payment = destination_payment(transfer)
    transfer["destination_payment"] = payment["id"]
    context.account.add(transfer)
    context.acting_for(data["destination"]).account.add(payment)
    _move(context, transfer, transfer["amount"], is_available=is_available, source=transfer["id"])
    emit(context, "transfer.created", transfer)
    return transfer


def reverse(
    context: Context, transfer: JsonObject, amount_minor: int, refund_id: str, *, is_available: bool
) -> str:
    """Take a part of a transfer back for a refund, and return the id of the reversal.

    The connected account's balance may fall below zero: it may have paid the money out.
    """
    connected = context.acting_for(transfer["destination"]).account
    reversal = {
        "id": object_id("trr"),
        "object": "transfer_reversal",
        "amount": amount_minor,
        "balance_transaction": None,
        "created": context.now,
        "currency": transfer["currency"],
        "destination_payment_refund": object_id("pyr"),
        "metadata": {},
        "source_refund": refund_id,
        "transfer": transfer["id"],
    }
    transfer["amount_reversed"] += amount_minor
    transfer["reversed"] = transfer["amount_reversed"] == transfer["amount"]
    transfer["reversals"]["data"].insert(0, reversal)
    transfer["reversals"]["total_count"] += 1
    context.account.replace(transfer)
    payment = connected.find("charge", transfer["destination_payment"])
    if payment is not None:
        payment["amount_refunded"] = transfer["amount_reversed"]
        payment["refunded"] = transfer["reversed"]
        connected.replace(payment)
    _move(context, transfer, -amount_minor, is_available=is_available, source=str(reversal["id"]))
    emit(context, "transfer.reversed", transfer)
    return str(reversal["id"])


def _move(
    context: Context, transfer: JsonObject, amount_minor: int, *, is_available: bool, source: str
) -> None:
    """Book an amount from the platform to the destination; what one loses the other gains."""
    currency = transfer["currency"]
    connected = context.acting_for(transfer["destination"]).account
    context.account.move(-amount_minor, currency, is_available=is_available, source=source)
    connected.move(amount_minor, currency, is_available=is_available, source=source)
