"""What a door answers: a ``Reply``, or a ``GateError`` where the request itself is at fault."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

# What became of a call.
ALLOWED, DONE, REFUSED, HELD = "allowed", "done", "refused", "held"
RUNNING, FAILED, UNKNOWN = "running", "failed", "unknown"
VERDICTS = (ALLOWED, DONE, REFUSED, HELD, RUNNING, FAILED, UNKNOWN)
# What a check of the five said.
CHECKS = ("schema", "permission", "rate", "anomaly", "audit")
REASONS, NEXT = (  # by code, and by verdict
    tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    for name in ("reasons.toml", "verdicts.toml")
)


class Reply(NamedTuple):
    """What became of a call, as the log has it.

    ``rule``: the code that refused, held or failed it, else what allowed it. ``checks``: by name
    of the five, "passed", "refused", "held" or "not reached". ``seq``: of the newest envelope of
    the run. ``result``: the JSON that the tool answered, of a call that is DONE. ``warrant``: the
    signed right to perform the call, in URL-safe base64, of one that is ALLOWED: it is handed out
    once.
    ``until_ms``: when a warrant has to be reported, or until when a person can approve; UTC.
    """

    verdict: str
    tool: str
    run: str  # its code
    seq: int
    rule: str = ""
    why: str = ""
    checks: Mapping[str, str] = {}
    result: Any = None
    warrant: str = ""
    until_ms: int = 0
    next: str = ""  # what to do
    replayed: bool = False  # the request had been made before


class GateError(Exception):
    """A request that no run can be made of, or that does not fit its run; nothing was done.

    ``code``: of ``reasons.toml``, which says the status, what happened, why and what to do.
    """

    def __init__(self, code: str, text: str = "") -> None:
        row = REASONS[code]
        super().__init__(f"{code} {text or row['title']}")
        self.code, self.status = code, int(row["status"])
        self.text = text or f"{row['title']}."
        self.why, self.next = str(row["why"]), str(row.get("next", ""))

    def as_json(self) -> dict[str, Any]:
        """The body of the answer."""
        said = {"code": self.code, "what": self.text, "why": self.why, "next": self.next}
        return {"error": said}
