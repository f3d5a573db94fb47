"""The rows: SQL, runs, logs, trees, outbox, leases and budgets."""
