"""Which guards carry which claim: the data of ``guards.toml``, read and checked."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from sabotage.gallery import SCENARIOS
from sabotage.kit.injector import Value
from sabotage.kit.moments import MOMENTS

FILE = Path(__file__).with_name("guards.toml")
ROOT = FILE.parents[2]
FAR_SIDE_MS_MAX = 5_000


class GuardsError(Exception):
    """The file is wrong: mend it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """The forms of an attack that an entry is about; of a parameter, one value or several."""

    injector: str
    when: Mapping[str, Value | list[Value]] = field(default_factory=dict)

    def fits(self, injector: str, params: Mapping[str, Value]) -> bool:
        """Whether it is about this attack."""
        named = all(params.get(name) in _listed(value) for name, value in self.when.items())
        return injector == self.injector and named

    @property
    def each(self) -> tuple[Mapping[str, Value], ...]:
        """The parameters of each of the forms."""
        values = product(*map(_listed, self.when.values()))
        return tuple(dict(zip(self.when, chosen, strict=True)) for chosen in values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Forms):
    """What holds these forms of an attack, and what is seen in a copy without it.

    ``without`` are ids of guards; what they are is not known here, but where the copy is made.
    ``moment`` is empty for an attack of the gallery, which sets its own stage.
    """

    without: tuple[str, ...]
    shows: str
    moment: str = ""
    far_side_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bare(Forms):
    """Forms that no guard carries, so that a copy without one would show nothing, and ``why``."""

    why: str


def claim_of(injector: str, params: Mapping[str, Value]) -> Claim | None:
    """The claim that an attack with these parameters is aimed at; None where none is laid down."""
    return next((each for each in claims() if each.fits(injector, params)), None)


def decided_in(
    injector: str, params: Mapping[str, Value], rule: str, where: str
) -> tuple[str, ...]:
    """The line of the guard that decided, as its copy's changes name it, and the line that refused.

    Of several in that line's file it is the last one above it, else the first of the claim. The
    refusal's line alone, where no guard of the claim decided.
    """
    claim = claim_of(injector, params)
    if not where or claim is None or not rule.startswith(_rules().get(injector, "")):
        return (where,) if where else ()
    lines = [line_of(guard) for guard in claim.without]
    file, _, line = where.partition(" ")[0].rpartition(":")
    above = [each for each in lines if each[0] == file and each[1] <= int(line)]
    return "{}:{}".format(*max(above, default=lines[0])), where


@cache
def line_of(guard: str) -> tuple[str, int]:
    """File and line of a guard. The lists are read as data: nothing that runs imports them."""
    lists = (tomllib.loads(path.read_text()) for path in (ROOT / "mutations").glob("*.toml"))
    found = next(row for each in lists for row in each["mutation"] if row["id"] == guard)
    before = (ROOT / found["file"]).read_text().partition(found["find"])[0]
    return found["file"], before.count("\n") + 1


@cache
def _rules() -> Mapping[str, tuple[str, ...]]:
    return {name: tuple(codes) for name, codes in _tables(FILE)["rules"].items()}


def why_none(injector: str, params: Mapping[str, Value]) -> str:
    """Why no guard could be taken out for this form of an attack; empty where one can be."""
    if claim_of(injector, params) is not None:
        return ""
    return next((each.why for each in bare() if each.fits(injector, params)), "")


@lru_cache(maxsize=4)
def claims(file: Path = FILE) -> tuple[Claim, ...]:
    """Every claim of the file, in its order.

    Raises:
        GuardsError: in one sentence, where an entry is none.
    """
    try:
        return tuple(_claim(row) for row in _tables(file)["claim"])
    except (KeyError, TypeError) as error:
        raise GuardsError(f"{file.name} is no list of [[claim]] tables: {error}") from error


@lru_cache(maxsize=4)
def bare(file: Path = FILE) -> tuple[Bare, ...]:
    """The forms that no guard carries.

    Raises:
        GuardsError: in one sentence, where an entry is none.
    """
    try:
        return tuple(Bare(**row) for row in _tables(file).get("bare", ()))
    except TypeError as error:
        raise GuardsError(f"{file.name} is no list of [[bare]] tables: {error}") from error


def _tables(file: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise GuardsError(f"{file.name} is no list of [[claim]] tables: {error}") from error


def _listed(value: Value | list[Value]) -> list[Value]:
    return value if isinstance(value, list) else [value]


def _claim(row: Mapping[str, object]) -> Claim:
    claim = Claim(**{**row, "without": tuple(row["without"])})  # type: ignore[arg-type]
    slow = claim.far_side_ms
    faults = {
        "names no guards": not claim.without,
        f"its moment is none of {', '.join(MOMENTS)}": claim.moment not in MOMENTS
        and claim.injector not in SCENARIOS,
        "an attack of the gallery has no moment": claim.moment != ""
        and claim.injector in SCENARIOS,
        f"far_side_ms goes up to {FAR_SIDE_MS_MAX}": not 0 <= slow <= FAR_SIDE_MS_MAX,
    }
    for fault, wrong in faults.items():
        if wrong:
            raise GuardsError(f"{FILE.name}: the claim on {claim.injector}: {fault}.")
    return claim
