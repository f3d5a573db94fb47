"""Why a call was taken, held or refused: the gate's own checks, run again on what is sealed."""

from collections.abc import Mapping
from typing import Any

from engine.clock import now_ms
from engine.models import AdapterCall, Envelope, Run
from engine.queries.runs import RunHead, body_of, time_of
from engine.queries.secrets import open_secret
from engine.runtime import warrants
from engine.store import ledgers, programs, tallies
from engine.store.records import part_of
from nanovm_core.core.authority.budget import WORKSPACE
from nanovm_core.core.authority.policy import ADMISSION, CHANGED_SINCE, HOLD, PolicyRule, in_force
from nanovm_core.core.envelope import canonical_hash, decode_snapshot
from nanovm_core.core.gate import Facts
from nanovm_core.core.gate.why import Check, Finding, five
from nanovm_core.core.messages import NOTHING, Scalar, Snapshot
from nanovm_core.core.program import AUTHORIZED, Program
from nanovm_core.core.proposals import Call, read_proposal
from nanovm_core.errors import RefusedError, VerificationError


def checks_of(run: RunHead, body: Mapping[str, Any]) -> tuple[Check, ...]:
    """The five checks of the decision that an envelope seals; nothing where it seals none.

    The checks are those that decide, run again under the run's own program and policy: on the
    slots of its snapshot, which hold what they held, and on the accounts as the payment's
    sealed intent tells them, or as they are now where it was not made. The audit compares the
    log with the adapters' own book.
    """
    row = Run.objects.select_related("workspace").get(id=run.id)
    try:
        now = decode_snapshot(bytes(row.snapshot))
        program = programs.program_of(row)
        call = _call(now, program, body)
    except (VerificationError, RefusedError):
        return ()  # damage, or no tool call at all: the page says so elsewhere
    if call is None:
        return ()
    accepts = {tool for step in program.steps.values() for tool in step.accepts}
    found = program.gate.explain(call, _facts(row, now, program, body), tuple(accepts))
    return five([*found, _recorded(run, call.tool)])


def checks_at(run: RunHead, number: int) -> tuple[Check, ...]:
    """``checks_of`` for the run's event ``number``, counted from 1."""
    found = Envelope.objects.filter(run=str(run.id), n=number - 1).first()
    return checks_of(run, body_of(found.bytes)) if found is not None else ()


def _recorded(run: RunHead, tool: str) -> Finding:
    """Whether the log recorded each call of a tool before the adapter, by its own book, made it."""
    intents = Envelope.objects.filter(run=str(run.id), kind="intent")
    sealed = {str(body["idempotency_key"]): body for body in map(_intent, intents) if body}
    made = AdapterCall.objects.filter(run_id=run.id, tool=tool).order_by("number")
    found = [(sealed.get(key), at_ms) for key, at_ms in made.values_list("key", "at_ms")]
    if any(body is None or body["at_ms"] > at_ms for body, at_ms in found):
        text = "The adapter made a call that no earlier event records."
        return Finding("audit", tool, False, text)
    events = ", ".join(map(str, sorted({body["n"] + 1 for body, _ in found if body})))
    if not events:
        return Finding("audit", tool, None, "The adapter has made no such call.")
    text = f"Recorded before the adapter made the call: event {events}."
    return Finding("audit", tool, True, text)


def _intent(envelope: Envelope) -> Mapping[str, Any] | None:
    """The body of a stored intent that has a key, where its bytes have its hash."""
    data = bytes(envelope.bytes)
    body = body_of(data) if canonical_hash(data) == envelope.hash else {}
    return body if "idempotency_key" in body else None


def _call(now: Snapshot, program: Program, body: Mapping[str, Any]) -> Call | None:
    """The call that the envelope is about: judged and in the snapshot, or refused and kept."""
    refs = body.get("in")
    if body.get("kind") == "refused" and isinstance(refs, dict):
        text = open_secret(str(refs.get("proposal", "")))
        return read_proposal(text.encode("utf-8", "surrogatepass")) if text else None
    step = program.steps.get(str(body.get("step")))
    decides = step is not None and (step.authorizes or step.call == AUTHORIZED)
    if not decides or body.get("kind") not in ("result", "intent", "suspended"):
        return None
    return Call(*now.call) if now.call else _paid_call(now, program)


def _paid_call(now: Snapshot, program: Program) -> Call | None:
    """The call that was made, as its sealed intent tells it: the run itself has done with it."""
    steps = [name for name, step in program.steps.items() if step.call == AUTHORIZED]
    rows = Envelope.objects.filter(run=now.run, kind="intent").order_by("-n")
    for data in rows.values_list("bytes", flat=True):
        body = body_of(data)
        tool, args = program.tools.get(str(body.get("tool"))), body.get("in")
        if body.get("step") in steps and tool is not None and isinstance(args, dict):
            return Call(tool.name, {name: args[name] for name in args if name in tool.args})
    return None


def _facts(row: Run, now: Snapshot, program: Program, body: Mapping[str, Any]) -> Facts:
    sealed = _sealed_ledger(row)
    at_ms = time_of(body) or 0
    return Facts(
        slots=now.slots,
        ledger=sealed or ledgers.remaining(row.workspace, program, now),
        counts=tallies.counts_of(row.workspace, program, now.agent, at_ms),
        agent=now.agent,
        at_ms=at_ms,
        approved=_approved(row, program, body),
        revoked=warrants.revoked(row.workspace, program),
        origins=now.origins,
    )


def _approved(row: Run, program: Program, body: Mapping[str, Any]) -> tuple[str, ...]:
    """The holds that a person lifted before this envelope; on a proposal, those of the last one."""
    rules = (*program.rules, *program.policy.rules)
    admission = {rule.id for rule in rules if rule.at == ADMISSION}
    lifted: set[str] = set()
    held: tuple[str, ...] = ()
    before = Envelope.objects.filter(workspace_id=row.workspace_id, run=str(row.id))
    rows = before.filter(n__lte=body.get("n", 0), kind__in=("suspended", "resumed", "result"))
    for data in rows.order_by("n").values_list("bytes", flat=True):
        past = body_of(data)
        if past.get("outcome") == "proposed":
            lifted &= admission
        elif past.get("kind") == "suspended":
            held = tuple(part_of(past, "decision").get("rules", ()))
        elif part_of(past, "state").get("event") == "Approved":
            lifted |= set(held)
    return tuple(sorted(lifted))


def _sealed_ledger(row: Run) -> dict[str, int]:
    """What the shared accounts had before the payment, by the intent that reserved it."""
    rows = Envelope.objects.filter(workspace_id=row.workspace_id, run=str(row.id), kind="intent")
    for data in rows.order_by("-n").values_list("bytes", flat=True):
        budget = body_of(data).get("budget")
        if isinstance(budget, dict) and (left := budget.get("left")):
            reserved = budget.get("reserved", {})
            return {name.partition("@")[0]: left[name] + reserved.get(name, 0) for name in left}
    return {}


def holding(
    run: RunHead,
    tool: str = "",
    args: Mapping[str, Any] = NOTHING,
    fresh: Mapping[str, Scalar] = NOTHING,
) -> tuple[PolicyRule, ...]:
    """Every rule that holds the run as it is now, the one that did first; none where none does.

    Rules on proposals are asked about this call, or about the run's own where none is named. One
    that reads what is not there yet is left out. ``fresh``: slots as they would be filled now.
    """
    row = Run.objects.select_related("workspace").get(id=run.id)
    try:
        now = decode_snapshot(bytes(row.snapshot))
        program = programs.program_of(row)
    except VerificationError:
        return ()
    now = now._replace(slots={**now.slots, **fresh})
    if not tool and now.call is not None:
        tool, args = now.call
    facts = _facts(row, now, program, {"at_ms": now_ms()})
    agent = program.acting(tool, now.agent)
    left = facts.ledger.get(f"{WORKSPACE}/{args.get('currency')}")
    context = {
        **program.gate.context(facts, agent),
        "tool": tool,
        "proposal": args,
        "workspace": {} if left is None else {"left_minor": left},
    }
    found = [
        rule
        for rule in in_force(program.rules, program.policy)
        if rule.outcome == HOLD
        and rule.id not in now.approved
        and (not rule.tools or tool in rule.tools)
        and rule.when.explain(context)[0].value is True
    ]
    return tuple(sorted(found, key=lambda rule: rule.id != now.held_by)) if now.held_by else ()


def may_be_approved(row: Run) -> bool:
    """Whether the rule that holds a run lets a person lift it."""
    try:
        held_by = decode_snapshot(bytes(row.snapshot)).held_by
        program = programs.program_of(row)
    except VerificationError:
        return False  # damage, which is named where it is found
    rules = (*program.rules, *program.policy.rules)
    own = program.decider.approvable if program.decider else ()
    lifts = {r.id for r in rules if r.approvable} | {CHANGED_SINCE, *own}
    return held_by in lifts
