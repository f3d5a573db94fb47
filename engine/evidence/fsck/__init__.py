"""fsck: recompute everything that is stored. It writes nothing."""
