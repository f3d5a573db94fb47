"""Numbers that pages state, from the code that decides them: none is typed into a template."""

from collections.abc import Callable, Mapping
from typing import Final

from django import template
from django.conf import settings

from dashboard.arena import box, score
from dashboard.templatetags.show import VERDICTS
from pipeline.queries import runs, timeline
from pipeline.steps import extract
from sabotage.gallery import SCENARIOS
from sabotage.injectors import INJECTORS

register = template.Library()

WORDS: Final = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
COUNTS: Final[Mapping[str, Callable[[], int]]] = {
    "gallery": lambda: len(SCENARIOS),
    "injectors": lambda: len(INJECTORS),
    "levels": lambda: len(box.levels()),
    "steps": lambda: len(runs.STEPS),
    "verdicts": lambda: len(VERDICTS),
    "hours": lambda: score.HOURS,
    "nickname": lambda: score.NAME_CHARS_MAX,
    "pages": lambda: extract.PAGES_MAX,
    "megabytes": lambda: settings.UPLOAD_SIZE_BYTES_MAX // 1_000_000,
    "events": lambda: timeline.PAGE,
    "searched": lambda: timeline.LOOKED_AT_MAX,
}


@register.simple_tag
def counted(name: str, *, digits: bool = False) -> str:
    """How many there are, in a word up to twelve, or always in digits."""
    count = COUNTS[name]()
    return f"{count:,}" if digits or count >= len(WORDS) else WORDS[count]
