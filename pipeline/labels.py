"""What people call the slots of an invoice's run, and what the program calls its payment."""

CHARGE = "stripe.create_payment_intent"
NO_REFERENCE = "none: the invoice names no reference"  # what is sealed in place of one

LABELS = {
    "invoice_number": "Invoice number",
    "seller": "Seller",
    "seller_address": "Seller's address",
    "seller_email": "Seller's e-mail",
    "payee": "Payee",
    "iban": "IBAN",
    "buyer": "Buyer",
    "buyer_address": "Buyer's address",
    "memo": "Memo",
    "reference": "Supplier's reference",
    "notes": "Notes in the document",
    "advice_to": "Advice goes to",
    "advice_subject": "Advice subject",
    "advice_body": "Advice text",
    "file_name": "File name",
    "document": "Uploaded document",
    "crops": "Pictures of places in the document",
    "proposal": "Proposed call",
    "destination": "Payee's account at Stripe",
    "payment": "Stripe object",
    "assessment": "Advisor's words",
    "staging": "Staging (between two steps)",
    "pointed": "What a person said of the invoice",
}
CLEAR = {
    "total_due": "Total due",
    "currency": "Currency",
    "issue_date": "Issued",
    "due_date": "Due",
    "pay_status": "Payment status",
    "source": "Read from",
    "pages": "Pages",
    "size_bytes": "Size in bytes",
    "payment_method": "Test card",
}
ALL = {
    **LABELS,
    **CLEAR,
    "to": "To",
    "subject": "Subject",
    "body": "Text",
    "has_iban": "Has an IBAN",
    "payment_status": "Payment status",
    "payee_confirmed": "Stripe names the payee's account",
    "advice": "Advice",
    "amount_minor": "Amount",
    "advisor": "Advisor",
    "risk_score": "Advised risk, 0 to 100",
    "risk_kind": "What the advice is about",
    "risk_source": "Source of the advice",
    "pay_status": "Payment status of the invoice",
    "details": "Supplier's details (name, tax id, IBAN, e-mail)",
}
_AT_STRIPE = (
    "It is Stripe's record, which nanovm cannot delete. Accounting law keeps records of payments"
    " (Art. 17(3)(b) GDPR). Ask Stripe, or the operator, about it."
)
_ENTRY = "It is no value of this run, and other invoices are paid by it. Erase it by itself."
WHY_KEPT = {
    "envelopes": "They hold references and keyed commitments, and no personal value. They prove "
    "what was paid and what was erased (Art. 17(3)(b) and (e) GDPR).",
    "amounts, dates and rule codes": "They name nobody. Accounting law keeps records of payments "
    "(Art. 17(3)(b) GDPR).",
    "the supplier's entry in the register: erase the supplier too": _ENTRY,
    "the register row without its details: code, state, times, who registered it": "It names "
    "nobody, and events of the log refer to it.",
    "the values of this supplier in runs: erase those runs too": "Each run is erased by itself; "
    "this erasure was of the register alone.",
    "payment records and the connected account at Stripe": _AT_STRIPE,
    "runs that were not read yet or name it in another way": "Nothing finds them. Where "
    "the details cannot be read, runs that only name it were not looked for either.",
    "the payment record at Stripe": _AT_STRIPE,
    "the payment record at Stripe, which names the supplier's account there": _AT_STRIPE,
    "the payment record at Stripe, which does not know the payee": _AT_STRIPE,
}
