"""The idempotency key and the tool of a step's effect, derived as an attacker can derive them."""

from nanovm_core.core.fsm.effects import effect_key
from nanovm_core.core.messages import RunId, Snapshot
from pipeline.application import current


def tool_of(name: str) -> str:
    """The tool of a step; of the one that does what was authorized, the tool it may be."""
    steps = current().steps
    if steps[name].call:
        return next(step.accepts[0] for step in steps.values() if step.accepts)
    return steps[name].tool


def key_of(run_id: str, name: str, attempt: int = 1) -> str:
    """The idempotency key of a step's effect at this attempt."""
    now = Snapshot(run=RunId(run_id), program="", policy="", state="", step=name)
    return effect_key(now, name, tool_of(name), attempt)
