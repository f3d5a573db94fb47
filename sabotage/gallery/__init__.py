"""The gallery: nine more attacks in the same shape, each with a stage of its own."""

from collections.abc import Mapping
from types import MappingProxyType

from sabotage.gallery import (
    colluding_agents,
    confused_deputy,
    drained_budget,
    forged_warrant,
    poisoned_invoice,
    restored_snapshot,
    resurrected_pii,
    split_limit,
    widened_grant,
)
from sabotage.gallery.scenario import Exhibit
from sabotage.kit.injector import Injector

EXHIBITS: Mapping[str, Exhibit] = MappingProxyType(
    {
        module.EXHIBIT.name: module.EXHIBIT
        for module in (
            split_limit,
            forged_warrant,
            widened_grant,
            confused_deputy,
            resurrected_pii,
            restored_snapshot,
            drained_budget,
            poisoned_invoice,
            colluding_agents,
        )
    }
)


def attack_of(name: str) -> Injector | None:
    """The injector of that name, if the gallery has it."""
    exhibit = EXHIBITS.get(name)
    return exhibit.injector if exhibit is not None else None
