"""What the logs say was paid, beside what Stripe's own list says; it moves no money."""
