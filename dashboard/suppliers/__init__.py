"""The supplier register: listed, added, changed, blocked, imported, exported and erased."""
