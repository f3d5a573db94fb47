"""The live page, audit browsing, verification and erasure."""
