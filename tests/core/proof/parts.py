"""A log, the same log some envelopes later, and what is remembered of the first."""

import json
from pathlib import Path
from typing import Any

from nanovm_core.verify import main
from tests.core.proof.bundles import (
    LOG_KEY,
    ZEROS,
    Log,
    begin,
    dumps,
    export,
    judged,
    run_id,
    whole_log,
)

KEY = ("--key", LOG_KEY.vkey)


def grown(log: Log) -> Log:
    """The log some envelopes later: an old run goes on, new ones begin, the log's own does too."""
    log.add("log", "budget", note="more")
    begin(log, run_id(9))
    log.add(run_id(1), "refused", rule="FSM-003")
    begin(log, run_id(4))
    log.add(run_id(9), "terminal", outcome="completed")
    return log


OLD, NEW = whole_log(3), grown(whole_log(3))
AT = len(OLD.lines)


def part(log: Log, first: int = AT, note: bytes | None = None, /, **changed: Any) -> bytes:
    """The export of a log from a place on, under the log's newest checkpoint or this one."""
    lines, named = log.lines[first:], {"first": first, **changed}
    if lines:
        return export(lines, note or log.note(), **named)
    empty = {"v": "nanovm-export/1", "count": 0, "head": ZEROS}
    return dumps({**empty, "checkpoint": (note or log.note()).decode(), **named}) + b"\n"


def verdict(data: bytes, kept: Path, *more: str) -> tuple[int, str]:
    """Exit code and text, with the log's key and what is remembered."""
    return judged(main, data, *KEY, "--known", str(kept), *more)


def tail_of(kept: Path) -> Path:
    return kept.with_name(f"{kept.name}.tail")


def remembered(kept: Path) -> tuple[bytes, bytes]:
    return kept.read_bytes(), tail_of(kept).read_bytes()


def refused(data: bytes, kept: Path, code: int) -> str:
    """What is said of a file that is not good; nothing that is remembered may move."""
    before = remembered(kept)
    found, text = verdict(data, kept)
    assert (found, remembered(kept)) == (code, before), text
    return text


def forked(log: Log) -> Log:
    """The log with another last envelope."""
    other = Log()
    for line, place in zip(log.lines[:-1], log.places, strict=False):
        other.append(line, *place)
    held = json.loads(log.lines[-1])
    other.put({**held, "at_ms": held["at_ms"] + 1})
    return other


def made_known(kept: Path) -> Path:
    found, text = verdict(export(OLD.lines, OLD.note()), kept)
    assert found == 0, text
    return kept
