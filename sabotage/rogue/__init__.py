"""A bank, the gate before it and a hostile client, in a data folder of their own: a program."""
