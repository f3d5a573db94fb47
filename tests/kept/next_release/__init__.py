"""The next release, as far as a data folder can tell: this code, a migration more."""
