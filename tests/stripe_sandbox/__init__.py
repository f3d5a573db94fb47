"""Black-box tests of the local Stripe counterpart, written from what Stripe publishes."""
