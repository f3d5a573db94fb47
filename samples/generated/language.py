"""The wordings of a language, read from its file in ``words/``."""

import tomllib
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

_FOLDER: Final = Path(__file__).parent / "words"
LANGUAGES: Final = tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))

_LONG: Final = {
    **dict.fromkeys(("de", "da", "cs"), "{day}. {month} {year}"),
    **dict.fromkeys(("es", "pt"), "{day} de {month} de {year}"),
}
_SHORT: Final = {
    **dict.fromkeys(("de", "cs", "pl", "da"), "%d.%m.%Y"),
    **dict.fromkeys(("fr", "it", "es", "pt", "en"), "%d/%m/%Y"),
    "nl": "%d-%m-%Y",
    "sv": "%Y-%m-%d",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The synonyms of every label, and the sentences."""

    code: str
    words: dict[str, Any] = field(repr=False)

    def pick(self, rng: Random, key: str) -> str:
        """One of the wordings of a label."""
        return str(rng.choice(self.words[key]))

    def all(self, key: str) -> tuple[str, ...]:
        """All the wordings of a label."""
        return tuple(self.words[key])

    def page(self, page: int, pages: int) -> str:
        return str(self.words["page"]).format(page=page, pages=pages)

    def date_text(self, day: date, style: str) -> str:
        """A date as ``iso``, ``short``, ``long`` or (English alone) ``american``."""
        month = self.words["months"][day.month - 1]
        if style == "iso":
            return day.isoformat()
        if style == "american":
            return f"{month} {day.day}, {day.year}"
        if style == "short":
            return day.strftime(_SHORT[self.code])
        pattern = _LONG.get(self.code, "{day} {month} {year}")
        return pattern.format(day=day.day, month=month, year=day.year)


@cache
def language(code: str) -> Language:
    """A language by its ISO 639 code."""
    text = (_FOLDER / f"{code}.toml").read_text(encoding="utf-8")
    return Language(code=code, words=tomllib.loads(text))
