"""When a run is attacked on a copy of the product."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a run is attacked: it owes ``step``, and no worker begins that for so long.

    ``paused``: it is paused before the step, and owes nothing.
    """

    step: str
    held_back_ms: int = 0
    paused: bool = False


MOMENTS: Mapping[str, Moment] = {
    "the document is to be read": Moment(step="extract", held_back_ms=2_000),
    "the model is to be asked": Moment(step="propose", held_back_ms=2_000),
    "the payment is to be made": Moment(step="charge", held_back_ms=2_000),
    "the payment is being made": Moment(step="charge"),
    "the run is paused before the payment": Moment(step="charge", paused=True),
}
