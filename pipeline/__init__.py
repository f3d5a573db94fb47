"""The pipeline: a PDF invoice becomes a payment in seven steps."""
