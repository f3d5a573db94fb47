"""The engine: it runs any program, durably, and keeps the evidence of each decision."""
