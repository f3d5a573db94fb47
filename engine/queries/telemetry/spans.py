"""One span for each envelope: declared names, hashes and numbers, never sealed text.

Every attribute is of a closed list. What a document, a model, a person or a caller wrote is in
none of them, so nothing has to recognise personal data.
"""

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.core.exceptions import ValidationError
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from engine.application import codes
from engine.models import Run
from engine.runtime.chains import OBSERVATION
from engine.store import actors, programs, sql
from engine.store.logs import LogLine
from engine.store.records import part_of
from nanovm_core.agents import CHAIN, EVENTS, RESERVED, STATES
from nanovm_core.core import lifecycle
from nanovm_core.core.canonical import INTEGER_MAX
from nanovm_core.core.envelope import LOG_RUN, body_of, canonical_hash
from nanovm_core.core.events import Event
from nanovm_core.core.messages import NOTHING
from nanovm_core.errors import VerificationError
from nanovm_core.verify import KINDS

# The conventions of the GenAI names.
SCOPE: Final = InstrumentationScope("nanovm", "1", "https://opentelemetry.io/schemas/1.44.0")
OF_STATES: Final = frozenset((*lifecycle.STATES, *STATES))
OF_EVENTS: Final = EVENTS.union(
    (each.__name__ for each in Event.__subclasses__()), (event for _, event in lifecycle.TABLE)
)
VERDICTS: Final = ("ACCEPTED", "BLOCKED", "HELD", "IGNORED", "SUSPENDED")
OUTCOMES: Final = frozenset(state.rpartition(".")[2] for state in OF_STATES).union(
    ("authorized", "done", "passed", "proposed", "refused", "waiting")
)
BAD: Final = ("erasure_refused", "failed", "integrity", "refused")  # kinds and outcomes
PLAIN, FAILED = Status(StatusCode.UNSET), Status(StatusCode.ERROR)
SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_HASH = re.compile("[0-9a-f]{64}")
_INTENT = (
    "SELECT bytes, hash FROM pipeline_envelope WHERE workspace_id = %s AND run = %s AND n < %s"
    " AND kind = 'intent' ORDER BY n DESC LIMIT 1"
)


class Log(NamedTuple):
    """A log that is exported. ``is_open``: no restore closed it."""

    id: Any  # as the database has it
    origin: str
    size: int
    created_ms: int
    is_open: bool


class Names(NamedTuple):
    """What a program and its policy declare. ``tools``: with the agents that use them, if any."""

    steps: Collection[str] = ()
    tools: Mapping[str, str] = NOTHING
    rules: Collection[str] = ()


def resource() -> Resource:
    """Who sends: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES; else the service ``nanovm``."""
    return Resource.create({"service.name": "nanovm"}).merge(OTELResourceDetector().detect())


class Spans:
    """The spans of envelopes; the same envelope gives the same span, in any process."""

    def __init__(self) -> None:
        self._resource = resource()
        self._names: dict[object, Names] = {}
        self._unknown = Names(rules=codes())

    def of(self, log: Log, line: LogLine) -> ReadableSpan:
        """The span of a stored envelope of ``log``; of damaged bytes, one that says only that."""
        body, found = body_of(line.data), canonical_hash(line.data)
        named = tuple(body.get(name) for name in ("log", "seq", "run", "n"))
        whole = (found, *named) == (line.hash, log.origin, line.seq, line.run, line.n)
        if not whole or type(line.n) is not int:
            body = {}
        at_ms = began_ms = _time(body or {"at_ms": log.created_ms})
        said = self._said(log, line, body)
        kind, key = said.get("nanovm.kind"), said.get("gen_ai.tool.call.id")
        name = kind or ("envelope" if body else "damaged")
        if key and kind in ("result", "failed") and body.get("outcome") != "waiting":
            began_ms = min(at_ms, _began_ms(log, line, key) or at_ms)
            name = f"execute_tool {said.get('gen_ai.tool.name', '')}".rstrip()
            said["gen_ai.operation.name"] = "execute_tool"
        differs = kind == OBSERVATION and "nanovm.rule" in said
        is_bad = not body or differs or kind in BAD or said.get("nanovm.outcome") in BAD
        if is_bad:
            said["error.type"] = said.get("nanovm.rule", "_OTHER")
        return ReadableSpan(
            name,
            _context(log, line.run, line.n),
            _context(log, line.run, 0) if line.n else None,
            self._resource,
            said,
            instrumentation_scope=SCOPE,
            status=FAILED if is_bad else PLAIN,
            start_time=began_ms * 1_000_000,
            end_time=at_ms * 1_000_000,
        )

    def _said(self, log: Log, line: LogLine, body: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes: what an envelope says, as far as it is declared."""
        if not body:
            return {"nanovm.log": log.origin, "nanovm.seq": line.seq, "nanovm.damaged": True}
        state, decision = part_of(body, "state"), part_of(body, "decision")
        program, policy = _hash(body.get("program")), _hash(body.get("policy"))
        names = self._known(line.run, program, policy)
        actor, tool = str(body.get("actor")), _among(names.tools, body.get("tool"))
        acts = "agent" if actor.startswith(CHAIN) else _among(RESERVED, actor)
        caller = next((each for each in (line.run, actor) if each.startswith(CHAIN)), "")
        verdict, listed = _among(VERDICTS, decision.get("verdict")), decision.get("rules")
        found = [_among(names.rules, each) for each in listed] if isinstance(listed, list) else []
        tells = verdict or line.n == 0  # of the others, the run's first span does
        said = {
            "nanovm.log": log.origin,
            "nanovm.seq": line.seq,
            "nanovm.n": line.n,
            "nanovm.envelope": line.hash,
            "nanovm.kind": _among(KINDS, body.get("kind")),
            "nanovm.step": _among(names.steps, body.get("step")),
            "nanovm.event": _among(OF_EVENTS, state.get("event", body.get("event"))),
            "nanovm.state": _among(OF_STATES, state.get("to")),
            "nanovm.verdict": verdict,
            "nanovm.rule": _among(names.rules, body.get("rule")),
            "nanovm.rules": tuple(filter(None, found)),
            "nanovm.outcome": _among(OUTCOMES, body.get("outcome")),
            "nanovm.actor": acts,
            "nanovm.program": program if tells else "",
            "nanovm.policy": policy if tells else "",
            "gen_ai.agent.name": names.tools.get(tool)
            or _among(actors.agents(), caller.removeprefix(CHAIN)),
            "gen_ai.agent.id": f"{_trace(log.origin, caller):032x}" if caller else "",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": _hash(body.get("idempotency_key")),
        }
        return {key: value for key, value in said.items() if value not in ("", ())}

    def _known(self, run: str, program: str, policy: str) -> Names:
        """What a run's program and policy declare; only codes, where they are not those named."""
        found = self._names.get((program, policy))
        if found is None and program and policy and run != LOG_RUN:
            with suppress(Run.DoesNotExist, VerificationError, ValidationError):
                own = programs.program_of(Run.objects.select_related("terms").get(id=run))
                if (own.hash, own.policy.hash) == (program, policy):
                    usual = "" if programs.is_gate(own) else own.agent
                    tools = {name: own.acting(name, usual) for name in own.tools}
                    rules = codes().union(each.id for each in (*own.rules, *own.policy.rules))
                    found = self._names[program, policy] = Names(own.steps, tools, rules)
        return found or self._unknown


def _began_ms(log: Log, line: LogLine, key: object) -> int:
    """When the newest intent of a chain before was sealed, if it has this key; else 0."""
    rows = sql.execute(_INTENT, (log.id, line.run, line.n))
    data, leaf = (sql.blob(rows[0][0]), rows[0][1]) if rows else (b"", "")
    body = body_of(data) if canonical_hash(data) == leaf else {}
    return _time(body) if body.get("idempotency_key") == key else 0


@lru_cache(maxsize=1_024)
def _trace(log: str, chain: str) -> int:
    """The UUID of a run or a log; of another chain, 16 bytes of SHA-256 over both names."""
    with suppress(ValueError):
        return UUID(chain).int or 1
    return int.from_bytes(sha256(f"{log}\0{chain}".encode(errors="replace")).digest()[:16])


def _context(log: Log, chain: str, n: object) -> SpanContext:
    """The ids of an envelope's span: its own is 8 bytes of SHA-256 over log, chain and n."""
    digest = sha256(f"{log.origin}\0{chain}\0{n}".encode(errors="replace")).digest()
    trace = _trace(log.origin, str(log.id) if chain == LOG_RUN else chain)
    return SpanContext(trace, int.from_bytes(digest[:8]) or 1, False, SAMPLED)


def _among(known: Collection[str], value: object) -> str:
    return value if isinstance(value, str) and value in known else ""


def _hash(value: object) -> str:
    return value if isinstance(value, str) and _HASH.fullmatch(value) else ""


def _time(body: Mapping[str, Any]) -> int:
    at_ms = body.get("at_ms")
    return at_ms if type(at_ms) is int and 0 <= at_ms <= INTEGER_MAX // 1_000 else 0
