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
    its value where that is the same each time. ``varying`` are labels beside which any text may
    stand: the mark, its size in points, and the label itself.
    """

    key: str = ""
    marks: tuple[tuple[str, float], ...] = ()
    once: tuple[str, ...] = ()
    places: tuple[tuple[str, str, str], ...] = ()
    varying: tuple[tuple[str, float, str], ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that have a place, in words."""
        return tuple(dict.fromkeys(name.replace("_", " ") for name, _, _ in self.places))

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "KnownText":
        """What ``dataclasses.asdict`` made of one, read from JSON."""
        marks = tuple((str(mark), float(size)) for mark, size in value["marks"])
        places = tuple((str(f), str(m), str(v)) for f, m, v in value.get("places", ()))
        varying = tuple((str(m), float(s), str(t)) for m, s, t in value.get("varying", ()))
        return cls(str(value["key"]), marks, tuple(map(str, value["once"])), places, varying)

    def varied(self, units: Sequence[Unit], run: str) -> list[Unit]:
        """Those of the unseen units that are new values where a person lets one vary."""
        known = {(mark, size) for mark, size, _ in self.varying}
        return [each for each in self.unseen(units, run) if self._stands_alone(each, units, known)]

    def offered(self, units: Sequence[Unit], run: str) -> list[Unit]:
        """Those of the unseen units whose label was accepted before, with another value."""
        known = {*self.marks}
        return [each for each in self.unseen(units, run) if self._stands_alone(each, units, known)]

    def _stands_alone(
        self, unit: Unit, units: Sequence[Unit], known: Collection[tuple[str, float]]
    ) -> bool:
        """Whether a label is among those known, and names one value of the document."""
        if not unit.place or sum(each.place == unit.place for each in units) > 1:
            return False
        place = self._mark(unit.place)
        return any(mark == place and _alike(unit.size, size) for mark, size in known)

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
        both = ((mark, each.size) for each in units for mark in (each.mark, each.place) if mark)
        given = ((known._mark(mark), size) for mark, size in both)
        return replace(known, marks=tuple(dict.fromkeys([*known.marks, *given])))

    def with_varying(self, units: Iterable[Unit]) -> "KnownText":
        """With these units' labels as places of any text."""
        known = self._with_key()
        given = [(known._mark(each.place), each.size, each.label) for each in units if each.place]
        return replace(known, varying=tuple(dict.fromkeys([*known.varying, *given])))

    def without_varying(self, mark: str) -> "KnownText":
        """With a label's text compared again, as it is."""
        return replace(self, varying=tuple(each for each in self.varying if each[0] != mark))

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
