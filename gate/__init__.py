"""The gate: what agents that others wrote call, each call a run of the operator's program."""
