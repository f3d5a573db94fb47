"""What the attacks of the gallery are made of: their runs, invoices and outcomes."""
