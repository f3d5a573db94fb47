"""Step 6: pay at Stripe, once, under the derived key."""
