"""The attacker's doors: the database, the queue, and data in transit."""
