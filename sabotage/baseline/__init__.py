"""The baselines: an ordinary and a careful agent, each on a Stripe account of its own.

Both are one loop, prompt → JSON → dispatch, with other checks. They show what the same attack
does without nanovm. They share the tools with the runtime and nothing else: the PDF reader, the
Stripe client, the built-in models.
"""
