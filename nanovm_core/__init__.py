"""The kernel: values in, values out; no clock, no dice, no disk."""
