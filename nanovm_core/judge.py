"""Dry verdicts: what the gate says to each proposal, with nothing called and nothing stored."""

import json
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from nanovm_core.books import Books
from nanovm_core.budget import settle
from nanovm_core.canonical import Json, encode, parse_untrusted
from nanovm_core.errors import CanonicalError, RefusedError
from nanovm_core.gate import Facts
from nanovm_core.messages import Recorded, Scalar
from nanovm_core.policy import ADMISSION
from nanovm_core.program import MODEL, Program
from nanovm_core.proposals import FAULTS, NOT_A_CALL, Call, read_proposal

LINE_BYTES_MAX = 65_536  # four proposals; its context may be larger than the call itself
NAME_CHARS_MAX = 256
LINE_DEPTH_MAX = 18  # a proposal stands two levels deep in its line
ACCEPTED, BLOCKED = "ACCEPTED", "BLOCKED"
SLOTS = "slots."


class Verdict(NamedTuple):
    """The verdict on one line; ``rule`` is the code that refused, or the rules that allowed."""

    id: str
    verdict: str
    rule: str
    why: str


class _Line(NamedTuple):
    id: str
    call: Call
    slots: Mapping[str, Scalar]
    workspace: str
    agent: str
    at_ms: int


def judge(program: Program, lines: Iterable[bytes]) -> Iterator[Verdict]:
    """Judge proposals in order: each a run of its own, all on the same books.

    A line is ``{"id", "tool", "args", "context"?}``; context ``{"slots", "workspace", "agent",
    "at_ms"}`` says what deterministic steps produced, whose accounts and windows count, and
    when it is (the time of the line before, at first 0). What is accepted is booked as done:
    it uses up shared accounts and fills windows. What is refused uses up nothing. A hold is
    BLOCKED: it waits for a person. Rules of admission are judged where the context has any of
    the slots they read. An unreadable line is BLOCKED like any other proposal that is none.
    """
    judge_one = _Judge(program).verdict
    for number, line in enumerate(lines, 1):
        yield judge_one(line, number)


class _Judge:
    """One pass over the lines: their books, by workspace, and the time."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._books: dict[str, Books] = {}
        self._everybody = Books()
        self._at_ms = 0
        steps = program.steps.values()
        self._accepts = tuple(
            {tool for step in steps if step.kind == MODEL for tool in step.accepts}
        )
        rules = (*program.rules, *program.policy.rules)
        paths = {path for rule in rules if rule.at == ADMISSION for path in rule.when.variables}
        self._admission = {
            path.removeprefix("slots.") for path in paths if path.startswith("slots.")
        }

    def verdict(self, line: bytes, number: int) -> Verdict:
        """The verdict on a line, booked."""
        name = _name(line) or f"line {number}"
        try:
            value = _read(line)
            return self._judged(_line(value, name, self._program.agent, self._at_ms))
        except RefusedError as error:
            return Verdict(name, BLOCKED, error.code, error.text)

    def _judged(self, line: _Line) -> Verdict:
        self._at_ms = line.at_ms
        books = self._books.setdefault(line.workspace, Books())
        try:
            return self._accepted(line, books)
        except RefusedError:
            books.record(Recorded(line.at_ms, line.call.tool, "refused", line.agent))
            raise

    def _accepted(self, line: _Line, books: Books) -> Verdict:
        gate, facts = self._program.gate, self._facts(line, books)
        if self._admission & line.slots.keys():
            admitted = gate.admit(facts)
            if admitted.hold is not None:
                raise _held(admitted.hold.why, admitted.hold.id)
        allowed = gate.authorize(line.call, facts, self._accepts)
        if allowed.hold is not None:
            raise _held(allowed.hold.why, allowed.hold.id)
        taken = gate.reserve(gate.need(line.call.tool, allowed.args), facts)
        shared = [each for each in taken if each.account in facts.ledger]
        for change in (shared, settle(shared)):
            local = [each for each in change if not each.account.startswith("global/")]
            books.settle(line.agent, local)
            self._everybody.settle("", [each for each in change if each not in local])
        for outcome in ("called", "done"):
            books.record(Recorded(line.at_ms, line.call.tool, outcome, line.agent))
        rules = ", ".join(allowed.rules)
        return Verdict(line.id, ACCEPTED, rules, f"Every check holds; allowed by {rules}.")

    def _facts(self, line: _Line, books: Books) -> Facts:
        values = (*line.slots.values(), *line.call.args.values())
        ledger = dict(books.ledger(self._program, line.agent, values))
        common = self._everybody.ledger(self._program, "", values)
        ledger |= {name: left for name, left in common.items() if name.startswith("global/")}
        return Facts(
            slots=line.slots,
            ledger=ledger,
            history=books.history,
            agent=line.agent,
            at_ms=line.at_ms,
        )


def _held(why: str, rule: str) -> RefusedError:
    return RefusedError("POL-020", f"Held for a person: {why} (rule {rule})")


def _name(line: bytes) -> str:
    """The line's id, whatever else is wrong with the line; empty where it has none."""
    try:
        value = json.loads(line) if len(line) <= LINE_BYTES_MAX else None
    except (ValueError, RecursionError):
        return ""
    found = value.get("id") if isinstance(value, dict) else None
    return str(found)[:NAME_CHARS_MAX] if isinstance(found, str | int) else ""


def _read(line: bytes) -> dict[str, Json]:
    try:
        value = parse_untrusted(line, size_max=LINE_BYTES_MAX, depth_max=LINE_DEPTH_MAX)
    except CanonicalError as error:
        code = FAULTS.get(error.code, NOT_A_CALL)
        raise RefusedError(code, f"The line is refused as JSON: {error.text}.") from error
    if not isinstance(value, dict):
        raise RefusedError(NOT_A_CALL, "A line is an object with id, tool, args and a context.")
    return value


def _line(value: dict[str, Json], name: str, agent: str, at_ms: int) -> _Line:
    context = value.get("context", {})
    if not isinstance(context, dict) or set(context) - {"slots", "workspace", "agent", "at_ms"}:
        raise RefusedError(NOT_A_CALL, "A context has slots, workspace, agent and at_ms, no more.")
    rest = {key: part for key, part in value.items() if key not in ("id", "context")}
    call = read_proposal(encode(rest))
    slots, now_ms = context.get("slots", {}), context.get("at_ms", at_ms)
    if not isinstance(slots, dict) or type(now_ms) is not int:
        raise RefusedError(NOT_A_CALL, "context.slots is an object, context.at_ms an integer.")
    clear: dict[str, Scalar] = {}
    for slot, found in slots.items():
        if not isinstance(found, str | int):
            raise RefusedError(NOT_A_CALL, f"The slot {slot!r} is no text, integer or boolean.")
        clear[slot] = found
    workspace = _text(context, "workspace", "")
    return _Line(
        name, call, MappingProxyType(clear), workspace, _text(context, "agent", agent), now_ms
    )


def _text(value: Mapping[str, Json], key: str, default: str) -> str:
    found = value.get(key, default)
    if not isinstance(found, str):
        raise RefusedError(NOT_A_CALL, f"{key} must be a text.")
    return found
