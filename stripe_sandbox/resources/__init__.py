"""The objects of Stripe that the counterpart keeps, and what each of them answers."""
