"""The pages of attacks: cards, verdicts, plans."""
