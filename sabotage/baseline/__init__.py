"""The baseline: an ordinary agent loop, prompt → JSON → dispatch, on its own Stripe account.

It shows what the same attack does without guards. It shares the tools with the runtime and
nothing else: the PDF reader, the Stripe client, the built-in models.
"""
