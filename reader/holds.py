"""Why a document that was read is not paid: stable codes, and a sentence for people."""

from typing import Final, NamedTuple

from reader.invoice import PayStatus

_ASK: Final = "if that is wrong, ask the supplier for a corrected invoice."
_CORRECT_FILE: Final = "Ask the supplier for a correct file."


class Hold(NamedTuple):
    """The coarse status of a hold, and what the document says and what to do."""

    status: PayStatus
    text: str


# EN 16931, 6.4.2: what a rule compares, where it does not hold.
_RULES: Final = {
    "br_co_10": "the sum of the lines is not what the lines add up to",
    "br_co_11": "the sum of the allowances is not what the allowances add up to",
    "br_co_12": "the sum of the charges is not what the charges add up to",
    "br_co_13": "the total without tax is not the lines less the allowances plus the charges",
    "br_co_14": "the tax is not what the taxes of all rates add up to",
    "br_co_15": "the total with tax is not the total without tax plus the tax",
    "br_co_16": "the amount due is not the total with tax less what was paid plus the rounding",
    "br_co_17": "the tax of a rate is not its base times the rate",
}
_TEXTS: Final = {
    "settled": f"The document says that it was paid already. Do not pay it again; {_ASK}",
    "debited": "The document says that the supplier collects the amount from your account or card."
    f" Do not pay it as well; {_ASK}",
    "credit_note": "The document is a credit note or a correction. Do not pay it: set it off"
    " against the invoice that it names.",
    "negative_amount": "The amount due is below zero, so the supplier owes it to you. Do not pay"
    " it; set it off against another invoice.",
    "zero_balance": "The amount due is zero. There is nothing to pay; file the document.",
    "self_billed": "The document is a self-billed invoice, which the buyer makes out for the"
    " supplier. Pay it only from the ledger in which it was made out.",
    "information_only": "The type code of the invoice data says that it is for information only."
    " Do not pay it; ask the supplier for the invoice itself.",
    "copy": "The invoice data says that it is a copy. Do not pay it.",
    "page_and_data_differ": "The page shows something else than the invoice data says. Do not pay"
    " it; ask the supplier for a correct file.",
    "hidden_text": "The page does not show what its text says. Do not pay it; ask the supplier, by"
    " a way that you know already, for the invoice.",
    "scanned": "The document is a scan, so its fields were read from a picture. Compare each field"
    " with the picture, correct what is wrong, and save them.",
    "unverified": "The pixels of the page could not be compared with its text, because no"
    " recogniser is installed. Install it, or check the document by hand.",
    "no_amount": "No amount to pay was found on the document. If it is an invoice, point at it.",
    "no_currency": "The amount has no currency that can be named with certainty. Say which it is.",
    "net_only": "The only total is without the tax that the document lists. Point at the amount to"
    " pay, or ask the supplier which one it is.",
    "two_amounts_due": "The document names several amounts due. Point at the one to pay, or ask the"
    " supplier which one it is.",
    "unclear_amount": "The sums of the document do not agree on one amount due. Check them, then"
    " point at the amount to pay.",
    "two_readings": "The separator in the amount due can be one of thousands or of decimals, and"
    " no other amount says which; the lower amount is shown. Point at the one to pay, or ask.",
    "two_accounts": "The document names several bank accounts to pay to. Ask the supplier, by a"
    " way that you know already, which one is right.",
    "no_seller": "The document does not say for certain who sent it. Point at the sender's name.",
    "unclear_data": f"The invoice data contradicts itself. {_CORRECT_FILE}",
    "lacking_data": "The invoice data has no number, issue date, lines, net, taxes or total, or it"
    f" repeats one that must be unique. {_CORRECT_FILE}",
    "negative_prepaid": "The invoice data says that less than nothing was paid in advance."
    f" {_CORRECT_FILE}",
    "two_invoices": "The file carries several invoices. Ask for one file for each invoice.",
    **{
        code: f"The sums of the invoice data break rule {code.upper().replace('_', '-')} of EN"
        f" 16931: {broken}. {_CORRECT_FILE}"
        for code, broken in _RULES.items()
    },
}
_POINTED: Final = (  # what a person can point at
    *("no_amount", "no_currency", "net_only", "two_amounts_due", "unclear_amount"),
    *("two_readings", "no_seller"),
)
_STATUS: Final[dict[str, PayStatus]] = {  # of all others, ambiguous
    "settled": "paid",
    "debited": "direct_debit",
    "credit_note": "correction",
    "negative_amount": "negative",
    "zero_balance": "nothing_due",
    "self_billed": "self_billed",
    "information_only": "not_payable_info_only",
    "copy": "not_payable_info_only",
    "page_and_data_differ": "hybrid_mismatch",
    "hidden_text": "hidden_text",
    "scanned": "scanned",
    "unverified": "unverified",
    **dict.fromkeys(_POINTED, "incomplete"),
}
HOLDS: Final[dict[str, Hold]] = {
    code: Hold(_STATUS.get(code, "ambiguous"), text) for code, text in _TEXTS.items()
}


def explained(code: object) -> str:
    """What the document says and what to do about it, for people; empty where it is no code."""
    found = HOLDS.get(str(code))
    return found.text if found else ""


def status_of(code: str | None) -> PayStatus:
    """The coarse status of a hold; ``open`` where there is none."""
    return "open" if code is None else HOLDS[code].status
