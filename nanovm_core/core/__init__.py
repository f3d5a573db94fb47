"""The decision: a run's value, its events, and what each transition answers."""
