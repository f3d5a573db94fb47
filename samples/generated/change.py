"""What makes an honest invoice one that must not be paid."""

from collections.abc import Callable
from dataclasses import dataclass, field

from samples.generated.pen import Pen
from samples.generated.sheet import Sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The sheet as it is printed, and what is done to its pages and to the finished file.

    ``held`` names the facts that are not drawn as text; ``seen`` overrides fields of the truth.
    """

    sheet: Sheet
    held: frozenset[str] = frozenset()
    at_page_end: Callable[[Pen], None] | None = None
    finish: Callable[[bytes], bytes] | None = None
    seen: dict[str, str | int | None] = field(default_factory=dict)
    margin: float = 0.0
    family: str = ""
    mark: str = ""
