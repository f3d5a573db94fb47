"""Benchmarks of the kernel against comparable packages: paired ratios from one run."""
