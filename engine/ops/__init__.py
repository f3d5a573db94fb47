"""Operations: child processes, commands, error messages, the schema."""
