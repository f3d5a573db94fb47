"""One policy of five rules in three languages: what a decision costs, and what an error does."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.metadata import files
from pathlib import Path
from typing import Any

import cedarpy
import regopy
import regorus

import nanovm_core
from bench import subject
from bench.cedar_port import CedarDecider
from bench.report import Table, row
from bench.rounds import Contestant, compare
from nanovm_core.errors import RefusedError
from nanovm_core.loading import load_policy
from nanovm_core.policy import AUTHORIZE, judge

PEERS = ("cedarpy", "regopy", "gordon-to-regorus")
Context = dict[str, dict[str, object]]
CEDAR = """
@id("within-limit") @why("Up to 10,000.00.")
permit(principal, action == Action::"authorize", resource)
when { context.proposal.amount_minor > 0 && context.proposal.amount_minor <= 1000000 };
@id("currency") @why("Not in this currency.")
forbid(principal, action == Action::"authorize", resource)
when { !(["EUR", "USD", "GBP", "CHF"].contains(context.slots.currency)) };
@id("status") @why("Not payable.")
forbid(principal, action == Action::"authorize", resource)
when { context.slots.pay_status != "open" };
@id("rate") @why("Too many calls in a minute.")
forbid(principal, action == Action::"authorize", resource)
when { context.history.calls_1m > 5 };
@id("blocked") @why("The payee is blocked.")
forbid(principal, action == Action::"authorize", resource)
when { context.slots.payee_blocked };
"""
SCHEMA = """
entity Agent; entity Workspace;
action authorize appliesTo { principal: Agent, resource: Workspace, context: {
  slots: { currency: String, pay_status: String, payee_blocked: Bool },
  proposal: { amount_minor: Long }, history: { calls_1m: Long } } };
"""
OVERFLOW = """
@id("twice") @why("Twice the amount is too much.")
forbid(principal, action == Action::"authorize", resource)
when { context.proposal.amount_minor * 2 > 1000000 };
@id("all") @why("All else.") permit(principal, action, resource);
"""
REGO = """
package nanovm
default allow := false
permitted if { input.proposal.amount_minor > 0; input.proposal.amount_minor <= 1000000 }
deny contains "currency" if { not input.slots.currency in {"EUR", "USD", "GBP", "CHF"} }
deny contains "status" if { input.slots.pay_status != "open" }
deny contains "rate" if { input.history.calls_1m > 5 }
deny contains "blocked" if { input.slots.payee_blocked }
allow if { permitted; count(deny) == 0 }
"""
CONTEXT: Context = {
    "slots": {"currency": "EUR", "pay_status": "open", "payee_blocked": False},
    "proposal": {"amount_minor": 128_450},
    "history": {"calls_1m": 0},
}
GONE = object()
# what is wrong with the context: (part, name, value)
CASES: Mapping[str, tuple[str, str, object] | None] = {
    "nothing": None,
    "the payee is blocked": ("slots", "payee_blocked", True),
    "`payee_blocked` is missing (a deny reads it)": ("slots", "payee_blocked", GONE),
    '`payee_blocked` is the text "true"': ("slots", "payee_blocked", "true"),
    "`calls_1m` is missing (a deny reads it)": ("history", "calls_1m", GONE),
    '`calls_1m` is the text "9"': ("history", "calls_1m", "9"),
    "`currency` is missing (a deny reads it)": ("slots", "currency", GONE),
    "`pay_status` is missing (a deny reads it)": ("slots", "pay_status", GONE),
    "`amount_minor` is missing (the allow reads it)": ("proposal", "amount_minor", GONE),
    '`amount_minor` is the text "5"': ("proposal", "amount_minor", "5"),
    "`amount_minor` is 1.5": ("proposal", "amount_minor", 1.5),
    "`amount_minor` is true": ("proposal", "amount_minor", True),
}
REPEATS = 200


def table() -> Table:
    """Latency as ratios; verdicts, order, size as notes."""
    engines = _engines()
    for name, ask in engines.items():
        if ask(CONTEXT) != "allow":
            raise AssertionError(f"{name} does not allow what the policy allows")
    timed = {name: _timed(name, ask) for name, ask in _callables().items()}
    found = compare(list(timed.values()))
    ours = "nanovm, five rules"
    rows = [row(found, name, ours) for name in timed if name != ours]
    return Table(
        title="Five rules in three languages",
        says=(
            "The same policy (one allow, four denies) prepared once, given a context as a dict: "
            "how many times as long as ours. OPA itself is a Go program and is not measured: "
            "regopy (C++, Microsoft's) and Regorus (Rust, a fork's wheel) run its language."
        ),
        rows=rows,
        notes=[*_verdicts(engines), "", *_facts()],
        peers=PEERS,
    )


def _callables() -> dict[str, Callable[[Context], object]]:
    """Each engine as it would be used, without making its verdict a word."""
    rules = _five()
    policies, schema = cedarpy.PolicySet.from_str(CEDAR), cedarpy.Schema.from_str(SCHEMA)
    entities, port = cedarpy.Entities.from_json_str("[]"), CedarDecider(CEDAR, SCHEMA)
    engine, machine, interpreter = regorus.Engine(), _machine(), regopy.Interpreter()
    engine.add_policy("nanovm.rego", REGO)
    interpreter.add_module("nanovm", REGO)
    bundle = interpreter.build("data.nanovm.allow")

    def regorus_engine(context: Context) -> object:
        engine.set_input(context)
        return engine.eval_rule("data.nanovm.allow")

    def regorus_compiled(context: Context) -> object:
        machine.set_input_json(json.dumps(context))
        return machine.execute()

    def regopy_bundle(context: Context) -> object:
        interpreter.set_input(context)
        return str(interpreter.query_bundle(bundle))

    return {
        "nanovm, five rules": lambda context: judge(rules, context, ()),
        "Cedar": lambda c: cedarpy.is_authorized(_request(c), policies, entities),
        "Cedar with schema": lambda c: cedarpy.is_authorized(
            _request(c), policies, entities, schema
        ),
        "Cedar behind the port": lambda context: port.judge(AUTHORIZE, context, ()),
        "Rego in Regorus": regorus_engine,
        "Rego in Regorus, compiled": regorus_compiled,
        "Rego in regopy": regopy_bundle,
    }


def _engines() -> dict[str, Callable[[Context], str]]:
    """Each engine's answer in a word."""
    ask = _callables()
    return {
        "nanovm": _refusing(ask["nanovm, five rules"]),
        "Cedar": lambda context: _cedar_word(ask["Cedar"](context)),
        "Cedar with schema": lambda context: _cedar_word(ask["Cedar with schema"](context)),
        "Cedar behind the port": _refusing(ask["Cedar behind the port"]),
        "Rego in Regorus": lambda context: _rego_word(ask["Rego in Regorus"](context)),
        "Rego in regopy": lambda context: _rego_word(ask["Rego in regopy"](context)),
    }


def _timed(name: str, ask: Callable[[Context], object]) -> Contestant:
    return Contestant(name, "ask(context)", {"ask": ask, "context": CONTEXT})


def _five() -> Any:
    return tuple(rule for rule in load_policy(subject.POLICY).rules if rule.at == AUTHORIZE)


def _machine() -> Any:
    program = regorus.Program.compile_from_modules(
        "{}", [("nanovm.rego", REGO)], ["data.nanovm.allow"]
    )
    machine = regorus.Rvm()
    machine.load_program(program)
    return machine


def _request(context: Context) -> dict[str, object]:
    return {
        "principal": {"type": "Agent", "id": "self"},
        "action": {"type": "Action", "id": "authorize"},
        "resource": {"type": "Workspace", "id": "own"},
        "context": context,
    }


def _refusing(ask: Callable[[Context], object]) -> Callable[[Context], str]:
    def word(context: Context) -> str:
        try:
            ask(context)
        except RefusedError as error:
            return f"deny ({error.code})"
        return "allow"

    return word


def _cedar_word(answer: Any) -> str:
    errors = ", an error skipped" if answer.diagnostics.errors else ""
    words = {"Allow": "allow", "Deny": "deny", "NoDecision": "no decision"}
    word = words[answer.decision.value]
    return word if word == "no decision" else word + errors


def _rego_word(answer: object) -> str:
    return "allow" if answer is True or answer == '{"expressions":[true]}' else "deny"


def _spoilt(fault: tuple[str, str, object] | None) -> Context:
    """The good context with one fault."""
    context = {part: dict(values) for part, values in CONTEXT.items()}
    if fault is not None:
        part, name, value = fault
        context[part].pop(name)
        context[part].update({} if value is GONE else {name: value})
    return context


def _verdicts(engines: Mapping[str, Callable[[Context], str]]) -> list[str]:
    """What each engine answers to each fault; a bold allow is one that no rule stands behind."""
    lines = [f"| what is wrong | {' | '.join(engines)} |", "| --- |" + " --- |" * len(engines)]
    for case, fault in CASES.items():
        words = [ask(_spoilt(fault)) for ask in engines.values()]
        shown = [f"**{w}**" if fault and w.startswith("allow") else w for w in words]
        lines.append(f"| {case} | {' | '.join(shown)} |")
    return lines


def _facts() -> list[str]:
    """What else was seen in this run, a sentence each."""
    policies, entities = cedarpy.PolicySet.from_str(CEDAR), cedarpy.Entities.from_json_str("[]")
    wrong: Context = {
        "slots": {"currency": "JPY", "pay_status": "paid", "payee_blocked": True},
        "proposal": {"amount_minor": 1},
        "history": {"calls_1m": 9},
    }
    orders = Counter(
        tuple(cedarpy.is_authorized(_request(wrong), policies, entities).diagnostics.reasons)
        for _ in range(REPEATS)
    )
    huge: Context = {**CONTEXT, "proposal": {"amount_minor": 2**62}}
    schema = cedarpy.Schema.from_str(SCHEMA)
    valid = cedarpy.validate_policies(OVERFLOW, SCHEMA).validation_passed
    twice = cedarpy.is_authorized(_request(huge), OVERFLOW, entities, schema)
    sizes = {peer: sum(_size(path) for path in files(peer) or ()) for peer in PEERS}
    kernel = sum(path.stat().st_size for path in Path(nanovm_core.__path__[0]).glob("*.py"))
    megabytes = ", ".join(f"{peer} {size / 1e6:.1f} MB" for peer, size in sizes.items())
    return [
        f"- Cedar, one request that four `forbid` rules meet, {REPEATS} times: its reasons came in "
        f"{len(orders)} different orders.",
        "- Cedar with schema, `forbid … when { context.proposal.amount_minor * 2 > 1000000 }` and "
        f"a `permit` for all, amount 2^62: the policies validate: {'yes' if valid else 'no'}; the "
        f"answer: {_cedar_word(twice)}. Here there is no arithmetic to overflow.",
        f"- Installed: {megabytes}; the whole kernel {kernel / 1e6:.2f} MB of Python.",
    ]


def _size(path: Any) -> int:
    located = Path(path.locate())
    return located.stat().st_size if located.is_file() else 0
