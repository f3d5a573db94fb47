"""What a run may do: tools and grants, policy rules, budgets, and where values come from."""
