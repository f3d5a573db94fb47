"""The whole authorization decision compared with a naive gateway's one line."""

from typing import Any

from bench.kit import subject
from bench.kit.report import Table, row
from bench.kit.rounds import Contestant, compare
from nanovm_core.core.gate import Facts, Gate
from nanovm_core.core.messages import Recorded, Scalar
from nanovm_core.core.proposals import Call
from nanovm_core.errors import RefusedError

NAIVE = 'call["tool"] in granted and call["args"]["amount_minor"] <= limit'
FIRST = "the naive line"
IN_FUNCTION = "the naive line in a function"
DECISION = "allowed"
EXPLAINED = "gate.explain: all of it, for a reader"
INTACT = 'gate.dry_run(call, facts, ("bank.pay",))'
REFUSED = f"try:\n    {INTACT}\nexcept Refused:\n    pass"


def table() -> Table:
    """What an allowed call costs, and what other verdicts do."""
    found = compare(
        [
            Contestant(FIRST, NAIVE, naive()),
            Contestant(IN_FUNCTION, "f(call)", naive_function()),
            *(Contestant(name, INTACT, names) for name, names in _allowed().items()),
            *(Contestant(name, REFUSED, names) for name, names in _refused().items()),
            Contestant(EXPLAINED, "gate.explain(call, facts)", _names()),
        ]
    )
    return Table(
        title="The authorization decision",
        says=(
            "Grant, schema of four arguments, five conditions, provenance of four, run and shared "
            f"budgets, of a call that was read already, in units of `{NAIVE}`."
        ),
        rows=[
            *(row(found, name, FIRST, name=f"{name}, by the line in place") for name in _allowed()),
            row(found, DECISION, IN_FUNCTION, name=f"{DECISION}, by the line in a function"),
            *(row(found, name, FIRST) for name in (IN_FUNCTION, *_refused(), EXPLAINED)),
        ],
    )


def _names(
    tool: str = "bank.pay",
    history: tuple[Recorded, ...] = (),
    blocked: bool = False,
    **args: Scalar,
) -> dict[str, object]:
    """A gate, a call and its facts; keywords replace the defaults."""
    facts = Facts(
        slots={**subject.FACTS, "payee_blocked": blocked},
        ledger=subject.LEDGER,
        used={},
        history=history,
        agent="payer",
        at_ms=subject.START_MS,
    )
    call = Call(tool=tool, args={**subject.ARGS, **args})
    gate = subject.program().gate
    return {"gate": gate, "facts": facts, "call": call, "Refused": RefusedError}


def _allowed() -> dict[str, dict[str, object]]:
    """Calls that are allowed, each proved to be before it is timed."""
    before = tuple(
        Recorded(at_ms=subject.START_MS - 1_000 * ago, tool="bank.pay", outcome="done")
        for ago in (50, 30, 10)
    )
    found = {
        DECISION: _names(),
        "allowed, three calls in the last minute": _names(history=before),
        "allowed, the payee named as {{payee}}": _names(payee="{{payee}}"),
    }
    for name, names in found.items():
        gate, call, facts = names["gate"], names["call"], names["facts"]
        if not (isinstance(gate, Gate) and isinstance(call, Call) and isinstance(facts, Facts)):
            raise TypeError(name)
        answer = gate.dry_run(call, facts, ("bank.pay",))
        if answer.args != subject.ARGS or answer.rules != ("within-limit",) or answer.hold:
            raise AssertionError(f"{name}: it is not simply allowed: {answer}")
    return found


def _refused() -> dict[str, dict[str, object]]:
    """Calls that are refused, early and late."""
    return {
        "no such grant (CAP-001)": _names(tool="bank.wire"),
        "a rule denies (POL-003)": _names(blocked=True),
        "not the invoice's amount (POL-010)": _names(amount_minor=1),
    }


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
