"""Five injectors that attack the running system through the doors an attacker would have."""
