"""A data folder in which a process is killed again and again: a program of its own."""
