"""Django's backend of SQLite, whose transactions share the write lock among processes."""
