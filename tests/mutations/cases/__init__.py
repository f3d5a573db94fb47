"""Tests for the survey to run; no name here is one that pytest finds by itself."""
