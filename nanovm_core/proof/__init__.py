"""The log's Merkle tree, signed notes and checkpoints."""
