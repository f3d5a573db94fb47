"""Attacks planned before a run starts."""
