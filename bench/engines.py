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
from bench.kit import subject
from bench.kit.cedar_port import CedarDecider
from bench.kit.five_rules import (
    CASES,
    CEDAR,
    CONTEXT,
    HOLDS,
    OVERFLOW,
    REGO,
    SCHEMA,
    Context,
    misspelt,
    spoilt,
)
from bench.kit.report import Table, row
from bench.kit.rounds import Contestant, compare
from nanovm_core.core.policy import AUTHORIZE, Outcome, verdict
from nanovm_core.errors import ProgramError, RefusedError
from nanovm_core.loading import load_policy, load_program

OURS = "nanovm"
COMPILED = "Rego in Regorus, compiled"
PEERS = ("cedarpy", "regopy", "gordon-to-regorus")
REPEATS = 200
Ask = Callable[[Context], object]


def table() -> Table:
    """Latency as ratios; verdicts, order, size as notes."""
    asks = _asks(subject.POLICY.decode(), CEDAR, REGO)
    for name, ask in asks.items():
        if _word(ask, CONTEXT) != "allow":
            raise AssertionError(f"{name} does not allow what the policy allows.")
    _try_port()
    found = compare(
        [Contestant(name, "ask(c)", {"ask": ask, "c": CONTEXT}) for name, ask in asks.items()]
    )
    return Table(
        title="Five rules in three languages",
        says=(
            "The same policy (one allow, four denies) prepared once, given a context as a dict: "
            "how many times as long as ours. OPA itself is a Go program and is not measured: "
            "regopy (C++, Microsoft's) and Regorus (Rust, a fork's wheel) run its language."
        ),
        rows=[row(found, name, OURS) for name in asks if name != OURS],
        notes=[*_verdicts(asks), "", *_facts()],
        peers=PEERS,
    )


def _asks(ours: str, cedar: str, rego: str) -> dict[str, Ask]:
    """Each engine with its policy loaded, as it would be used."""
    return {
        OURS: _nanovm(ours),
        "Cedar": _cedar(cedar),
        "Cedar with schema": _cedar(cedar, cedarpy.Schema.from_str(SCHEMA)),
        "Cedar behind the port": _port(cedar),
        "Rego in Regorus": _regorus(rego),
        COMPILED: _regorus_compiled(rego),
        "Rego in regopy": _regopy(rego),
    }


def _nanovm(source: str) -> Ask:
    policy = load_policy(source.encode(), load_program(subject.PROGRAM))
    decide = verdict(tuple(rule for rule in policy.rules if rule.at == AUTHORIZE))
    return lambda context: decide(context, ())


def _cedar(source: str, schema: Any = None) -> Ask:
    if schema is not None:
        found = cedarpy.validate_policies(source, schema)
        if not found.validation_passed:
            raise ProgramError("PRG-003", str(found.errors))
    policies, entities = cedarpy.PolicySet.from_str(source), cedarpy.Entities.from_json_str("[]")
    return lambda context: cedarpy.is_authorized(_request(context), policies, entities, schema)


def _port(source: str) -> Ask:
    decider = CedarDecider(source, SCHEMA)
    return lambda context: decider.judge(AUTHORIZE, context, ())


def _regorus(source: str) -> Ask:
    engine = regorus.Engine()
    engine.add_policy("nanovm.rego", source)

    def ask(context: Context) -> object:
        engine.set_input(context)
        return engine.eval_rule("data.nanovm.allow")

    return ask


def _regorus_compiled(source: str) -> Ask:
    modules = [("nanovm.rego", source)]
    program = regorus.Program.compile_from_modules("{}", modules, ["data.nanovm.allow"])
    machine = regorus.Rvm()
    machine.load_program(program)

    def ask(context: Context) -> object:
        machine.set_input_json(json.dumps(context))
        return machine.execute() == "true"

    return ask


def _regopy(source: str) -> Ask:
    interpreter = regopy.Interpreter()
    interpreter.add_module("nanovm", source)
    bundle = interpreter.build("data.nanovm.allow")

    def ask(context: Context) -> object:
        interpreter.set_input(context)
        return str(interpreter.query_bundle(bundle)) == '{"expressions":[true]}'

    return ask


def _request(context: Context) -> dict[str, object]:
    return {
        "principal": {"type": "Agent", "id": "self"},
        "action": {"type": "Action", "id": "authorize"},
        "resource": {"type": "Workspace", "id": "own"},
        "context": context,
    }


def _word(ask: Ask, context: Context) -> str:
    """An engine's answer in a word or two."""
    try:
        answer = ask(context)
    except RefusedError as error:
        return f"deny ({error.code})"
    if not isinstance(answer, cedarpy.AuthzResult):
        return "allow" if answer else "deny"
    word = {"Allow": "allow", "Deny": "deny"}.get(answer.decision.value, "no decision")
    skipped = answer.diagnostics.errors and word != "no decision"
    return word + (", a rule skipped" if skipped else "")


def _verdicts(asks: Mapping[str, Ask]) -> list[str]:
    """What each engine answers to each fault; a bold allow is a wrong one."""
    shown = {name: ask for name, ask in asks.items() if name != COMPILED}
    lines = [f"| what is wrong | {' | '.join(shown)} |", "| --- |" + " --- |" * len(shown)]
    for case, fault in CASES.items():
        words = [_word(ask, spoilt(fault)) for ask in shown.values()]
        if _word(asks[COMPILED], spoilt(fault)) != words[list(shown).index("Rego in Regorus")]:
            raise AssertionError(f"Regorus answers {case!r} in two ways; give it two columns.")
        bold = [f"**{w}**" if fault and w.startswith("allow") else w for w in words]
        lines.append(f"| {case} | {' | '.join(bold)} |")
    misspelling = [_of_misspelt(name) for name in shown]
    lines.append(f"| the deny rule misspells `payee_blocked` | {' | '.join(misspelling)} |")
    return lines


def _of_misspelt(name: str) -> str:
    """What an engine does with a policy that names an undefined variable."""
    texts = subject.POLICY.decode(), CEDAR, REGO
    spoilt_texts = tuple(misspelt(text) for text in texts)
    makers: dict[str, Callable[[], Ask]] = {
        OURS: lambda: _nanovm(spoilt_texts[0]),
        "Cedar": lambda: _cedar(spoilt_texts[1]),
        "Cedar with schema": lambda: _cedar(spoilt_texts[1], cedarpy.Schema.from_str(SCHEMA)),
        "Cedar behind the port": lambda: _port(spoilt_texts[1]),
        "Rego in Regorus": lambda: _regorus(spoilt_texts[2]),
        "Rego in regopy": lambda: _regopy(spoilt_texts[2]),
    }
    try:
        ask = makers[name]()
    except ProgramError:
        return "does not load"
    word = _word(ask, spoilt(("slots", "payee_blocked", True)))
    return f"**{word}**" if word.startswith("allow") else word


def _try_port() -> None:
    """The port holds, and lets a person lift the hold."""
    decider, at = CedarDecider(CEDAR + HOLDS, SCHEMA), AUTHORIZE
    held = decider.judge(at, CONTEXT, ())
    lifted = decider.judge(at, CONTEXT, ("large",))
    if held.hold is None or held.hold.id != "large" or lifted != Outcome(rules=("large",)):
        raise AssertionError(f"The port does not hold, or does not let go: {held}, {lifted}")


def _facts() -> list[str]:
    """What else was seen in this run, a sentence each."""
    wrong = spoilt(("slots", "payee_blocked", True))
    wrong["slots"] |= {"currency": "JPY", "pay_status": "paid"}
    wrong["history"]["calls_1m"] = 9
    ask: Callable[[Context], Any] = _cedar(CEDAR)
    orders = Counter(tuple(ask(wrong).diagnostics.reasons) for _ in range(REPEATS))
    twice = _cedar(OVERFLOW, cedarpy.Schema.from_str(SCHEMA))
    overflow = _word(twice, spoilt(("proposal", "amount_minor", 2**62)))
    behind = _word(_port(OVERFLOW), spoilt(("proposal", "amount_minor", 2**62)))
    sizes = {peer: sum(_size(path) for path in files(peer) or ()) for peer in PEERS}
    kernel = sum(path.stat().st_size for path in Path(nanovm_core.__path__[0]).glob("*.py"))
    megabytes = ", ".join(f"{peer} {size / 1e6:.1f} MB" for peer, size in sizes.items())
    return [
        f"- Cedar, one request that four `forbid` rules meet, {REPEATS} times: its reasons came "
        f"in {len(orders)} different orders.",
        "- Cedar with schema, amount 2^62, a `permit` for all and a `forbid` when "
        f"`amount_minor * 2 > 1000000`, which validate: {overflow}; behind the port: {behind}. "
        "Here there is no arithmetic that could overflow.",
        f"- Installed: {megabytes}; the whole kernel {kernel / 1e6:.2f} MB of Python.",
    ]


def _size(path: Any) -> int:
    located = Path(path.locate())
    return located.stat().st_size if located.is_file() else 0
