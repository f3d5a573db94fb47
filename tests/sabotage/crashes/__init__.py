"""Tests of the crash loop."""
