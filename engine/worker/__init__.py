"""Workers: drive a run from effect to effect under a lease."""
