"""Attacks as pages show them: cards, verdicts, plans, the copy without guards."""
