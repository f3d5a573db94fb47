"""The steps of a run as an attack wanted them: where the run was, what was skipped or moved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.verdicts.cards import Shot

SKIPPED, CLAIMED, MOVED = "skipped", "claimed", "moved"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMark:
    """One step. ``number`` is its place in the run's own program; ``says`` is empty unmarked."""

    number: int
    name: str
    mark: str = ""
    says: str = ""
    here: bool = False  # the run was at this step when it was attacked


def steps_of(shot: Shot) -> tuple[StepMark, ...]:
    """The row of steps, from what the attack recorded; empty where it recorded no order."""
    own = shot.evidence.get("steps", shot.evidence.get("granted"))
    if not isinstance(own, list) or not own:
        return ()
    if shot.injector == "skip_step":
        return _skipped(own, shot.evidence)
    return _moved(own, shot.evidence) if shot.injector == "reorder_steps" else ()


def _skipped(own: Sequence[str], evidence: Mapping[str, Any]) -> tuple[StepMark, ...]:
    """Skipped are the step that the run was at, and all between it and the claimed one."""
    claimed, at = evidence["proposed"]["step"], evidence["at_step"]
    jumped = own[own.index(at) if at in own else 0 : own.index(claimed)]
    forged = "forged_key" in evidence
    says = {
        **dict.fromkeys(jumped, (SKIPPED, "skipped by the attack")),
        claimed: (CLAIMED, "forged by the attack" if forged else "reported as done by the attack"),
    }
    return tuple(_marked(own, name, at, *says.get(name, ("", ""))) for name in own)


def _moved(own: Sequence[str], evidence: Mapping[str, Any]) -> tuple[StepMark, ...]:
    """In the order that the attack wanted; moved are the steps that have another place there."""
    wanted = [*reversed(own)] if "results_brought" in evidence else evidence["proposed"]
    at = evidence.get("at_step", "")
    return tuple(
        _marked(own, name, at)
        if name == own[place]
        else _marked(own, name, at, MOVED, f"moved to place {place + 1}")
        for place, name in enumerate(wanted)
    )


def _marked(own: Sequence[str], name: str, at: str, mark: str = "", says: str = "") -> StepMark:
    number = own.index(name) + 1
    return StepMark(number=number, name=name, mark=mark, says=says, here=name == at)
