"""What the tests of engine, invoices and reader share."""
