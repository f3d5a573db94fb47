"""What is told to the outside about the log: spans for a collector."""
