"""Why a document that was read is not paid: stable codes, and a sentence for people."""

from dataclasses import dataclass
from typing import Final

from reader.invoice import PayStatus

_ASK: Final = "if that is wrong, ask the supplier for a corrected invoice."


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The coarse status of a hold, and what the document says and what to do."""

    status: PayStatus
    text: str


def _info(says: str, do: str) -> Hold:
    return Hold(status="not_payable_info_only", text=f"{says} {do}")


def _unclear(says: str, do: str) -> Hold:
    return Hold(status="ambiguous", text=f"{says} {do}")


def _incomplete(says: str, do: str) -> Hold:
    return Hold(status="incomplete", text=f"{says} {do}")


HOLDS: Final[dict[str, Hold]] = {
    "settled": Hold(
        status="paid",
        text=f"The document says that it was paid already. Do not pay it again; {_ASK}",
    ),
    "debited": Hold(
        status="direct_debit",
        text="The document says that the supplier collects the amount from your account or card."
        f" Do not pay it as well; {_ASK}",
    ),
    "credit_note": Hold(
        status="correction",
        text="The document is a credit note or a correction. Do not pay it: set it off against"
        " the invoice that it names.",
    ),
    "negative_amount": Hold(
        status="negative",
        text="The amount due is below zero, so the supplier owes it to you. Do not pay it; set it"
        " off against another invoice.",
    ),
    "zero_balance": Hold(
        status="nothing_due",
        text="The amount due is zero. There is nothing to pay; file the document.",
    ),
    "self_billed": Hold(
        status="self_billed",
        text="The document is a self-billed invoice, which the buyer makes out for the supplier."
        " Pay it only from the ledger in which it was made out.",
    ),
    "information_only": _info(
        "The type code of the embedded data says that it is for information only.",
        "Do not pay it; ask the supplier for the invoice itself.",
    ),
    "no_amount": _incomplete(
        "No amount to pay was found on the document.", "If it is an invoice, point at the amount."
    ),
    "no_currency": _incomplete(
        "The amount has no currency that can be named with certainty.", "Say which one it is."
    ),
    "net_only": _incomplete(
        "The only total is without the tax that the document lists.",
        "Point at the amount to pay, or ask the supplier which one it is.",
    ),
    "two_amounts_due": _incomplete(
        "The document names several amounts due.",
        "Point at the one to pay, or ask the supplier which one it is.",
    ),
    "unclear_amount": _incomplete(
        "The sums of the document do not agree on one amount due.",
        "Check them, then point at the amount to pay.",
    ),
    "two_accounts": _unclear(
        "The document names several bank accounts to pay to.",
        "Ask the supplier, by a way that you know already, which one is right.",
    ),
    "no_seller": _incomplete(
        "The document does not say for certain who sent it.", "Point at the sender's name."
    ),
    "unclear_data": _unclear(
        "The embedded data contradicts itself.", "Ask the supplier for a correct file."
    ),
    "two_invoices": _unclear(
        "The file carries the data of several invoices.", "Ask for one file for each invoice."
    ),
    "page_and_data_differ": Hold(
        status="hybrid_mismatch",
        text="The page shows something else than the embedded data says. Do not pay it; ask the"
        " supplier for a correct file.",
    ),
    "hidden_text": Hold(
        status="hidden_text",
        text="The page does not show what its text says. Do not pay it; ask the supplier, by a way"
        " that you know already, for the invoice.",
    ),
    "scanned": Hold(
        status="scanned",
        text="The document is a scan, so its fields were read from a picture. Compare each field"
        " with the picture, correct what is wrong, and save them.",
    ),
    "unverified": Hold(
        status="unverified",
        text="The pixels of the page could not be compared with its text, because no recogniser is"
        " installed. Install it, or check the document by hand.",
    ),
}


def explained(code: str) -> str:
    """What the document says and what to do about it, for people.

    Raises:
        KeyError: there is no such code.
    """
    return HOLDS[code].text


def status_of(code: str | None) -> PayStatus:
    """The coarse status of a hold; ``open`` where there is none."""
    return "open" if code is None else HOLDS[code].status
