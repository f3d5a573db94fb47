"""What the pages read: frozen views over the tables, never the rows themselves."""
