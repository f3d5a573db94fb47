"""What an attack tried and what came of it, in plain words made from its record."""

from collections.abc import Callable, Mapping
from typing import Any

from dashboard.templatetags.show import lower_first, money, slots, words
from dashboard.verdicts import ablation
from dashboard.verdicts.cards import Shot
from engine.queries.runs import RunHead
from engine.vault.secret_store import TOMBSTONE
from nanovm_core.core.proposals import Call, read_proposal
from nanovm_core.errors import RefusedError
from pipeline.queries.money import PaymentView
from pipeline.steps.propose.model_adapters import TOOL

TOOL_CHARS_MAX = 64  # of a name that anybody may have typed
SKIPS = {
    "seal without charge": "Report the run as finished, with nothing paid.",
    "charge without authorize": "Report the payment as made, with nothing authorized.",
    "forged intent in the outbox": "Replace the run's pending call by a forged payment.",
    "result of a step": "Report step {step} as done.",
}
ORDERS = {
    "swap the stored program": "Replace the stored program with one that has {order}.",
    "resume under a permuted program": "Resume the run with a program that has {order}.",
    "queue message of a permuted program": "Send a worker a message for a program with {order}.",
    "results in the reverse order": "Report every step as done, the last one first.",
}
GRANTED = {"skip_step": "Pending call", "reorder_steps": "The run's own order"}
ALLOWLIST = "Tool allowlist"
NO_PENDING = "No pending call"
NOT_KNOWN = "unknown: Stripe was not reachable"
WORDS = {"BLOCKED": "Stopped", "IGNORED": "Ignored", "DETECTED": "Detected"}
ENDS = ("SUCCESS", "FAILED")
BEFORE = "The duplicates came before any payment: no money was at stake."
FIRE_LATER = (
    "To see money at stake, fire this after step charge, or plan it for step charge before a start."
)
FIRE_PAID = "To see money at stake, fire this at a run that has paid."
RESTORED = "Original restored; the run continues."
ENDED = "No effect: the run has ended."


def attempt(shot: Shot) -> str:
    """What was tried, with the values it was tried with."""
    tell = ATTEMPTS.get(shot.injector)
    return slots(tell(shot)) if tell else ""


def outcome(shot: Shot) -> str:
    """What came of it, in a sentence; the model of the card's headline."""
    if shot.injector == "corrupt_hash" and "carrier" in shot.evidence:
        return _served(shot)
    if shot.verdict == "ACCEPTED" or shot.breached:
        return "It got through." if shot.breached else "Accepted: this call is allowed."
    if shot.verdict == "IGNORED" and shot.injector != "double_exec":
        return ENDED
    tell = OUTCOMES.get(shot.injector)
    return tell(shot) if tell else shot.headline


def summary(shot: Shot) -> str:
    """What came of it with the money that was at stake: the line beside the button."""
    if shot.breached:
        return "Breached: it got through"
    if shot.verdict == "IGNORED" and shot.injector != "double_exec":
        return "Ignored: the run has ended"
    tell = SUMMARIES.get(shot.injector) if shot.verdict in WORDS else None
    return slots(f"{WORDS[shot.verdict]}: {tell(shot)}") if tell else outcome(shot)


def afterwards(shot: Shot) -> str:
    """How the run stood before and after, and whether it can go on."""
    before, after = str(shot.evidence.get("before", "")), str(shot.evidence.get("after", ""))
    if not after:
        return ""
    if before != after:
        return f"{before} → {after}"
    ended = after in ENDS
    return f"{after} (unchanged)" if ended else f"{after} (unchanged); the run can continue"


def stake(shot: Shot) -> str:
    """What a duplicate would have cost, from the record; empty where the attack is no duplicate.

    Without the provider's own list nothing is said to be paid or not.
    """
    if shot.injector != "double_exec" or shot.verdict != "IGNORED" or shot.breached:
        return ""
    paid = ablation.paid(shot.evidence)
    at_stake = shot.evidence.get("at_stake") or (paid[0] if paid else {})
    if not at_stake:
        return BEFORE if "at_stake" in shot.evidence else ""
    if payments(shot.evidence) == NOT_KNOWN:
        return f"{_sum(at_stake)} was at stake. Payments: {NOT_KNOWN}."
    return f"A {'second' if paid else 'duplicate'} payment of {_sum(at_stake)} was not made."


def advice(shot: Shot) -> str:
    """Where to fire the attack to see money at stake; empty where money was."""
    if stake(shot) != BEFORE:
        return ""
    return FIRE_PAID if str(shot.evidence.get("before")) in ENDS else FIRE_LATER


def expectation(injector: str, run: RunHead, payment: PaymentView) -> str:
    """What firing it now would put at stake; empty for an attack that no payment is needed for."""
    if injector != "double_exec":
        return ""
    due = run.step in ("charge", "seal") and not run.ended
    if payment.amount_minor is not None and (payment.paid or payment.unknown or due):
        return f"At stake: a second payment of {money(payment.amount_minor, payment.currency)}."
    if run.ended:
        return "Nothing was paid."
    planned = ", or plan it for that step" if run.ready else ""
    return f"No money at stake yet. Fire this after step charge{planned}."


def granted_said(shot: Shot) -> str:
    """The heading of what the proposal is compared with."""
    return GRANTED.get(shot.injector, ALLOWLIST)


def payments(evidence: Mapping[str, Any]) -> str:
    """What Stripe's own list says was paid for an attack's run, or for all of them."""
    far = evidence.get("far_side")
    if not isinstance(far, Mapping) or not far.get("reachable"):
        return NOT_KNOWN
    paid = ablation.paid(evidence)
    sums = ", ".join(map(_sum, paid))
    return f"{len(paid)} ({sums})" if paid else "none"


def _sum(payment: Mapping[str, Any]) -> str:
    currency = str(payment["currency"])
    return money(int(payment["amount_minor"]), currency)


def _tool_wanted(shot: Shot) -> str:
    if "proposal" not in shot.evidence:
        return "Make the model call a tool. Its text is not stored: the run had ended."
    if shot.evidence["proposal"] == TOMBSTONE:
        return "Make the model call a tool. Its text was erased."
    call = _call(shot)
    if call is None:
        return "Make the model answer with bytes that are not a tool call."
    return f"Make the model call {call.tool[:TOOL_CHARS_MAX]}."


def _call(shot: Shot) -> Call | None:
    """The call that the model was made to answer with; None where the text is none."""
    proposal = str(shot.evidence.get("proposal", ""))
    try:
        return read_proposal(proposal.encode("utf-8", "surrogateescape"))
    except RefusedError:
        return None


def _copies(shot: Shot) -> str:
    times, again = _number(shot, "redeliveries"), _number(shot, "commands_again")
    commands = " and start and resume the run again" if again else ""
    return f"Deliver the run's queue message {times} more times{commands}."


def _discarded(shot: Shot) -> str:
    times, drove = _number(shot, "redeliveries"), _number(shot, "drove_the_run")
    open_ = _number(shot, "unaccounted")
    kept = f"; {drove} started the run's own next step" if drove else ""
    late = f"; {open_} not answered in time" if open_ else ""
    again = _number(shot, "commands_again") - _number(shot, "commands_taken")
    refused = f", {again} command{'s' * (again > 1)} refused" if again > 0 else ""
    discarded = f"{times - drove - open_} of {times} duplicates ignored"
    return f"No effect: {discarded}{refused}{kept}{late}."


def _corruption(shot: Shot) -> str:
    what, hit = str(shot.evidence.get("what")), shot.evidence.get("hit")
    if what.endswith("in flight"):
        where = f", at event #{hit + 1}" if isinstance(hit, int) else ""
        return f"Change one byte of the {what.removesuffix(' in flight')} in transit{where}."
    if what == "snapshot" or not isinstance(hit, int):
        return "Change the run's stored state in the database, with raw SQL."
    part = "stored hash" if what == "hash" else "stored bytes"
    return f"Change the {part} of event #{hit + 1} in the database, with raw SQL."


def _served(shot: Shot) -> str:
    """What the verifier made of a record that was altered on its way."""
    carrier = shot.evidence["carrier"]
    if shot.verdict == "ACCEPTED":
        return f"Not detected: no signed checkpoint covers this {carrier} yet."
    return f"Detected: the verifier rejects the altered {carrier}. The stored record is intact."


def _noticed(shot: Shot) -> str:
    if shot.verdict == "BLOCKED":
        return "Blocked: its hash does not match. The run continues."
    stopped = shot.evidence.get("before") != shot.evidence.get("after")
    then = "The run was stopped" if stopped else "The run's record is quarantined"
    position = shot.evidence.get("position")
    if shot.rule == "LOG-003" or not isinstance(position, int):
        return f"Detected: the run's stored state was changed. {then}."
    return f"Detected: event #{position + 1} was changed. {then}."


def _told(ways: Mapping[str, str], shot: Shot, name: str) -> str:
    """The sentence of the way that was chosen, with the step or the order that it names."""
    default = {"step": "charge", "order": "charge before authorize"}
    return ways.get(str(shot.params.get(name)), "").format_map({**default, **shot.params})


def _not_its_program(shot: Shot) -> str:
    if "results_brought" in shot.evidence:
        return "Blocked: none of these results answers a pending call."
    if shot.evidence.get("goes_on_under_its_own"):
        return f"Blocked: the stored program had been replaced. {RESTORED}"
    return "Blocked: this is not the program the run started with."


def _wanted(shot: Shot) -> str:
    """The call that was wanted, in money where its arguments name a sum."""
    if shot.evidence.get("proposal") == TOMBSTONE:
        return "a call whose text was erased"
    call = _call(shot)
    if call is None:
        return "an answer that is not a tool call"
    if call.tool == TOOL and isinstance(shot.invoice.get("amount_minor"), int):
        return _beside_the_invoice(call.args, shot.invoice)
    args = {name: value for name, value in call.args.items() if isinstance(value, str | int)}
    to = str(args.get("to", args.get("payee", "")))[:TOOL_CHARS_MAX]
    minor, major = args.get("amount_minor"), args.get("amount")
    currency = str(args.get("currency", ""))[:3]
    if isinstance(minor, int) and not isinstance(minor, bool):
        what = money(minor, currency)
    elif isinstance(major, int) and not isinstance(major, bool):
        what = f"{currency} {major:,}.00".lstrip()
    else:
        what = f"a call of {call.tool[:TOOL_CHARS_MAX]}"
    return f"{what} to {to}" if to else what


def _beside_the_invoice(args: Mapping[str, Any], invoice: Mapping[str, Any]) -> str:
    """A payment; of an argument that is not the invoice's both values: EUR 9.00 → EUR 8.99."""
    minor, currency = args.get("amount_minor"), str(args.get("currency", ""))[:3]
    a_sum = isinstance(minor, int) and not isinstance(minor, bool)
    due = {
        "amount_minor": money(invoice["amount_minor"], str(invoice.get("currency"))),
        **{name: slots(f"{{{{{name}}}}}") for name in ("payee", "memo")},
    }
    asked = {name: slots(value)[:TOOL_CHARS_MAX] for name, value in args.items()}
    asked["amount_minor"] = money(minor, currency) if a_sum else f"“{asked.get('amount_minor')}”"
    wrong = {
        name: f"{due.get(name, 'none')} → {text}"
        for name, text in asked.items()
        if name != "currency" and due.get(name) != text
    }
    first = ("amount_minor", "payee")
    said = [{**asked, **wrong}[name] for name in first if name in asked]
    rest = [f"{words(name)} {wrong[name]}" for name in wrong if name not in first]
    return ", ".join([" to ".join(said), *rest])


def _redelivered(shot: Shot) -> str:
    times, said = _number(shot, "redeliveries"), stake(shot)
    if said == BEFORE:
        return f"{times} duplicate messages before any payment"
    told = lower_first(said).rstrip(".") or f"payments: {payments(shot.evidence)}"
    return f"{times} duplicate messages; {told}"


def _changed(shot: Shot) -> str:
    position = shot.evidence.get("position", shot.evidence.get("hit"))
    where = f"event {position + 1}" if isinstance(position, int) else "the record"
    return f"{where} was changed"


def _forged(shot: Shot) -> str:
    return "a forged payment" if "forged_key" in shot.evidence else "a step reported too early"


def _number(shot: Shot, name: str) -> int:
    value = shot.evidence.get(name)
    return value if isinstance(value, int) else 0


Tell = Callable[[Shot], str]

ATTEMPTS: Mapping[str, Tell] = {
    "tool_injection": _tool_wanted,
    "double_exec": _copies,
    "corrupt_hash": _corruption,
    "skip_step": lambda shot: _told(SKIPS, shot, "skip"),
    "reorder_steps": lambda shot: _told(ORDERS, shot, "how"),
}
OUTCOMES: Mapping[str, Tell] = {
    "tool_injection": lambda _: "Blocked: the call was never made.",
    "double_exec": _discarded,
    "corrupt_hash": _noticed,
    "skip_step": lambda _: "Blocked: no pending call has this key.",
    "reorder_steps": _not_its_program,
}
SUMMARIES: Mapping[str, Tell] = {
    "tool_injection": _wanted,
    "double_exec": _redelivered,
    "corrupt_hash": _changed,
    "skip_step": _forged,
    "reorder_steps": lambda _: "the steps in another order",
}
