"""One policy of five rules, judged by the kernel and by Cedar: costs and faults.

``python -m bench.cedar [ROUNDS]`` asks the kernel's own rules, Cedar as it is, and Cedar behind the
kernel's port; it prints how long each takes and what each answers to a faulty context.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cedarpy

from bench.kit import report, subject
from bench.kit.report import Table, row
from bench.kit.rounds import ROUNDS, Contestant, compare
from engine.cedar.port import CedarDecider
from nanovm_core.core.authority.policy import AUTHORIZE, verdict
from nanovm_core.errors import RefusedError
from nanovm_core.loading import load_policy, load_program

CEDAR = (subject.FOLDER / "five_rules.cedar").read_text("utf-8")
SCHEMA = (subject.FOLDER / "five_rules.cedarschema").read_text("utf-8")
Context = Mapping[str, Mapping[str, object]]
CONTEXT: Context = {
    "slots": {"currency": "EUR", "pay_status": "open", "payee_blocked": False},
    "proposal": {"amount_minor": 128_450},
    "history": {"calls_1m": 0},
}
# What is wrong with the context: a part with these values instead.
FAULTS: Mapping[str, Context] = {
    "the payee is blocked": {"slots": {**CONTEXT["slots"], "payee_blocked": True}},
    "`calls_1m` is missing": {"history": {}},
    '`calls_1m` is the text "9"': {"history": {"calls_1m": "9"}},
    "`amount_minor` is missing": {"proposal": {}},
    "`amount_minor` is 1.5": {"proposal": {"amount_minor": 1.5}},
}
OURS, BARE, PORT = "nanovm", "Cedar", "Cedar behind the port"
Ask = Callable[[Context], Any]


def asks() -> Mapping[str, Ask]:
    """Each engine with its policy loaded."""
    policy = load_policy(subject.POLICY, load_program(subject.PROGRAM))
    rules = tuple(rule for rule in policy.rules if rule.at == AUTHORIZE)
    policies, entities = cedarpy.PolicySet.from_str(CEDAR), cedarpy.Entities.from_json_str("[]")
    request = {
        "principal": {"type": "Agent", "id": "self"},
        "action": {"type": "Action", "id": AUTHORIZE},
        "resource": {"type": "Workspace", "id": "own"},
    }
    decider = CedarDecider(CEDAR, SCHEMA)
    return {
        OURS: lambda context: verdict(rules, context),
        BARE: lambda context: cedarpy.is_authorized(
            {**request, "context": context}, policies, entities
        ),
        PORT: lambda context: decider.judge(AUTHORIZE, context, ()),
    }


def answer(ask: Ask, context: Context) -> str:
    """An engine's answer in a word or two."""
    try:
        found = ask(context)
    except RefusedError as error:
        return f"deny ({error.code})"
    if not isinstance(found, cedarpy.AuthzResult):
        return "allow"
    word = {"Allow": "allow", "Deny": "deny"}.get(found.decision.value)
    if word is None:
        return "no decision"
    return f"{word}, a rule skipped" if found.diagnostics.errors else word


def table(rounds: int) -> Table:
    """The costs, and behind them the answers to each fault.

    Raises:
        AssertionError: where an engine refuses the sound context, or the port allows a fault.
    """
    engines = asks()
    answers = {
        what: [answer(ask, {**CONTEXT, **fault}) for ask in engines.values()]
        for what, fault in {"nothing": {}, **FAULTS}.items()
    }
    allowed = [what for what, (ours, _, port) in answers.items() if "allow" in (ours, port)]
    if allowed != ["nothing"] or {*answers["nothing"]} != {"allow"}:
        raise AssertionError(f"An engine does not judge as the policy says: {answers}")
    found = compare(
        [Contestant(name, "ask(c)", {"ask": ask, "c": CONTEXT}) for name, ask in engines.items()],
        rounds=rounds,
    )
    lines = [f"| {what} | {' | '.join(words)} |" for what, words in answers.items()]
    return Table(
        title="Five rules by Cedar",
        says="One allow and four denies, prepared once: how many times as long as ours.",
        rows=[row(found, name, OURS) for name in (BARE, PORT)],
        notes=[f"| what is wrong | {' | '.join(engines)} |", "| --- " * 4 + "|", *lines],
        peers=("cedarpy",),
    )


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    sys.stdout.write(report.markdown(table(int(arguments[0]) if arguments else ROUNDS)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
