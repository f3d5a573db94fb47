"""Refunds: what of a charge is given back, and what of its transfer is taken back for it."""

from dataclasses import dataclass

from stripe_sandbox import parameters
from stripe_sandbox.context import Context
from stripe_sandbox.currencies import currency_named, shown
from stripe_sandbox.errors import ApiResult, JsonObject, invalid_request, missing
from stripe_sandbox.forms import Form
from stripe_sandbox.identifiers import object_id
from stripe_sandbox.resources import transfers
from stripe_sandbox.resources.events import emit
from stripe_sandbox.resources.expansion import expanded, expansions_of

_CREATE = (
    *("amount", "charge", "expand", "metadata", "payment_intent", "reason", "reverse_transfer"),
)
_UNSUPPORTED = ("currency", "customer", "instructions_email", "origin", "refund_application_fee")
_REASONS = ("duplicate", "fraudulent", "requested_by_customer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """A checked request for a refund, of all that is left where no amount is named."""

    charge: str | None
    payment_intent: str | None
    amount_minor: int | None
    reason: str | None
    reverse_transfer: bool
    metadata: dict[str, str]
    expand: tuple[str, ...]


def read_creation(form: Form) -> Creation:
    """Read POST /v1/refunds."""
    parameters.reject_unknown(form, _CREATE, _UNSUPPORTED)
    charge = parameters.text_of(form, "charge")
    payment_intent = parameters.text_of(form, "payment_intent")
    if charge is None and payment_intent is None:
        raise invalid_request(
            "One of the following params should be provided for this request: payment_intent or "
            "charge."
        )
    return Creation(
        charge=charge,
        payment_intent=payment_intent,
        amount_minor=parameters.integer_of(form, "amount", least=1),
        reason=parameters.choice_of(form, "reason", _REASONS),
        reverse_transfer=parameters.boolean_of(form, "reverse_transfer") or False,
        metadata=parameters.merged_metadata({}, parameters.metadata_of(form)),
        expand=expansions_of(form, "refund"),
    )


def create(context: Context, creation: Creation) -> ApiResult:
    """Give money back; with ``reverse_transfer`` the destination's share of it is taken back.

    Without it, the platform alone bears the refund, as Stripe documents for destination charges.
    """
    charge = _charge(context, creation)
    left = charge["amount"] - charge["amount_refunded"]
    amount_minor = left if creation.amount_minor is None else creation.amount_minor
    _check(charge, amount_minor, left)
    charge["amount_refunded"] += amount_minor
    charge["refunded"] = charge["amount_refunded"] == charge["amount"]
    refund = _new_refund(context, creation, charge, amount_minor)
    is_available = context.account.is_available(charge["id"])
    if creation.reverse_transfer:
        refund["transfer_reversal"] = _reversed(
            context, charge, refund["id"], is_available=is_available
        )
    context.account.move(
        -amount_minor, charge["currency"], is_available=is_available, source=refund["id"]
    )
    context.account.add(refund)
    context.account.replace(charge)
    emit(context, "refund.created", refund)
    emit(context, "charge.refunded", charge)
    return ApiResult(status=200, body=expanded(context.account, refund, creation.expand))


def _charge(context: Context, creation: Creation) -> JsonObject:
    """Return the charge that succeeded and is named, itself or through its PaymentIntent."""
    name = creation.charge
    if creation.payment_intent is not None:
        intent = context.account.find("payment_intent", creation.payment_intent)
        if intent is None:
            raise missing("payment_intent", creation.payment_intent, "payment_intent", 400)
        if intent["status"] != "succeeded":
            raise invalid_request(
                f"This PaymentIntent ({intent['id']}) does not have a successful charge to refund.",
                param="payment_intent",
            )
        if name not in (None, intent["latest_charge"]):
            raise missing("charge", str(name), "charge", 400)
        name = intent["latest_charge"]
    charge = context.account.find("charge", str(name))
    if charge is None:
        raise missing("charge", str(name), "charge", 400)
    return charge


def _check(charge: JsonObject, amount_minor: int, left: int) -> None:
    if charge["status"] != "succeeded" or charge["source_transfer"] is not None:
        raise invalid_request(f"Charge {charge['id']} cannot be refunded.", param="charge")
    if charge["disputed"]:
        raise invalid_request(
            f"Charge {charge['id']} has been charged back; cannot issue a refund.",
            code="charge_disputed",
        )
    if left == 0:
        raise invalid_request(
            f"Charge {charge['id']} has already been refunded.", code="charge_already_refunded"
        )
    if amount_minor > left:
        currency = currency_named(charge["currency"])
        raise invalid_request(
            f"Refund amount ({shown(amount_minor, currency)}) is greater than unrefunded amount on "
            f"charge ({shown(left, currency)})",
            param="amount",
        )


def _reversed(context: Context, charge: JsonObject, refund_id: str, *, is_available: bool) -> str:
    """Reverse the transfer in proportion to all that was refunded so far, to the last unit."""
    transfer = context.account.find("transfer", charge.get("transfer", ""))
    if transfer is None:
        raise invalid_request(
            f"Charge {charge['id']} does not have an associated transfer to reverse.",
            param="reverse_transfer",
        )
    total = transfer["amount"] * charge["amount_refunded"] // charge["amount"]
    amount_minor = max(0, total - transfer["amount_reversed"])
    return transfers.reverse(context, transfer, amount_minor, refund_id, is_available=is_available)


def _new_refund(
    context: Context, creation: Creation, charge: JsonObject, amount_minor: int
) -> JsonObject:
    refund: JsonObject = {
        **dict.fromkeys(_ALWAYS_NULL),
        "id": object_id("re"),
        "object": "refund",
        "amount": amount_minor,
        "charge": charge["id"],
        "created": context.now,
        "currency": charge["currency"],
        "metadata": creation.metadata,
        "payment_intent": charge["payment_intent"],
        "payment_method": charge["payment_method"],
        "reason": creation.reason,
        "status": "succeeded",
        "transfer_reversal": None,
    }
    if charge["payment_method_details"]["type"] == "card":
        card = {"reference_status": "pending", "reference_type": "acquirer_reference_number"}
        refund["destination_details"] = {"card": {**card, "type": "refund"}, "type": "card"}
    return refund


_ALWAYS_NULL = (
    *("balance_transaction", "customer", "customer_account", "receipt_number"),
    "source_transfer_reversal",
)
