"""What a visitor takes from an attack: a curl command, a breach report."""
