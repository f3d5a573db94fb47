"""The seven steps of an invoice, one file or folder each."""
