"""What the pipeline tells whoever listens: ids, never values."""

from django.dispatch import Signal

# Sent after the commit, with run_id: str, workspace_id: str and length: int (envelopes so far).
run_changed = Signal()
