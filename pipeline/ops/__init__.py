"""Operations of the invoices: the Stripe counterpart, what Stripe is asked at a start."""
