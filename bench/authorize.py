"""The whole authorization decision beside the one line that a naive gateway has in its place."""

from typing import Any

from bench import subject
from bench.report import Bar, Table, row
from bench.rounds import Contestant, compare
from nanovm_core.errors import RefusedError
from nanovm_core.gate import Facts
from nanovm_core.proposals import Call

NAIVE = 'call["tool"] in granted and call["args"]["amount_minor"] <= limit'
FIRST = "the naive line"
IN_FUNCTION = "the naive line in a function"
BAR = Bar("<", 40)
DECISION = "gate.authorize: allowed"
INTACT = 'gate.authorize(call, facts, ("bank.pay",))'
REFUSED = f"try:\n    {INTACT}\nexcept Refused:\n    pass"


def table() -> Table:
    """The bar, and what other verdicts cost."""
    gate = subject.program().gate
    facts = Facts(
        slots=subject.FACTS,
        ledger=subject.LEDGER,
        used={},
        agent="payer",
        at_ms=subject.START_MS,
    )
    call = Call(tool="bank.pay", args=subject.ARGS)
    allowed = gate.authorize(call, facts, ("bank.pay",))
    if allowed.args != subject.ARGS or allowed.rules != ("within-limit",) or allowed.hold:
        raise AssertionError(f"The call that is timed is not simply allowed: {allowed}")
    ours = {"gate": gate, "facts": facts, "call": call, "Refused": RefusedError}
    tool = ours | {"call": Call(tool="bank.wire", args=subject.ARGS)}
    amount = ours | {"call": Call(tool="bank.pay", args={**subject.ARGS, "amount_minor": 1})}
    blocked = ours | {"facts": facts._replace(slots={**subject.FACTS, "payee_blocked": True})}
    found = compare(
        [
            Contestant(FIRST, NAIVE, naive()),
            Contestant(IN_FUNCTION, "f(call)", naive_function()),
            Contestant(DECISION, INTACT, ours),
            Contestant("gate.authorize: no such grant (CAP-001)", REFUSED, tool),
            Contestant("gate.authorize: a rule denies (POL-003)", REFUSED, blocked),
            Contestant("gate.authorize: not the invoice's amount (POL-010)", REFUSED, amount),
            Contestant("gate.explain: all of it, for a reader", "gate.explain(call, facts)", ours),
        ]
    )
    others = [name for name in found.rounds if name not in (FIRST, DECISION)]
    return Table(
        title="The authorization decision",
        says=(
            "Grant, schema of four arguments, five conditions, provenance of four, run and shared "
            f"budgets, of a call that was read already, in units of `{NAIVE}`."
        ),
        rows=[
            row(found, DECISION, FIRST, BAR, f"{DECISION}, in units of the line in place"),
            row(found, DECISION, IN_FUNCTION, BAR, f"{DECISION}, in units of it in a function"),
            *(row(found, name, FIRST) for name in others),
        ],
    )


def naive() -> dict[str, object]:
    """What the naive line needs."""
    call = {"tool": "bank.pay", "args": dict(subject.ARGS)}
    return {"call": call, "granted": {"bank.pay", "notify.send"}, "limit": 1_000_000}


def naive_function() -> dict[str, object]:
    """The naive line as a function of the call."""
    names = naive()
    granted, limit = {"bank.pay", "notify.send"}, 1_000_000

    def allowed(call: dict[str, Any]) -> bool:
        return call["tool"] in granted and call["args"]["amount_minor"] <= limit

    return {"f": allowed, "call": names["call"]}
