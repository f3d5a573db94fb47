"""Payouts: money sent from an account's balance to its bank, and called back while pending."""

import hashlib
from dataclasses import dataclass

from stripe_sandbox import parameters
from stripe_sandbox.context import Context
from stripe_sandbox.currencies import Currency, currency_named
from stripe_sandbox.errors import ApiError, ApiResult, JsonObject, invalid_request, missing
from stripe_sandbox.forms import Form
from stripe_sandbox.identifiers import object_id
from stripe_sandbox.resources.balances import amount_in
from stripe_sandbox.resources.events import emit
from stripe_sandbox.resources.expansion import expanded, expansions_of
from stripe_sandbox.store import Account

ARRIVES_AFTER_S = 2 * 24 * 60 * 60
DESCRIPTOR_MAX = 22
_CREATE = (
    *("amount", "currency", "description", "destination", "expand", "metadata", "method"),
    *("source_type", "statement_descriptor"),
)
_CREATE_UNSUPPORTED = ("payout_method",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """A checked request for a payout."""

    amount_minor: int
    currency: Currency
    description: str | None
    destination: str | None
    statement_descriptor: str | None
    metadata: dict[str, str]
    expand: tuple[str, ...]


def read_creation(form: Form) -> Creation:
    """Read POST /v1/payouts; raises ApiError for what Stripe would not execute."""
    parameters.reject_unknown(form, _CREATE, _CREATE_UNSUPPORTED)
    for name in ("amount", "currency"):
        parameters.required(form, name)
    if parameters.choice_of(form, "method", ("standard", "instant")) == "instant":
        raise invalid_request(
            "The local Stripe counterpart does not support method 'instant' yet.", param="method"
        )
    if parameters.choice_of(form, "source_type", ("bank_account", "card", "fpx")) not in (
        None,
        "card",
    ):
        raise _insufficient()  # cards alone bring money in here
    return Creation(
        amount_minor=parameters.integer_of(form, "amount", least=1) or 0,
        currency=currency_named(parameters.text_of(form, "currency") or ""),
        description=parameters.text_of(form, "description"),
        destination=parameters.text_of(form, "destination"),
        statement_descriptor=parameters.text_of(
            form, "statement_descriptor", length_max=DESCRIPTOR_MAX
        ),
        metadata=parameters.merged_metadata({}, parameters.metadata_of(form)),
        expand=expansions_of(form, "payout"),
    )


def create(context: Context, creation: Creation) -> ApiResult:
    """Pay out what the available balance covers; the payout is pending, and stays so here."""
    account, bank = context.account, _bank(context.account)
    if creation.destination not in (None, bank):
        raise missing("external account", str(creation.destination), "destination", 400)
    if creation.amount_minor > amount_in(account, creation.currency.code):
        raise _insufficient()
    payout = _new_payout(context, creation, bank)
    account.add(payout)
    _move(account, payout, -payout["amount"])
    emit(context, "payout.created", payout)
    return ApiResult(status=200, body=expanded(account, payout, creation.expand))


def cancel(context: Context, name: str, expand: tuple[str, ...]) -> ApiResult:
    """Call a pending payout back; its money is in the balance again."""
    payout = _pending(context, name)
    payout["status"] = "canceled"
    _move(context.account, payout, payout["amount"])
    context.account.replace(payout)
    emit(context, "payout.canceled", payout)
    return ApiResult(status=200, body=expanded(context.account, payout, expand))


def settle(context: Context, name: str, *, succeeded: bool) -> ApiResult:
    """End a pending payout: the bank took it, or gave it back as it does for a closed account."""
    payout = _pending(context, name)
    if succeeded:
        payout["status"] = "paid"
    else:
        payout |= {
            "failure_code": "account_closed",
            "failure_message": "The bank account has been closed.",
            "status": "failed",
        }
        _move(context.account, payout, payout["amount"])
    context.account.replace(payout)
    emit(context, "payout.paid" if succeeded else "payout.failed", payout)
    return ApiResult(status=200, body=payout)


def no_such_payout(name: str) -> ApiError:
    """Return Stripe's 404 for the payout that a path names."""
    return missing("payout", name, "payout", 404)


def _pending(context: Context, name: str) -> JsonObject:
    payout = context.account.find("payout", name)
    if payout is None:
        raise no_such_payout(name)
    if payout["status"] != "pending":
        raise invalid_request(
            "Payouts can only be canceled if they are in pending state; this one is "
            f"{payout['status']}."
        )
    return payout


def _move(account: Account, payout: JsonObject, amount_minor: int) -> None:
    account.move(amount_minor, payout["currency"], is_available=True, source=payout["id"])


def _new_payout(context: Context, creation: Creation, bank: str) -> JsonObject:
    return {
        "id": object_id("po"),
        "object": "payout",
        **dict.fromkeys(_ALWAYS_NULL),
        "amount": creation.amount_minor,
        "arrival_date": context.now + ARRIVES_AFTER_S,
        "automatic": False,
        "created": context.now,
        "currency": creation.currency.code,
        "description": creation.description,
        "destination": bank,
        "livemode": False,
        "metadata": creation.metadata,
        "method": "standard",
        "reconciliation_status": "not_applicable",
        "source_type": "card",
        "statement_descriptor": creation.statement_descriptor,
        "status": "pending",
        "trace_id": {"status": "pending", "value": None},
        "type": "bank_account",
    }


_ALWAYS_NULL = (
    *("application_fee", "application_fee_amount", "balance_transaction"),
    *("failure_balance_transaction", "failure_code", "failure_message", "original_payout"),
    *("payout_method", "reversed_by"),
)


def _bank(account: Account) -> str:
    """The id of the one bank account that an account has."""
    return "ba_1" + hashlib.sha256(account.name.encode()).hexdigest()[:23]


def _insufficient() -> ApiError:
    return invalid_request(
        "You have insufficient available funds in your Stripe account. Try adding funds directly "
        "to your available balance by creating Charges using the 4000000000000077 test card. See: "
        "https://stripe.com/docs/testing#available-balance",
        code="balance_insufficient",
    )
