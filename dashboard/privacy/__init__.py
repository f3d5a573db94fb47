"""The inventory of personal data, erasure and certificates."""
