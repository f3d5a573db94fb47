"""Whether a picture or drawing says something that the text of its page does not say."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from reader.page_text.dates import fold
from reader.page_text.titles import NAMES
from reader.page_view.pictures import Writing

_CONTRARY: Final = (
    *("stamped_paid", "void", "specimen", "draft", "credit_note", "pro_forma", "refund"),
)
_LETTERS_OF_ONE_ERROR: Final = 5  # a recogniser takes one letter of so many for another
_WORD_MIN: Final = 3  # letters: fewer are noise
_SPELLED_MIN: Final = 4  # letters
_SURE_MIN: Final = 55  # of 100: less is no word
_LETTERHEAD: Final = (0.28, 0.78)  # of the height of the page: logos are above and below
_TURNED_MIN: Final = 10  # degrees from upright
_UNREAD_MIN: Final = 4  # pieces of ink in a line that are letters, read or not
_PHRASE_WORDS: Final = 4
_ALIKE: Final = str.maketrans("015689", "olsgbg")
_TOKEN: Final = re.compile(r"[^\W_]+")


class PageWords:
    """The words of a document's text, as a recogniser may misread them."""

    def __init__(self, texts: Iterable[str]) -> None:
        folded = [fold(text) for text in texts]
        self.exact = {word for text in folded for word in _TOKEN.findall(text)}
        self._lines = [f" {' '.join(_TOKEN.findall(text))} " for text in folded]
        self._squeezed = " ".join("".join(_TOKEN.findall(text)) for text in folded)
        self._by_size: dict[int, set[str]] = {}
        for word in self.exact:
            self._by_size.setdefault(len(word), set()).add(_alike(word))

    def repeat(self, text: str) -> bool:
        """Whether another text says nothing new: no number, and its words in this order."""
        found = f" {' '.join(_TOKEN.findall(fold(text)))} "
        return not any(map(str.isdigit, text)) and any(found in line for line in self._lines)

    def have(self, word: str) -> bool:
        """Whether the text has the word, as a part of one too, or one that looks so."""
        if word in self._squeezed:
            return True
        errors, own = len(word) // _LETTERS_OF_ONE_ERROR, _alike(word)
        sizes = range(len(word) - errors, len(word) + errors + 1)
        return any(_near(own, each, errors) for n in sizes for each in self._by_size.get(n, ()))


def misread(written: Iterable[Writing], words: PageWords) -> str | None:
    """The contrary statement that a writing is, but for a few letters, as the code of a hold."""
    for each in written:
        for text in _phrases((*each.lines, *each.doubtful), words):
            for spelled, code in _vocabulary().items():
                errors = max(len(text), len(spelled)) // _LETTERS_OF_ONE_ERROR
                if abs(len(spelled) - len(text)) <= errors and _near(text, spelled, errors):
                    return code
    return None


def foreign(writing: Writing, height: float, words: PageWords) -> bool:
    """Whether a person reads there what the text does not say, such as a stamp.

    Logos and the lines of a letterhead are at the head and foot of a page, upright; anywhere
    else, and turned, only a repetition of the text is none.
    """
    said = [word for word in _words(writing.lines) if len(word) >= _WORD_MIN]
    read = writing.sure >= _SURE_MIN and any(not words.have(word) for word in said)
    upper, lower = (share * height for share in _LETTERHEAD)
    if upper < (writing.box.top + writing.box.bottom) / 2 < lower:
        silent = not said or writing.sure < _SURE_MIN
        return read or (silent and writing.letters >= _UNREAD_MIN)
    away = writing.angle % 90
    return read and _TURNED_MIN <= away <= 90 - _TURNED_MIN


def _words(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield from (word for word in _TOKEN.findall(fold(line)) if not word.isdecimal())


def _phrases(lines: Sequence[str], words: PageWords) -> Iterator[str]:
    """Words that the text does not have, and those beside each other as one."""
    for line in lines:
        found = [*_words([line])]
        for start in range(len(found)):
            for end in range(start + 1, min(len(found), start + _PHRASE_WORDS) + 1):
                if not set(found[start:end]) <= words.exact:
                    text = _alike("".join(found[start:end]))
                    if len(text) >= _SPELLED_MIN:
                        yield text


def _alike(word: str) -> str:
    return word.translate(_ALIKE)


def _near(one: str, other: str, errors: int) -> bool:
    """Whether so few letters are wrong, missing or too many."""
    if not errors:
        return one == other
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        above, row = row, [place]
        for at, wanted in enumerate(other):
            row.append(min(above[at + 1] + 1, row[at] + 1, above[at] + (letter != wanted)))
        if min(row) > errors:
            return False
    return row[-1] <= errors


@cache
def _vocabulary() -> dict[str, str]:
    """How the names of contrary documents are spelled, without spaces, and their codes."""
    return {
        _alike("".join(_TOKEN.findall(fold(text)))): code
        for code in _CONTRARY
        for text in _spelled(NAMES[code].pattern.partition("(?:")[2].rpartition(")(?!")[0])
        if len(text) >= _SPELLED_MIN
    }


def _spelled(pattern: str) -> list[str]:
    """What a pattern of words, groups, alternatives and optional parts matches."""
    found, at = _alternatives(pattern, 0)
    return found if at == len(pattern) else []


def _alternatives(pattern: str, at: int) -> tuple[list[str], int]:
    every, current = list[str](), [""]
    while at < len(pattern) and pattern[at] != ")":
        if pattern[at] == "|":
            every, current, at = [*every, *current], [""], at + 1
            continue
        if pattern.startswith("(?:", at):
            part, at = _alternatives(pattern, at + 3)
            at += 1
        elif pattern[at] == "[":
            end = pattern.index("]", at)
            part, at = [*pattern[at + 1 : end]], end + 1
        else:
            part, at = [pattern[at]], at + 1
        if pattern.startswith("?", at):
            part, at = [*part, ""], at + 1
        current = list(dict.fromkeys(left + right for left in current for right in part))
    return [*every, *current], at
