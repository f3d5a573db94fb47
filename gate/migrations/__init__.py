"""The migrations of the gate."""
