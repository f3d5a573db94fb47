"""Runs: create, decide and commit. The only writer of runs."""
