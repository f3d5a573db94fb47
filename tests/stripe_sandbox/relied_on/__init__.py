"""What the product relies on at Stripe."""
