"""Rooms of the pages: the inbox, all that waits for a person."""
