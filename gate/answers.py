"""A call's run as the reply about it: read from what is sealed, the same at each repeat."""

import json
import tomllib
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nanovm_core
from engine.models import Run
from engine.queries import runs, why
from engine.runtime import warrants
from engine.runtime.agent_moves import HALTED
from engine.store import programs, records
from engine.vault import secret_store
from gate import replies
from gate.application import RESULT
from gate.replies import ALLOWED, CHECKS, DONE, FAILED, HELD, REFUSED, RUNNING, UNKNOWN, Reply
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.policy import UNKNOWN_OUTCOME
from nanovm_core.core.canonical import INTEGER_MAX, Number
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.gate import why as checks
from nanovm_core.core.messages import Snapshot
from nanovm_core.core.program import Program
from nanovm_core.core.proposals import FAULTS

RULES: Mapping[str, Mapping[str, str]] = replies.REASONS | tomllib.loads(
    Path(str(nanovm_core.__file__)).with_name("rules.toml").read_text(encoding="utf-8")
)
GAVE_UP = "POL-023"  # a person gave up on a call that may have been made
DENIED = "POL-003"  # a rule of the policy did
OF_PAYMENTS = (GAVE_UP, "POL-022")  # what is sealed with them speaks of a payment
INSTEAD = {life.KILLED: "suspended", life.FAILED: "refused"}  # whose rule tells why a run ended
CALLED = 2  # intents of a run whose call was begun: the question to the agent, and the call


def reply_of(run: Run, *, hands_out: bool = False) -> Reply:
    """The reply about a call, by its run's value; ``hands_out``: to whom its warrant was given."""
    now, program = decode_snapshot(bytes(run.snapshot)), programs.program_of(run)
    sealed = [records.body_of(each.data) for each in records.stored_envelopes(run.name)]
    verdict, found = verdict_of(run, now, program), _checks(run, sealed)
    rule, text = _reason(now, sealed, program, found)
    intents = [str(each["tool"]) for each in sealed if each["kind"] == "intent"]
    states = {each.name: each.state for each in found} or dict.fromkeys(CHECKS, checks.NOT_REACHED)
    if not found and verdict == REFUSED and (rule in FAULTS.values() or rule[:4] == "CAP-"):
        states["schema" if rule in FAULTS.values() else "permission"] = checks.REFUSED
    todo = "approved" if verdict == ALLOWED and not is_taken(now, program) else verdict
    of_rule = RULES.get(rule, {}).get("next", "") if verdict == REFUSED else ""
    token = b""
    tool = intents[-1] if now.begun >= CALLED else run.about or run.call.tool
    if hands_out and now.owed is not None and is_taken(now, program):
        token = warrants.token(program, now, now.owed)
    return Reply(
        verdict=verdict,
        tool=tool,
        run=run.code,
        seq=int(sealed[-1].get("seq", 0)),
        rule=rule,
        why=f"{text} {_detail(program, tool, rule, found)}".strip(),
        checks=states,
        result=_result(now) if verdict == DONE else None,
        warrant=urlsafe_b64encode(token).decode(),
        until_ms=_until_ms(now, program, verdict),
        next=of_rule or replies.NEXT.get(todo, ""),
    )


def is_taken(now: Snapshot, program: Program) -> bool | None:
    """Whether who asked has the warrant already; None where the run owes them none."""
    if now.owed is None or now.owed.tool not in program.grants or program.tools[now.owed.tool].at:
        return None
    return bool(now.awaits) if now.awaits or now.state == life.ACTIVE else None


def verdict_of(run: Run, now: Snapshot, program: Program) -> str:
    """What became of a call by its run's value: one of ``replies.VERDICTS``."""
    called = now.begun >= CALLED
    if now.state == life.COMPLETED:
        return DONE
    if now.state in life.TERMINAL:
        is_open = run.quarantined or (now.reason or "")[:1] == (GAVE_UP,)
        return (UNKNOWN if is_open else FAILED) if called else REFUSED
    if now.state == life.PAUSED and (now.awaits or run.begun_ms is not None):
        return RUNNING
    if now.state in life.SUSPENDED:
        return UNKNOWN if now.held_by == UNKNOWN_OUTCOME else HELD
    return RUNNING if is_taken(now, program) is None else ALLOWED


def _reason(
    now: Snapshot,
    sealed: Sequence[Mapping[str, Any]],
    program: Program,
    found: Sequence[checks.Check],
) -> tuple[str, str]:
    """The rule that decided last, and its sentence."""
    whys = {rule.id: rule.why for rule in (*program.rules, *program.policy.rules)}
    code, text = now.reason or ("", "")
    if now.held_by in whys or not code:
        named = (now.held_by,) if now.held_by else now.allowed_by
        return ", ".join(named), " ".join(whys.get(each, "") for each in named)
    before = [each for each in sealed if each["kind"] == INSTEAD.get(now.state)]
    if now.state == life.KILLED:  # by a person, unless its agent was suspended
        before = [each for each in before[-1:] if each["rule"] == HALTED]
    if before and now.begun < CALLED:
        code = str(before[-1]["rule"])
    if (before and now.begun < CALLED) or code in OF_PAYMENTS:
        text = f"{RULES[code]['title']}. {RULES[code]['why']}"
    every = [each for check in found for each in check.findings]
    denying = (each for each in every if each.check == "rule" and each.state == checks.REFUSED)
    return next(((each.subject, each.text) for each in denying if code == DENIED), (code, text))


def _detail(program: Program, tool: str, code: str, found: Sequence[checks.Check]) -> str:
    """What a check that refused says of this call, in the program's words: no value of the call."""
    faults = (each for check in found for each in check.findings if each.code == code)
    if code[:4] != "CAP-" or tool not in program.grants or (fault := next(faults, None)) is None:
        return ""
    args, rate = program.tools[tool].args, program.grants[tool].rate
    if fault.check == "rate" and rate is not None:
        return f"At most {rate.calls} calls in {rate.within_ms / 3_600_000:g} h, by all agents."
    if code == "CAP-003":
        return f"{tool} takes {', '.join(args) or 'none'}."
    spec = args.get(fault.subject)
    if fault.check != "schema" or spec is None:
        return fault.refusal
    one_of = f"It is one of {', '.join(map(str, spec.one_of or ()))}."
    usual = "It is a text." if spec.type == "ref" else checks.described(spec)
    return f"{fault.subject}: {one_of if spec.type == 'string' and spec.one_of else usual}"


def _checks(run: Run, sealed: Sequence[Mapping[str, Any]]) -> Sequence[checks.Check]:
    """What the five said of the call; nothing where none could judge it."""
    head = runs.head_of(run)
    return next(filter(None, (why.checks_of(head, each) for each in reversed(sealed))), ())


def _result(now: Snapshot) -> Any:
    """The JSON that the tool answered; None where it gave none, or it is erased."""
    data = secret_store.opened_slot(now.slots, RESULT)
    return json.loads(data, parse_int=_exact, parse_float=Number) if data else None


def _exact(text: str) -> int | Number:
    """An integer; one that no JSON writer takes is a Number."""
    return int(text) if len(text) <= len(str(INTEGER_MAX)) else Number(text)


def _until_ms(now: Snapshot, program: Program, verdict: str) -> int:
    if verdict == HELD and now.state == life.APPROVAL:
        return now.suspended_ms + program.limits.approval_ttl_ms
    if verdict == ALLOWED and now.owed is not None and now.owed.warrant is not None:
        return min(now.deadline_ms, now.owed.warrant.expires_ms)  # while both hold
    return 0
