"""A refund desk as an application of its own, beside the invoices and without them."""
