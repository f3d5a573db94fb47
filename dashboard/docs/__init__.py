"""The policy in force, the rules, and the caveats."""
