"""Programs that are not about invoices, and need the kernel alone."""
