"""What each refusal code means: the kernel's rules, and the reasons for which a step fails."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nanovm_core
from reader import REASONS as DOCUMENT_REASONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A stable code, what happened, why, what a person can do (if anything), and an example."""

    code: str
    title: str
    why: str
    next: str = ""
    example: str = ""

    @property
    def sentence(self) -> str:
        """What people read where the code was met: what happened, why, and what to do next."""
        return " ".join(filter(None, (f"{self.title}.", self.why, self.next)))


def _read(path: Path) -> dict[str, Rule]:
    rows = tomllib.loads(path.read_text(encoding="utf-8"))
    return {code: Rule(code=code, **row) for code, row in rows.items()}


_UNCERTAIN = "What cannot be read with certainty is not paid."
KEYS = ("title", "why", "next", "example")


def add(rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Let pages and lists know the codes of another package, too: rows as its file has them."""
    for code, row in rows.items():
        REASONS[code] = Rule(code=code, **{key: row[key] for key in KEYS if key in row})


RULES: Mapping[str, Rule] = _read(Path(str(nanovm_core.__file__)).with_name("rules.toml"))
REASONS: dict[str, Rule] = {
    **_read(Path(__file__).with_name("reasons.toml")),
    **{
        code: Rule(code=code, title=title, why=why or _UNCERTAIN)
        for code, text in DOCUMENT_REASONS.items()
        for title, _, why in [text.partition(". ")]
    },
}
