"""Condition engines: one condition, prepared once, against the field as it is used.

``python -m bench.conditions [ROUNDS]`` prints the table.
"""

import sys
from collections.abc import Mapping, Sequence

import cel
from nano_vm.ast_engine import ASTEngine, eval_condition, parse_condition

from bench.kit import report
from bench.kit.report import Bar, Table, row
from bench.kit.rounds import ROUNDS, Contestant, compare
from nanovm_core.conditions import parse

OURS = '$a.b == "x" and $amount <= 500'
CEL = 'a.b == "x" && amount <= 500'
CONTEXT: Mapping[str, object] = {
    "a": {"b": "x"},
    "amount": 499,
    "other": list(range(50)),
    "customer": {"id": 1, "tier": "gold"},
}
NEEDED = {name: CONTEXT[name] for name in ("a", "amount")}
FIRST = "nanovm, strict and prepared"
AS_USED = "llm-nano-vm eval_condition, as its VM uses it (parses each time)"
RUST = "Rust CEL compiled once, given a dict"
RUST_NEEDED = "Rust CEL compiled once, given a dict of the two variables alone"
PEERS = ("llm-nano-vm", "common-expression-language")


def contestants() -> list[Contestant]:
    """Every engine, each proved to call the condition true before it is timed."""
    program, tree, engine = cel.compile(CEL), parse_condition(OURS), ASTEngine()
    found: list[tuple[str, str, dict[str, object]]] = [
        (FIRST, "run(c)", {"run": parse(OURS).holds}),
        ("nanovm, parsed each time", "parse(text).holds(c)", {"parse": parse, "text": OURS}),
        (AS_USED, "run(text, c)", {"run": eval_condition, "text": OURS}),
        ("llm-nano-vm ASTEngine, prepared", "run(t, c)", {"run": engine.evaluate, "t": tree}),
        (RUST, "run(c)", {"run": program.execute}),
        (RUST_NEEDED, "run(c)", {"run": program.execute, "c": NEEDED}),
        ("Rust CEL, a Context kept", "run(k)", {"run": program.execute, "k": cel.Context(NEEDED)}),
        (
            "plain Python, nothing checked",
            'c["a"]["b"] == "x" and c["amount"] <= 500',
            {},
        ),
    ]
    made = [Contestant(name, code, {"c": dict(CONTEXT), **names}) for name, code, names in found]
    for each in made:
        _prove(each)
    return made


def table(rounds: int) -> Table:
    """The bars and the field."""
    found = compare(contestants(), rounds=rounds)
    bars = {AS_USED: Bar("≥", 20), RUST: Bar("≥", 10)}
    rows = [row(found, name, FIRST, bars.get(name)) for name in found.rounds if name != FIRST]
    return Table(
        title="A condition",
        says=f"`{OURS}`, four variables given: how many times as long as ours, prepared.",
        rows=sorted(rows, key=lambda each: (each.bar is None, -each.ratio.median)),
        peers=PEERS,
    )


def _prove(contestant: Contestant) -> None:
    """An engine that does not call the condition true is not measured."""
    scope: dict[str, object] = dict(contestant.names)
    answer = eval(contestant.statement, scope)  # noqa: S307 - a statement of this file
    if not bool(answer) or isinstance(answer, str):
        raise AssertionError(f"{contestant.name} answers {answer!r} to a true condition")


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 3 where a bar is not reached."""
    return report.shown(table(int(arguments[0]) if arguments else ROUNDS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
