"""Dates as people print them, read without guessing day and month."""

import re
import unicodedata
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from typing import Final, Literal

Order = Literal["dmy", "mdy", ""]

_MONTHS: Final[tuple[str, ...]] = (
    "january jan januar janner janvier janv januari gennaio gen enero ene ledna leden stycznia"
    " janeiro tammikuuta",
    "february feb februar fevrier fevr februari febbraio febrero unora unor lutego fevereiro"
    " helmikuuta",
    "march mar marz maerz mrz mars maart mrt marzo brezna brezen marca marco marts maaliskuuta"
    " marcius",
    "april apr avril avr aprile abril abr dubna duben kwietnia huhtikuuta aprilis",
    "may mai mei maggio mag mayo kvetna kveten maja maio maj toukokuuta majus",
    "june jun juni juin giugno giu junio cervna cerven czerwca junho kesakuuta junius",
    "july jul juli juillet juil luglio lug julio cervence cervenec lipca julho heinakuuta julius",
    "august aug aout augustus agosto ago srpna srpen sierpnia augusti elokuuta augusztus",
    "september sep sept septembre settembre set septiembre zari wrzesnia setembro syyskuuta"
    " szeptember",
    "october oct oktober okt octobre ottobre ott octubre rijna rijen pazdziernika outubro"
    " lokakuuta",
    "november nov novembre noviembre listopadu listopad listopada novembro marraskuuta",
    "december dec dezember dez decembre dicembre dic diciembre prosince prosinec grudnia dezembro"
    " desember joulukuuta",
)
_BY_NAME: Final = {
    name: number for number, names in enumerate(_MONTHS, start=1) for name in names.split()
}
MONTHS: Final = frozenset(_BY_NAME)
_NAME: Final = "|".join(sorted(_BY_NAME, key=len, reverse=True))
_ISO: Final = re.compile(r"(?<![\d./-])(?P<y>\d{4})([-/.])(?P<m>\d{1,2})\2(?P<d>\d{1,2})(?![\d/-])")
_NUMERIC: Final = re.compile(
    r"(?<![\d./-])(\d{1,2})(\. ?|/|-)(\d{1,2})(?:\2)(\d{4}|\d{2})(?![\d/-]|\.\d)"
)
_DAY_NAME: Final = re.compile(
    rf"(?<!\d)(?P<d>\d{{1,2}})(?:st|nd|rd|th|er|\.)?[ -](?:de |of )?(?P<m>{_NAME})\.?,?"
    r"[ -](?:de |del )?(?P<y>\d{4})(?!\d)"
)
_YEAR_FIRST: Final = re.compile(
    rf"(?<!\d)(?P<y>\d{{4}})\. ?(?P<m>{_NAME}|\d{{1,2}})\.? (?P<d>\d{{1,2}})(?!\d)"
)
_MONTH: Final = re.compile(
    rf"(?<![a-z])(?:{_NAME})\.?,? (?:de |del )?20\d\d(?!\d)"
    r"|(?<![\d./-])(?:0?[1-9]|1[0-2])/20\d\d(?!\d)"
)
_NAME_DAY: Final = re.compile(
    rf"(?<![a-z])(?P<m>{_NAME})\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)? ?,? ?(?P<y>\d{{4}})(?!\d)"
)


@lru_cache(maxsize=4_096)  # for a document's child alone: other processes keep no text of anybody
def fold(text: str) -> str:
    """Lower case, without accents, white space single: what labels are compared in."""
    if text.isascii():
        return " ".join(text.lower().split())
    text = unicodedata.normalize("NFKD", text.casefold().replace("ł", "l"))
    return " ".join("".join(c for c in text if not unicodedata.combining(c)).split())


def bare(text: str) -> str:
    """Letters with their marks, and digits, in lower case: how names and numbers are compared."""
    text = unicodedata.normalize("NFC", text.casefold())
    return "".join(char for char in text if unicodedata.category(char)[0] in "LMN")


@lru_cache(maxsize=4_096)
def flat(text: str) -> str:
    """Folded, character for character, so that places in it are places in the text."""
    if text.isascii():
        return text.lower()
    return "".join((fold(char) or char)[0] for char in text)


def date_spans(text: str) -> list[tuple[int, int]]:
    """Where dates stand in a text, in doubt or not, and months with their year."""
    text = flat(text)
    found = [match.span() for match, _ in _dates(text, "")]
    return [*_apart([*found, *(match.span() for match in _MONTH.finditer(text))])]


def _dates(text: str, order: Order) -> Iterator[tuple[re.Match[str], str]]:
    """Each date of a text with its ISO date, which is empty where it is in doubt."""
    for pattern, read in _READERS:
        for match in pattern.finditer(text):
            if (value := read(match, order)) is not None:
                yield match, value


def _apart(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The longer of those that overlap."""
    end = 0
    for start, stop in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= end:
            yield start, stop
            end = stop


def day_month_order(text: str) -> Order:
    """What the dates that can be read in one way only say about the others in a document."""
    seen: set[Order] = set()
    for first, mark, second, _ in _NUMERIC.findall(fold(text)):
        if mark.startswith("."):
            continue
        if int(first) > 12 >= int(second):
            seen.add("dmy")
        if int(second) > 12 >= int(first):
            seen.add("mdy")
    return seen.pop() if len(seen) == 1 else ""


def first_date(text: str, order: Order = "") -> str | None:
    """The first date in the text as an ISO date; None where there is none or it is in doubt."""
    found = [(match.start(), value) for match, value in _dates(fold.__wrapped__(text), order)]
    return min(found)[1] or None if found else None


def has_date(text: str) -> bool:
    """Whether there is a date, in doubt or not."""
    return any(_dates(fold(text), ""))


def _in_one_way(match: re.Match[str], _: Order) -> str | None:
    return _valid(match["y"], str(_BY_NAME.get(match["m"], match["m"])), match["d"])


def _numeric(match: re.Match[str], order: Order) -> str | None:
    """Dots are day first everywhere; slashes and dashes are not, so they need evidence.

    An empty string says that there is a date here which must not be guessed.
    """
    first, mark, second, year = match.groups()
    year = year if len(year) == 4 else f"20{year}"
    if mark.startswith(".") or int(first) > 12 or first == second or order == "dmy":
        return _valid(year, second, first)
    if int(second) > 12 or order == "mdy":
        return _valid(year, first, second)
    return ""


def _valid(year: str, month: str, day: str) -> str | None:
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None


_READERS: Final = (
    (_NUMERIC, _numeric),
    *((pattern, _in_one_way) for pattern in (_ISO, _DAY_NAME, _NAME_DAY, _YEAR_FIRST)),
)
