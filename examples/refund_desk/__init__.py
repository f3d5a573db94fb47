"""A refund desk: orders are looked up, a model proposes a refund, the program decides."""
