"""Numbers that pages state, from the code that decides them: none is typed into a template."""

from collections.abc import Callable
from typing import Final

from django import template

import reader
from dashboard.templatetags.show import VERDICTS
from dashboard.web import grace
from engine.queries import timeline
from pipeline.application import STEPS
from pipeline.register.details import CHARS_MAX
from sabotage.gallery import SCENARIOS
from sabotage.injectors import INJECTORS

register = template.Library()

WORDS: Final = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
COUNTS: Final[dict[str, Callable[[], int]]] = {  # a room above this one adds its own
    "gallery": lambda: len(SCENARIOS),
    "injectors": lambda: len(INJECTORS),
    "steps": lambda: len(STEPS),
    "verdicts": lambda: len(VERDICTS),
    "pages": lambda: reader.PAGES_MAX,
    "megabytes": lambda: reader.SIZE_BYTES_MAX // 1024**2,
    "events": lambda: timeline.PAGE,
    "searched": lambda: timeline.LOOKED_AT_MAX,
    "grace_seconds": lambda: grace.WAIT_MS // 1000,
    "grace_minutes": lambda: grace.OPEN_MS // 60_000,
    "name_chars": lambda: CHARS_MAX,
}


@register.simple_tag
def counted(name: str, *, digits: bool = False) -> str:
    """How many there are, in a word up to twelve, or always in digits."""
    count = COUNTS[name]()
    return f"{count:,}" if digits or count >= len(WORDS) else WORDS[count]
