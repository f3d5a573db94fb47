"""The same attack on a copy of the product with guards removed."""
