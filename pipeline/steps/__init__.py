"""The seven steps of an invoice, one file or folder each, what a person says of it, and codes."""
