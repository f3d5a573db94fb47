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
    "proposal": "Model's proposal",
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
}
