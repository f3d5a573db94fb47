"""What a process without pages last said of itself, in a file that /healthz and pages read."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from django.conf import settings

from engine import clock

SILENT_MS_MAX = 60_000  # after this such a process counts as dead


class Said(NamedTuple):
    """``why``: what is wrong and what to do; empty where nothing is. Times are UTC milliseconds."""

    at_ms: int
    why: str = ""
    facts: Mapping[str, Any] = MappingProxyType({})


def say(name: str, why: str = "", **facts: Any) -> None:
    """Replace what this process said before; it does not wait for the disk."""
    draft = _file(name).with_suffix(f".{os.getpid()}.new")  # two may be at it
    draft.write_text(json.dumps([clock.now_ms(), why, facts]), encoding="utf-8")
    draft.replace(_file(name))


def heard(name: str) -> Said | None:
    """What it said last; None where it never ran on this data folder, or a crash took it."""
    try:
        at_ms, why, facts = json.loads(_file(name).read_text(encoding="utf-8"))
        return Said(int(at_ms), str(why), dict(facts))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def in_words(name: str) -> str:
    """ "ok", or what is wrong with it and what to do."""
    last = heard(name)
    if last is None:
        return f"not in use: manage.py {name} starts it"
    silent_ms = clock.now_ms() - last.at_ms
    if silent_ms > SILENT_MS_MAX:
        return f"no sign of life for {silent_ms // 1000} s: start manage.py {name} again"
    return last.why or "ok"


def _file(name: str) -> Path:
    return Path(settings.NANOVM_DATA, f"{name}.said")
