"""A gate that lets one payment through; one keyword makes it another gate, call or moment."""

from collections.abc import Mapping
from typing import Any

from nanovm_core.conditions import parse
from nanovm_core.core.authority.budget import Budget, Limits
from nanovm_core.core.authority.capabilities import ArgSpec, Constraint, Grant, Money, Source, Tool
from nanovm_core.core.authority.policy import DENY_ALL, PolicyRule
from nanovm_core.core.gate import Facts, Gate, compile_gate
from nanovm_core.core.messages import Scalar
from nanovm_core.core.proposals import Call
from tests.core.kit.builders import ref

NOW_MS = 1_700_000_000_000
PAY = Tool(
    name="pay",
    args={
        "amount": ArgSpec(type="integer", min=1, max=10_000),
        "currency": ArgSpec(type="string", length_max=3),
        "payee": ArgSpec(type="ref"),
        "memo": ArgSpec(type="string", length_max=20),
    },
    critical={name: Source(slot=name) for name in ("amount", "currency", "payee")},
    free=("memo",),
    money=Money(amount="amount", currency="currency"),
)
NOTE = Tool(name="note", args={"text": ArgSpec(type="string")}, free=("text",))
MODES = {"amount": "clear", "currency": "clear", "payee": "placeholder", "iban": "hidden"}
DUE: Mapping[str, Scalar] = {"amount": 500, "currency": "EUR", "payee": ref(1)}
SLOTS: Mapping[str, Scalar] = {**DUE, "iban": ref(2), "open": True}
ARGS: Mapping[str, Any] = {**DUE, "memo": "Invoice 7"}
LEDGER = {"workspace/EUR": 100_000, "agent/calls": 5, "global/tokens": 50}
BUDGETS = (
    Budget(scope="workspace", unit="money", max=100_000),
    Budget(scope="agent", unit="calls", max=5),
    Budget(scope="global", unit="tokens", max=50),
)


def rule(name: str, outcome: str, when: str, **changes: Any) -> PolicyRule:
    """One rule about proposals; hard, and nobody's to lift."""
    given: dict[str, Any] = {"at": "authorize", "why": "Because.", "level": "hard"}
    return PolicyRule(id=name, outcome=outcome, when=parse(when), **(given | changes))


SMALL = rule("small", "allow", "$proposal.amount <= 1000", tools=frozenset({"pay"}))
OPEN = rule("open", "allow", "$slots.open", at="admission")


def gate(*rules: PolicyRule, **changes: Any) -> Gate:
    """A gate that grants two tools and allows payments of up to 1000."""
    given: dict[str, Any] = {
        "tools": {"pay": PAY, "note": NOTE, "wire": Tool(name="wire")},
        "grants": {
            "pay": Grant(tool="pay", where={"amount": Constraint(max=5_000)}),
            "note": Grant(tool="note"),
        },
        "limits": Limits(money_minor_max=2_000, calls_max=3, steps_max=9, tokens_max=40),
        "slots": MODES,
        "rules": (SMALL, OPEN, *rules),
        "windows": (),
        "budgets": BUDGETS,
        "policy": DENY_ALL,
    }
    return compile_gate(**(given | changes))


def call(tool: str = "pay", **args: Any) -> Call:
    """The good payment with these arguments changed; None leaves one out."""
    given = {**ARGS, **args} if tool == "pay" else args
    return Call(tool=tool, args={name: v for name, v in given.items() if v is not None})


def facts(**changes: Any) -> Facts:
    """A moment at which everything is in order."""
    slots = {**SLOTS, **changes.pop("slots", {})}
    given = {name: value for name, value in slots.items() if value is not None}
    return Facts(slots=given, ledger=LEDGER, agent="payer", at_ms=NOW_MS)._replace(**changes)
