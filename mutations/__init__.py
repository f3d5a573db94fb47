"""The guards of the product, each with the change that removes it: data, and what runs with it.

Nothing in the product imports this package. It changes no file: a mutation lives in the one
process that was started for it (``python -m mutations ID… -- MODULE …``), and ends with it.
"""
