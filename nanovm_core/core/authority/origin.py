"""Origins: where each slot's value comes from. Nothing raises one but a named endorsement.

A small, decidable part of information-flow control; ``docs/origins.md`` says what it covers.
"""

from collections.abc import Iterable, Mapping

ADVISOR, DOCUMENT, PERSON = "advisor", "document", "person"
REGISTER, PROGRAM = "register", "program"
ORIGINS = (ADVISOR, DOCUMENT, PERSON, REGISTER, PROGRAM)  # the least trusted first

Origins = Mapping[str, str]  # slot → origin; a slot without one is of a DOCUMENT


def of(origins: Origins, slot: str) -> str:
    """The origin of a slot's value."""
    return origins.get(slot, DOCUMENT)


def meets(found: str, demanded: str) -> bool:
    """Whether an origin is trusted as much as the demanded one; an unknown one never is."""
    return demanded in ORIGINS and _trust(found) >= _trust(demanded)


def least(found: Iterable[str]) -> str:
    """The least trusted of these origins; of none, the program's own."""
    each = dict.fromkeys(found)
    return min(each, key=_trust, default=PROGRAM) if len(each) != 1 else each.popitem()[0]


def labelled(origins: Origins) -> dict[str, str]:
    """The origins that a snapshot and an envelope name: all but DOCUMENT."""
    return {slot: origin for slot, origin in origins.items() if origin != DOCUMENT}


def _trust(origin: str) -> int:
    return ORIGINS.index(origin) if origin in ORIGINS else -1
