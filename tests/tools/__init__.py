"""Tests of what builds, tests and measures the product; most run in the soak alone."""
