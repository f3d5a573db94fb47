"""The pages of a run: start, live view, commands."""
