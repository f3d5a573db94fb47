"""What a policy's windows look at: the newest calls of a workspace, as its log recorded them."""

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from nanovm_core.core.canonical import decode
from nanovm_core.core.messages import Recorded
from nanovm_core.core.policy import RECORDS_MAX
from nanovm_core.core.program import Program
from nanovm_core.errors import CanonicalError
from pipeline.models import Envelope
from pipeline.store.logs import Line

OUTCOMES: Mapping[str, str] = {
    "intent": "called",
    "result": "done",
    "failed": "failed",
    "refused": "refused",
}


def recorded(
    workspace: UUID, program: Program, pending: Sequence[Line] = ()
) -> tuple[Recorded, ...]:
    """The newest calls of granted tools, oldest first; nothing where no window asks for them.

    ``pending``: the envelopes that are about to be stored behind those of the log.
    """
    if not (program.windows or program.policy.windows):
        return ()
    found = Envelope.objects.filter(workspace=workspace, kind__in=OUTCOMES).order_by("-seq")
    stored = found.values_list("bytes", flat=True)[: RECORDS_MAX * len(OUTCOMES)]
    newest = [each.data for each in reversed(pending) if each.kind in OUTCOMES]
    calls = [each for data in (*newest, *stored) for each in _call(bytes(data), program)]
    return tuple(reversed(calls[:RECORDS_MAX]))


def _call(data: bytes, program: Program) -> Iterator[Recorded]:
    """The call that an envelope tells of; a damaged one is found elsewhere, and tells of none."""
    try:
        body = decode(data)
    except CanonicalError:
        return
    if not isinstance(body, dict):
        return
    tool, kind, at_ms = body.get("tool"), str(body.get("kind")), body.get("at_ms")
    about_a_call = tool in program.grants or (kind == "refused" and "in" in body)
    if body.get("outcome") == "waiting":
        return  # it is under way: how it came out is told later
    if about_a_call and isinstance(at_ms, int):
        yield Recorded(at_ms, str(tool or ""), OUTCOMES[kind], program.agent)
