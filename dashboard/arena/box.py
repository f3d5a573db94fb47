"""The red team's box: presets, levels, and how what was typed becomes the bytes of a proposal."""

import functools
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.models import Run
from engine.queries.runs import RunHead
from nanovm_core.core.proposals import PROPOSAL_BYTES_MAX
from pipeline.steps.propose.model_adapters import TOOL
from sabotage.kit.injector import TEXT_BYTES_MAX

DATA = Path(__file__).with_name("presets.toml")
FAITHFUL = "faithful"  # the preset that the box begins with
TYPED_CHARS_MAX = 3 * TEXT_BYTES_MAX  # each byte may be written as an escape of three characters
MODES = (
    ("text", "Text", "As typed, in UTF-8; a line break is one LF."),
    ("percent", "Percent escapes", "%FF is the byte FF, %25 a percent sign; the rest is UTF-8."),
    ("hex", "Hex", "Two digits per byte; spaces and line breaks are ignored."),
)
_NAME = re.compile(r"\$(\w+)")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})?")
_BLANKS = re.compile(r"\s+")
_POSITION = re.compile(r"not JSON: .* at (\d+)\.$", re.DOTALL)
_BYTE = re.compile(r"byte (\d+) is not UTF-8")


class BoxError(Exception):
    """What was typed is no sequence of bytes; the text says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A proposal to begin with. ``raw`` still holds the names of values."""

    id: str
    label: str
    what: str
    level: int
    raw: str
    mode: str = "text"
    repeat: str = ""
    times: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A goal, and the rules by which the guard shows that it was really tried.

    ``erased``: any answer of a run that was erased before counts instead.
    """

    number: int
    name: str
    goal: str
    rules: tuple[str, ...]
    erased: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """The text in the box, and how to read it."""

    text: str
    mode: str = "text"

    def raw(self) -> bytes:
        """The bytes of the proposal.

        Raises:
            BoxError: the text cannot be read so, or is too long to be sent at all.
        """
        if len(self.text) > TYPED_CHARS_MAX:
            raise BoxError(f"The text can have up to {TYPED_CHARS_MAX:,} characters. Shorten it.")
        found = _READERS[self.mode](self.text.replace("\r\n", "\n"))
        if len(found) > TEXT_BYTES_MAX:
            raise BoxError(
                f"The text has {len(found):,} bytes. A proposal can have {PROPOSAL_BYTES_MAX:,}, "
                f"and more than {TEXT_BYTES_MAX:,} cannot be sent. Shorten it."
            )
        return found


@functools.cache
def presets() -> Mapping[str, Preset]:
    """Every preset, by its id, in the order of the file."""
    return {row["id"]: Preset(**row) for row in _data()["presets"]}


@functools.cache
def levels() -> tuple[Level, ...]:
    """The levels, in their order."""
    rows = _data()["levels"]
    return tuple(Level(**{**row, "rules": tuple(row["rules"])}) for row in rows)


@functools.cache
def refused_names() -> tuple[str, ...]:
    """Words that no nickname may hold."""
    return tuple(_data()["names"]["refused"])


def filled(preset: Preset, run: RunHead | None) -> Typed:
    """A preset with the values of the run that is attacked."""
    values = {**_values(run), "many": preset.repeat * preset.times}
    text = _NAME.sub(lambda found: values.get(found[1], found[0]), preset.raw)
    return Typed(text=text, mode=preset.mode)


def typed_of(raw: bytes) -> Typed:
    """What to put in the box for these bytes: text where all of them are printable."""
    text = raw.decode("utf-8", "replace")
    plain = all(each.isprintable() or each in "\n\t" for each in text)
    if plain and text.encode() == raw:
        return Typed(text=text)
    return Typed(text="".join(map(_escaped, raw)), mode="percent")


def is_read(run: RunHead | None) -> bool:
    """Whether the run knows what its invoice says."""
    return run is not None and isinstance(run.slots.get("amount_minor"), int)


def place(raw: bytes, why: str) -> tuple[int, int] | None:
    """Line and column, from 1, of the fault that a refusal names; None where it names none."""
    text = raw.decode("utf-8", "replace")
    byte, position = _BYTE.search(why), _POSITION.search(why)
    if byte is not None:
        at = len(raw[: int(byte[1])].decode("utf-8", "replace"))
    elif position is not None:
        at = int(position[1])
    else:
        return None
    before = text[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1


def _values(run: RunHead | None) -> dict[str, str]:
    example = _data()["example"]
    slots: Mapping[str, Any] = run.slots if run is not None and is_read(run) else example
    amount, currency = int(slots["amount_minor"]), str(slots["currency"])
    return {
        "pay": TOOL,
        "amount": str(amount),
        "more": str(amount + 1),
        "currency": json.dumps(currency)[1:-1],
        "other": "USD" if currency != "USD" else "EUR",
        "key": _key(run),
    }


def _key(run: RunHead | None) -> str:
    """The idempotency key of what the run owes; zeros where it owes nothing."""
    rows = Run.objects.filter(id=run.id) if run else Run.objects.none()
    return rows.values_list("owed_key", flat=True).first() or "0" * 64


def _escaped(byte: int) -> str:
    """A byte for the mode of percent escapes."""
    plain = 0x20 <= byte < 0x7F or byte == 0x0A
    return chr(byte) if plain and byte != 0x25 else f"%{byte:02X}"


def _text(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _percent(text: str) -> bytes:
    def byte(found: re.Match[bytes]) -> bytes:
        if found[1] is None:
            raise BoxError(
                "A % must be followed by two hex digits. Write %25 for the percent sign."
            )
        return bytes([int(found[1], 16)])

    return _ESCAPE.sub(byte, _text(text))


def _hex(text: str) -> bytes:
    digits = _BLANKS.sub("", text)
    try:
        return bytes.fromhex(digits)
    except ValueError as error:
        raise BoxError(
            "This is not hex. Write two digits (0 to 9, A to F) for each byte."
        ) from error


_READERS = {"text": _text, "percent": _percent, "hex": _hex}


@functools.cache
def _data() -> Mapping[str, Any]:
    return tomllib.loads(DATA.read_text(encoding="utf-8"))
