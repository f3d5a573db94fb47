"""The gate: calls of agents from outside."""
