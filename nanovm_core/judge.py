"""Dry verdicts: the gate's decision on each proposal; nothing is called or stored."""

import re
from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import NamedTuple

from nanovm_core.core.authority import policy
from nanovm_core.core.authority.budget import settle
from nanovm_core.core.authority.origin import ORIGINS, Origins
from nanovm_core.core.canonical import Json, parse_untrusted, written
from nanovm_core.core.events import ProposalReceived
from nanovm_core.core.gate import Facts
from nanovm_core.core.messages import Slots
from nanovm_core.core.program import MODEL, Program
from nanovm_core.core.proposals import FAULTS, NOT_A_CALL, Call, parsed, read_proposal
from nanovm_core.errors import CanonicalError, RefusedError
from nanovm_core.ledger.memory import InMemoryLedger

LINE_BYTES_MAX = 65_536  # four proposals; its context may be larger than the call itself
SEARCH_BYTES_MAX = 4_194_304  # how far the id of a line that cannot be read is looked for
ACCEPTED, BLOCKED = "ACCEPTED", "BLOCKED"
SLOTS = "slots."

_CONTEXT = ("slots", "origin", "workspace", "agent", "at_ms")
_ERRED = "POL-002"
_PROPOSAL = ProposalReceived.__name__
# A string, also one without an end, so that the search stays linear; a bracket; or anything else.
_TOKEN = re.compile(rb'"(?>(?:[^"\\]++|\\.)*)"?|[\[{]|[\]}]|[:,]|[^\s"\[\]{}:,]++', re.DOTALL)


class Verdict(NamedTuple):
    """The verdict on one line; ``rule`` is the code that refused, or the rules that allowed.

    ``id`` is the line's own where that is a string or an integer, else ``line N``.
    """

    id: str | int
    verdict: str
    rule: str
    why: str


class _Context(NamedTuple):
    """The context of a proposal, from its line."""

    slots: Slots
    origins: Origins
    workspace: str
    agent: str
    at_ms: int


def judge(program: Program, lines: Iterable[bytes]) -> Iterator[Verdict]:
    """Judge proposals in order, each as a run of its own, on one ledger.

    A line is ``{"id", "tool", "args", "context"?}``. The context ``{"slots", "origin",
    "workspace", "agent", "at_ms"}`` has the results of the deterministic steps, their origins
    (else those that the program declares), whose accounts and windows count, and the time (else
    that of the line before, at first 0). An accepted call is booked
    as done, a refused one uses up nothing, and a hold is BLOCKED: it waits for a person. So is a
    suspension, which stops no other line. A slot
    that a rule reads and the context leaves out is missing, and an error denies. Rules at
    admission are evaluated where the context has every slot that they read. An unreadable line
    is a BLOCKED proposal too.
    """
    judged = _Judge(program)
    for number, line in enumerate(lines, 1):
        yield judged.verdict(line, number)


class _Judge:
    """One pass over the lines: the ledger of each workspace, and the time."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._everybody = InMemoryLedger()
        self._ledgers: dict[str, InMemoryLedger] = {}
        self._at_ms = 0
        models = [step for step in program.steps.values() if step.kind == MODEL]
        self._accepts = tuple({tool for step in models for tool in step.accepts})
        rules = (*program.rules, *program.policy.rules)
        named = policy.Named((), (*program.facts, *program.policy.facts))
        self._read, _ = policy.read_by(rules, named)
        paths, _ = policy.read_by([rule for rule in rules if rule.at == policy.ADMISSION], named)
        self._admission = {path[len(SLOTS) :] for path in paths if path.startswith(SLOTS)}
        self._admission -= program.advice.slots  # where one is left out, the rules on it deny

    def verdict(self, line: bytes, number: int) -> Verdict:
        """Judge a line and book its call."""
        name: str | int | None = None
        try:
            try:
                value = _read(line)
            except RefusedError:
                name = _found_id(line)
                raise
            name = _id(value.pop("id", None))
            rules = self._judged(value)
        except RefusedError as error:
            verdict, rule, why = BLOCKED, error.code, error.text
        else:
            verdict, rule = ACCEPTED, ", ".join(rules)
            why = f"Every check holds; allowed by {rule}."
        return Verdict(f"line {number}" if name is None else name, verdict, rule, why)

    def _judged(self, value: dict[str, Json]) -> tuple[str, ...]:
        """The rules that allow a proposal; it is booked.

        Raises:
            RefusedError: whatever the gate says; POL-020 where it is held.
        """
        context = self._context(value.pop("context", {}))
        self._at_ms = context.at_ms
        new = InMemoryLedger(context.workspace, beside=self._everybody)
        ledger = self._ledgers.setdefault(context.workspace, new)
        gate = self._program.gate
        try:
            call = read_proposal(written(value))
            facts = self._facts(call, context, ledger)
            allowed = gate.dry_run(call, facts, self._accepts)
        except RefusedError as error:
            if not error.code.startswith("BUD-"):  # it waits for money, and is no refusal
                self._record(ledger, context, "refused", {"state": {"event": _PROPOSAL}})
            raise self._explained(error, context) from error
        known = facts.slots.keys() >= self._admission  # what rules at admission read
        hold = (gate.admit(facts).hold if known else None) or allowed.hold
        if hold is not None and hold.outcome == policy.SUSPEND:
            text = f"It suspends the agent: {hold.why} (rule {hold.id})"
            raise RefusedError(policy.SUSPENDED, text)
        if hold is not None:
            raise RefusedError("POL-020", f"Held for a person: {hold.why} (rule {hold.id})")
        taken = gate.reserve(gate.need(call.tool, allowed.args), facts)
        for changes in (taken, settle(taken)):
            ledger.settle(context.agent, changes)
        spent = {name: amount for name, amount, _ in taken}
        self._record(ledger, context, "intent", {"tool": call.tool})
        self._record(ledger, context, "result", {"tool": call.tool, "budget": {"spent": spent}})
        return allowed.rules

    def _record(
        self, ledger: InMemoryLedger, context: _Context, kind: str, body: dict[str, object]
    ) -> None:
        ledger.record(self._program, context.agent, kind, context.at_ms, body)

    def _facts(self, call: Call, context: _Context, ledger: InMemoryLedger) -> Facts:
        values = (*context.slots.values(), *call.args.values())
        return Facts(
            slots=context.slots,
            origins=context.origins,
            ledger=ledger.left(self._program, context.agent, values),
            counts=ledger.counts(self._program, context.agent, context.at_ms),
            agent=context.agent,
            at_ms=context.at_ms,
        )

    def _context(self, value: Json) -> _Context:
        if not isinstance(value, dict) or not value.keys() <= {*_CONTEXT}:
            text = f"A context is an object with {', '.join(_CONTEXT)}, and no more."
            raise RefusedError(NOT_A_CALL, text)
        slots, at_ms = _slots(value.get("slots", {})), value.get("at_ms", self._at_ms)
        origins = {**self._program.declared(slots), **_origins(value.get("origin", {}))}
        workspace, agent = value.get("workspace", ""), value.get("agent", "")
        if not isinstance(workspace, str) or not isinstance(agent, str) or type(at_ms) is not int:
            text = "In a context, workspace and agent are texts, and at_ms is an integer."
            raise RefusedError(NOT_A_CALL, text)
        return _Context(slots, origins, workspace, agent or self._program.agent, at_ms)

    def _explained(self, error: RefusedError, context: _Context) -> RefusedError:
        """The error; POL-002 names the slots that the context leaves out."""
        missing = sorted(self._read - {f"slots.{name}" for name in context.slots})
        named = ", ".join(path for path in missing if path.startswith("slots."))
        if error.code != _ERRED or not named:
            return error
        return RefusedError(_ERRED, f"{error.text} The context leaves out {named}.")


def _read(line: bytes) -> dict[str, Json]:
    try:
        value = parsed(line, LINE_BYTES_MAX)
    except CanonicalError as error:
        code = FAULTS.get(error.code, NOT_A_CALL)
        raise RefusedError(code, f"The line is not strict JSON: {error.text}.") from error
    if not isinstance(value, dict):
        raise RefusedError(NOT_A_CALL, "A line is an object with id, tool, args and a context.")
    return value


def _slots(value: Json) -> Slots:
    if not isinstance(value, dict):
        raise RefusedError(NOT_A_CALL, "In a context, slots is an object: slot → value.")
    clear = {name: found for name, found in value.items() if isinstance(found, str | int)}
    if len(clear) < len(value):
        text = "In a context, a slot holds a text, an integer or a boolean."
        raise RefusedError(NOT_A_CALL, text)
    return MappingProxyType(clear)


def _origins(value: Json) -> Origins:
    found = value if isinstance(value, dict) else {}
    origins = {name: origin for name, origin in found.items() if origin in ORIGINS}
    if origins != value:
        text = f"In a context, origin is an object: slot → one of {', '.join(ORIGINS)}."
        raise RefusedError(NOT_A_CALL, text)
    return {name: str(origin) for name, origin in origins.items()}


def _id(value: Json) -> str | int | None:
    """A line's id; None where it has none, or one of another type."""
    return value if isinstance(value, str) or type(value) is int else None


def _found_id(line: bytes) -> str | int | None:
    """The first id at the top level of a line that is not JSON, found by its tokens."""
    depth, before = 0, (b"", b"")
    for match in _TOKEN.finditer(line, 0, SEARCH_BYTES_MAX):
        token = match[0]
        if depth == 1 and before == (b'"id"', b":"):
            try:
                return _id(parse_untrusted(token, size_max=LINE_BYTES_MAX, depth_max=0))
            except CanonicalError:
                return None
        depth += (token in (b"[", b"{")) - (token in (b"]", b"}"))
        before = (before[1], token)
    return None
