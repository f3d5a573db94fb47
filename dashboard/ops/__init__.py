"""Figures of the operation, and what the log and Stripe say differently."""
