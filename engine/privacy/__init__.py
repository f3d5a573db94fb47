"""Erasure, retention, and the garbage collection of secrets."""
