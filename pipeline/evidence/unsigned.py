"""What the signer refuses to sign, where every process may read it: the page, /healthz."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings

from nanovm_core.errors import VerificationError
from pipeline.clock import now_ms
from pipeline.store import state_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A log whose present tree the signer does not sign, since when, and why."""

    origin: str
    code: str
    text: str
    since_ms: int


def refusals() -> list[Refusal]:
    """Every refusal that stands, by the log's name. None: all that was asked for was signed."""
    try:
        data = _file().read_bytes()
    except FileNotFoundError:
        return []
    return [Refusal(**each) for each in json.loads(data)]


def report(origin: str, error: VerificationError) -> None:
    """Keep it said that a log's tree is not signed, until it is."""
    with _changed() as known:
        since_ms = known[origin].since_ms if origin in known else now_ms()
        known[origin] = Refusal(origin=origin, code=error.code, text=error.text, since_ms=since_ms)


def clear(origin: str) -> None:
    """The log was signed: a refusal that stood is over."""
    if any(each.origin == origin for each in refusals()):
        with _changed() as known:
            known.pop(origin, None)


@contextmanager
def _changed() -> Iterator[dict[str, Refusal]]:
    with state_file.locked(_file()) as slot:
        known = {each.origin: each for each in refusals()}
        yield known
        rows = [asdict(known[origin]) for origin in sorted(known)]
        slot.replace(json.dumps(rows).encode())


def _file() -> Path:
    file: Path = settings.NANOVM_DATA / "refusals.json"
    return file
