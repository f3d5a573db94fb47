"""The control: an ordinary agent loop, prompt → JSON → dispatch, on a Stripe account of its own.

It stands beside the runtime to show what the same attack does where nothing guards. It shares
the tools with the runtime and nothing else: how a document is read, how Stripe is spoken to, the
built-in models.
"""
