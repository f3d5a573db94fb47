"""Evidence: checkpoints, bundles, the witness, restore and fsck."""
