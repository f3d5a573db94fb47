"""Documentation, and what draws the pages of it that come from the code."""
