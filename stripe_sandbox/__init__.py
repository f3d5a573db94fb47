"""A local, stateful counterpart of Stripe's API for one machine: it knows nothing of its users."""

API_VERSION = "2026-08-26.dahlia"
"""The version of Stripe's shapes that every answer has, whatever version was asked for."""
