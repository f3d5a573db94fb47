"""Invoices as the text of their pages: labels, amounts, dates, parties."""
