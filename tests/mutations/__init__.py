"""Tests of the list of mutations and of what runs with it."""
