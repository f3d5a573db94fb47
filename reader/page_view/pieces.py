"""The connected pieces of ink in a picture: letters, frames and rules."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from PIL import Image

RUNS_MAX: Final = 20_000  # stretches of ink in a row; small print has fewer, noise more
_INK: Final = re.compile(rb"\xff+")

_Run = tuple[int, int, int]  # row, first column, column after the last


class CrowdedError(Exception):
    """A picture has more stretches of ink than writing has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Ink that hangs together, in pixels from the upper left corner."""

    left: int
    top: int
    right: int
    bottom: int
    runs: list[_Run]

    @property
    def longer(self) -> int:
        return max(self.right - self.left, self.bottom - self.top)

    @property
    def shorter(self) -> int:
        return min(self.right - self.left, self.bottom - self.top)

    @property
    def share(self) -> float:
        """How much of its box is ink."""
        area = (self.right - self.left) * (self.bottom - self.top)
        return sum(end - start for _, start, end in self.runs) / area

    def holds(self, other: "Piece") -> bool:
        """Whether the middle of another piece lies in its box."""
        x, y = (other.left + other.right) / 2, (other.top + other.bottom) / 2
        return self.left < x < self.right and self.top < y < self.bottom


def pieces(ink: Image.Image) -> list[Piece]:
    """The pieces of a picture that is 255 where there is ink.

    Raises:
        CrowdedError: there are too many.
    """
    runs: list[_Run] = []
    of: list[int] = []  # a run of the same piece, nearer to its first one
    above = range(0)
    for y, row in enumerate(_rows(ink)):
        begun, near = len(runs), above.start
        for match in _INK.finditer(row):
            start, end = match.span()
            of.append(len(runs))
            runs.append((y, start, end))
            while near < above.stop and runs[near][2] < start:
                near += 1
            for other in range(near, above.stop):
                if runs[other][1] > end:
                    break
                _join(of, other, len(runs) - 1)
        if len(runs) > RUNS_MAX:
            raise CrowdedError
        above = range(begun, len(runs))
    found: dict[int, list[_Run]] = {}
    for place, run in enumerate(runs):
        found.setdefault(_first(of, place), []).append(run)
    return [*map(_piece, found.values())]


def _first(of: list[int], place: int) -> int:
    while of[place] != place:
        of[place] = of[of[place]]
        place = of[place]
    return place


def _join(of: list[int], one: int, other: int) -> None:
    first, second = sorted((_first(of, one), _first(of, other)))
    of[second] = first


def _piece(runs: list[_Run]) -> Piece:
    return Piece(
        left=min(start for _, start, _ in runs),
        top=runs[0][0],
        right=max(end for _, _, end in runs),
        bottom=runs[-1][0] + 1,
        runs=runs,
    )


def _rows(ink: Image.Image) -> Iterator[bytes]:
    data, wide = ink.tobytes(), ink.width
    return (data[at : at + wide] for at in range(0, len(data), wide))


def drawn(kept: Iterable[Piece], size: tuple[int, int]) -> Image.Image:
    """A picture of some pieces alone, 255 where there is ink."""
    wide, high = size
    data = bytearray(wide * high)
    for piece in kept:
        for y, start, end in piece.runs:
            data[y * wide + start : y * wide + end] = b"\xff" * (end - start)
    return Image.frombytes("L", size, bytes(data))
