"""A unit of a document: what a person accepts as a whole."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal

from reader.reasons import ExtractionError

Kind = Literal["text", "picture", "drawing"]
Edges = tuple[float, float, float, float]

UNITS_MAX: Final = 2_000  # of one document; a page of terms in small print has a hundred
TEXT_CHARS_MAX: Final = 400  # of a unit as it is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A paragraph, a label with its value, a picture or a drawing, as a person sees it.

    Two units are the same where ``mark`` is the same and ``size`` differs by no more than a
    fifth. ``mark`` is a hash of the masked text or of the picture; ``size`` is the height of its
    letters, or of the whole picture, in points; 0 is no size. ``page`` and ``box`` (left, top,
    right, bottom, in points) say where it is: 0 and None in the invoice data. ``place`` is a hash
    of what its value stands at, where that may vary, and ``label`` is that as it is shown.
    """

    kind: Kind
    mark: str
    text: str
    size: float = 0.0
    page: int = 0
    box: Edges | None = None
    label: str = ""
    place: str = ""


def unit(
    kind: Kind,
    masked: str,
    text: str,
    *,
    size: float = 0.0,
    page: int = 0,
    box: Edges | None = None,
    label: str = "",
    place: str = "",
) -> Unit:
    """The unit of what is shown and of what of it must be the same each time."""
    return Unit(
        kind=kind,
        mark=_hashed(f"{kind}\0{masked}"),
        text=text[:TEXT_CHARS_MAX],
        size=round(size, 1),
        page=page,
        box=box,
        label=label if place else "",
        place=_hashed(f"place\0{place}") if place else "",
    )


def _hashed(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def bounded(units: Iterable[Unit]) -> tuple[Unit, ...]:
    """The units, where they are not more than a person is asked to accept.

    Raises:
        ExtractionError: DOC-018.
    """
    found = (*units,)
    if len(found) > UNITS_MAX:
        raise ExtractionError("DOC-018")
    return found
