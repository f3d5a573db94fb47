"""What becomes of a payment after its run: webhooks are hints, Stripe's own record is read."""
