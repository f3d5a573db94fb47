"""The calls of foreign agents as pages show them, opened for their owner."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.models import Envelope, Secret
from engine.queries.runs import RunHead, body_of
from engine.queries.secrets import FactView, opened_all
from engine.runtime.agent_moves import HALTED
from engine.store import programs
from gate.answers import INSTEAD, RULES, verdict_of
from gate.application import RESULT
from gate.listed import PROPOSAL
from gate.models import Call
from gate.replies import REASONS, UNKNOWN
from nanovm_core.conditions.errors import HIDDEN as HIDDEN_CHARS
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.lifecycle import KILLED
from nanovm_core.core.vault import TOMBSTONE
from nanovm_core.errors import VerificationError

TOOL_CHARS_MAX = 64  # of a tool that the program does not have
HIDDEN = "(in the vault)"
_UNSEEN = re.compile(f"(?![\n\t])[{HIDDEN_CHARS}]")  # what hides or turns round the text beside it
BRIEF_MAX, BRIEF_CHARS_MAX = 3, 40  # arguments of a line, and of the value of each


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call: who made it, its tool and arguments as they were sent, and what came of it.

    ``verdict``: of ``replies.VERDICTS``. ``rule``: what refused, held or failed it; else empty.
    ``why``: what the run's own program or policy says of it, or is sealed with it; else empty.
    ``tool``: also one that the program does not have. ``ref``: of all that was sent; an argument
    that the program hides has one of its own.
    """

    agent: str
    tool: str
    verdict: str
    rule: str
    why: str
    args: tuple[FactView, ...]
    result: FactView | None
    is_erased: bool
    ref: str

    @property
    def brief(self) -> str:
        """The first arguments on one line, without hidden values; or the tombstone."""
        first, more = self.args[:BRIEF_MAX], len(self.args) - BRIEF_MAX
        said = (f"{f.label} {_cut(f.value) if f.ref == self.ref else HIDDEN}" for f in first)
        return TOMBSTONE if self.is_erased else ", ".join(said) + f" and {more} more" * (more > 0)


def of_runs(runs: Iterable[RunHead]) -> Mapping[str, Asked]:
    """By id, what was asked of each of these runs; one that is no call is left out."""
    heads = {run.id: run for run in runs if run.is_call}
    own: dict[str, dict[str, str]] = {name: {} for name in heads}
    secrets = Secret.objects.filter(run_id__in=[*heads]).order_by("created_ms", "ref")
    for run_id, ref, slot in secrets.values_list("run_id", "ref", "slot"):
        own[str(run_id)][ref] = slot
    opened = opened_all([ref for refs in own.values() for ref in refs])
    told = Envelope.objects.filter(run__in=[*heads], kind__in=[*INSTEAD.values()]).order_by("n")
    rules = {
        row.run: str(body_of(row.bytes).get("rule", ""))
        for row in told
        if row.kind == INSTEAD.get(heads[row.run].state)
    }
    rules = {
        name: rule
        for name, rule in rules.items()
        if rule == HALTED or heads[name].state != KILLED  # a person stopped what was held
    }
    calls = Call.objects.select_related("run", "run__terms").filter(run_id__in=[*heads])
    rows = {row.run.name: row for row in calls}
    return {
        name: _asked(rows[name], run, rules.get(name, ""), own[name], opened)
        for name, run in heads.items()
    }


def _asked(
    row: Call, run: RunHead, refused: str, own: Mapping[str, str], opened: Mapping[str, str]
) -> Asked:
    """``own``: the run's own refs with their slots, since an argument may name any ref."""
    ref = next((each for each, slot in own.items() if slot == PROPOSAL), "")
    text, result = opened.get(ref, ""), str(run.slots.get(RESULT) or "")
    sent = {"args": {"arguments": text}} if text == TOMBSTONE else _read(text)
    args = sent.get("args")

    def fact(name: str, value: Any) -> FactView:
        is_ref = isinstance(value, str) and value in own
        said = _text(opened[value] if is_ref else value)
        at, erased = value if is_ref else ref, said == TOMBSTONE
        return FactView(slot=name, label=_text(name), value=said, ref=at, erased=erased)

    code, sealed = run.reason or ("", "")
    rule = run.held_by or refused or code
    return Asked(
        agent=row.agent,
        tool=row.tool or _text(sent.get("tool", ""))[:TOOL_CHARS_MAX],
        verdict=_verdict(row),
        rule=rule,
        why=_why(row, rule) or (_text(sealed) if rule == code and rule in REASONS else ""),
        args=tuple(fact(*each) for each in args.items()) if isinstance(args, dict) else (),
        result=fact(RESULT, result) if result in own else None,
        is_erased=text == TOMBSTONE,
        ref=ref,
    )


def _verdict(row: Call) -> str:
    try:
        now = decode_snapshot(bytes(row.run.snapshot))
    except VerificationError:  # damage, which is named where it is found
        return UNKNOWN
    return verdict_of(row.run, now, programs.shape_of(row.run))


def _why(row: Call, rule: str) -> str:
    if not rule or rule in RULES:
        return ""
    try:
        program = programs.program_of(row.run)
    except VerificationError:
        return ""
    return next((r.why for r in (*program.rules, *program.policy.rules) if r.id == rule), "")


def _read(text: str) -> Mapping[str, Any]:
    """The JSON that was sent, each number as it was written; nothing where it is none."""
    try:
        found = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _cut(text: str) -> str:
    return text if len(text) <= BRIEF_CHARS_MAX else f"{text[: BRIEF_CHARS_MAX - 1].rstrip()}…"


def _text(value: Any) -> str:
    """A value as pages can show it: a list with commas, what is nested as JSON."""
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
