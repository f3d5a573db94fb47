"""The text, pictures and drawings of a supplier's invoices that a person accepted.

They lie among the supplier's details, as hashes under a key of its own: erasing the supplier
destroys both, and leaves the others' text known.
"""

import hmac
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from engine.entropy import random_bytes
from reader.invoice import Reading
from reader.known_text.unit import Unit

ONCE_MAX: Final = 50  # runs that were paid once and are remembered
PLACES_MAX: Final = 50
SIZES: Final = 1.2  # how much larger or smaller a known text may be
KEY_BYTES: Final = 32
MARK_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class KnownText:
    """Marks of accepted units with their sizes in points, under ``key``, and runs paid once.

    ``places`` are fields that a person pointed at: the field, the mark of what is around it, and
    its value where that is the same each time.
    """

    key: str = ""
    marks: tuple[tuple[str, float], ...] = ()
    once: tuple[str, ...] = ()
    places: tuple[tuple[str, str, str], ...] = ()

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "KnownText":
        """What ``dataclasses.asdict`` made of one, read from JSON."""
        marks = tuple((str(mark), float(size)) for mark, size in value["marks"])
        places = tuple((str(f), str(m), str(v)) for f, m, v in value.get("places", ()))
        return cls(str(value["key"]), marks, tuple(map(str, value["once"])), places)

    def unseen(self, units: Sequence[Unit], run: str) -> list[Unit]:
        """The units that nobody accepted; none in a run that a person let pay once."""
        if run in self.once:
            return []
        sizes: dict[str, list[float]] = {}
        for mark, size in self.marks:
            sizes.setdefault(mark, []).append(size)
        return [
            each
            for each in units
            if not any(_alike(each.size, size) for size in sizes.get(self._mark(each.mark), ()))
        ]

    def with_units(self, units: Collection[Unit]) -> "KnownText":
        """With these units accepted."""
        known = self._with_key()
        given = ((known._mark(each.mark), each.size) for each in units)
        return replace(known, marks=tuple(dict.fromkeys([*known.marks, *given])))

    def with_places(self, places: Iterable[tuple[str, str, str]]) -> "KnownText":
        """With these fields, each at a mark, perhaps with its value."""
        known = self._with_key()
        given = [(name, known._mark(mark), value) for name, mark, value in places]
        kept = [each for each in known.places if each[:2] not in {new[:2] for new in given}]
        return replace(known, places=(*kept, *given)[-PLACES_MAX:]) if given else self

    def given(self, readings: Sequence[Reading]) -> dict[str, str]:
        """The fields that stand at a remembered place; one with two values there is left out."""
        found: dict[str, set[str]] = {}
        marks = {each.mark: self._mark(each.mark) for each in readings} if self.places else {}
        for name, place, value in self.places:
            for each in readings:
                if marks[each.mark] == place and (value or each.field == name):
                    found.setdefault(name, set()).add(value or each.value)
        return {name: values.pop() for name, values in found.items() if len(values) == 1}

    def with_run(self, run: str) -> "KnownText":
        """With a run that a person let pay once, whatever its invoice says."""
        return replace(self, once=(*self.once, run)[-ONCE_MAX:])

    def _with_key(self) -> "KnownText":
        return self if self.key else replace(self, key=random_bytes(KEY_BYTES).hex())

    def _mark(self, mark: str) -> str:
        message = f"nanovm/known-text/v1\0{mark}".encode()
        return hmac.new(bytes.fromhex(self.key), message, sha256).digest()[:MARK_BYTES].hex()


NOTHING_KNOWN: Final = KnownText()


def _alike(one: float, other: float) -> bool:
    smaller, larger = sorted((one, other))
    return larger <= smaller * SIZES


def counted(units: Collection[Unit]) -> Iterator[tuple[str, int]]:
    """How many there are of each kind, by the name of its fact."""
    for kind, name in (("text", "text"), ("picture", "pictures"), ("drawing", "drawings")):
        yield f"unseen_{name}", sum(each.kind == kind for each in units)
