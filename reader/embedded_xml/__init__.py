"""Invoices as structured XML inside a PDF: CII and UBL."""
