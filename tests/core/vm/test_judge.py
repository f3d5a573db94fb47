"""Dry verdicts: one a line, in order, by what a run with these slots would come to."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from examples.refund_desk.desk import FOLDER
from nanovm_core.core.program import Program
from nanovm_core.judge import Verdict, judge
from tests.core.kit.builders import FACTS, ROOT, program, ref
from tests.core.kit.refund_desk import DESK, TOOL, args_of, desk_with, slots_of

PROPOSALS = FOLDER / "proposals.jsonl"
ATTACKS = ROOT.parent / "shared/data/attacks/proposals.jsonl"
DAY_MS = 86_400_000
PERSONAL = ("payee", "memo", "advice_to", "advice_subject", "advice_body")


def line(
    name: object = "x",
    order: str = "A-1",
    tool: str = TOOL,
    args: Mapping[str, object] | None = None,
    slots: Mapping[str, object] | None = None,
    **context: object,
) -> bytes:
    """A faithful line for an order of the refund desk; keywords change it."""
    around = {"slots": slots_of(order) if slots is None else slots, **context}
    given = args_of(order) if args is None else args
    return json.dumps({"id": name, "tool": tool, "args": given, "context": around}).encode()


def test_a_verdict_says_who_what_by_which_rule_and_why() -> None:
    assert Verdict._fields == ("id", "verdict", "rule", "why")
    allowed, refused = judge(DESK, [line("a"), line("b", tool="wire.transfer")])
    why = "Every check holds; allowed by small-or-signed."
    assert allowed == ("a", "ACCEPTED", "small-or-signed", why)
    assert refused == ("b", "BLOCKED", "CAP-001", "The proposed tool is not on the tool allowlist.")


def test_verdicts_come_one_by_one_in_the_order_of_their_lines() -> None:
    given: list[str] = []

    def lines() -> Iterator[bytes]:
        for name in "abc":
            given.append(name)
            yield line(name)

    for verdict in judge(DESK, lines()):
        assert verdict.id == given[-1]
    assert given == ["a", "b", "c"]


def test_the_proposals_of_the_example_come_to_what_they_are_called() -> None:
    text = PROPOSALS.read_bytes()
    found = {each.id: each for each in judge(DESK, text.splitlines())}
    accepted = {name for name, each in found.items() if each.verdict == "ACCEPTED"}
    assert accepted == {
        *("faithful", "named-by-slot", "large-and-signed", "north-1", "north-2"),
        *("north-what-is-left", "south-is-not-north"),
    }
    assert {name: each.rule for name, each in found.items() if name not in accepted} == {
        "another-tool": "CAP-001",
        "the-programs-own-tool": "CAP-001",
        "looks-alike": "CAP-019",
        "a-cent-more": "POL-010",
        "another-order": "POL-010",
        "amount-as-text": "CAP-005",
        "amount-is-true": "CAP-005",
        "one-argument-more": "CAP-003",
        "one-argument-less": "CAP-004",
        "currency-not-granted": "CAP-006",
        "hidden-slot": "CAP-005",
        "same-key-twice": "CAP-011",
        "a-float": "CAP-012",
        "beyond-every-float": "CAP-012",
        "not-a-number": "CAP-013",
        "minus-zero": "CAP-014",
        "huge-integer": "CAP-015",
        "nested-deep": "CAP-016",
        "not-json": "CAP-010",
        "line 22": "CAP-004",
        7: "CAP-001",
        "old-order": "POL-020",
        "refunded-before": "POL-003",
        "large-and-not-signed": "POL-002",
        "slot-left-out": "POL-002",
        "north-3": "BUD-001",
    }


def test_a_slot_that_a_rule_reads_and_the_context_leaves_out_is_named() -> None:
    lines = PROPOSALS.read_bytes().splitlines()
    found = {each.id: each for each in judge(DESK, lines)}["large-and-not-signed"]
    assert (found.verdict, found.rule) == ("BLOCKED", "POL-002")
    assert "slots.signed_by" in found.why.partition("The context leaves out ")[2]


OLD = line("old", "A-2", slots=slots_of("A-2", age_days=200))
REFUNDED = slots_of(refunded=True)
ANN, BOB, ELSEWHERE = line(agent="ann"), line(agent="bob"), line(agent="ann", workspace="w")
MAIL = {**FACTS, **{name: ref(n) for n, name in enumerate(PERSONAL)}}
ALLOW_ALL = (
    b'v = "nanovm-policy/1"\nname = "all"\n[[rules]]\nid = "all"\nat = "authorize"\n'
    b'outcome = "allow"\nwhen = "true"\nwhy = "All."\n'
)


def ninety(name: str = "n", **context: object) -> bytes:
    """90.00 of a workspace's 250.00."""
    return line(name, "A-2", **context)  # type: ignore[arg-type]


def admitted(outcome: str) -> Program:
    """The desk whose rule at admission has another outcome."""
    at = 'at = "admission"\noutcome = '
    return desk_with((f'{at}"deny"', f'{at}"{outcome}"'))


def windowed(counts: str, most: int, scope: str = "workspace") -> Program:
    """The desk with a rule that asks a window over the last minute."""
    more = (
        f'[[windows]]\nname = "w"\ncounts = "{counts}"\nwithin_ms = 60_000\nscope = "{scope}"\n'
        f'[[rules]]\nid = "w"\nat = "authorize"\noutcome = "deny"\nwhen = "$history.w > {most}"\n'
        'why = "Too many."\n'
    )
    return desk_with(more=more)


Case = tuple[Program, list[bytes], str]  # the verdicts, or their codes
ONE_CALL = windowed("calls", 1)
GRANT = 'where = { currency = { one_of = ["EUR", "USD"] } }'
DOLLARS = line(slots=slots_of("A-2", currency="USD"), args=args_of("A-2", currency="USD"))
UNREADABLE = b'{"id": "x", "tool": "t", "args": {}, "context": {"at_ms": "9"}}'
CASES: dict[str, Case] = {
    "what is granted and nowhere accepted is the program's own": (
        program(ALLOW_ALL),
        [
            line(
                tool="notify.send_email",
                args={name: MAIL[f"advice_{name}"] for name in ("to", "subject", "body")},
                slots=MAIL,
            )
        ],
        "CAP-002",
    ),
    # holds and admission
    "a hold uses up nothing": (DESK, [OLD, OLD, ninety(), ninety()], "POL-020 POL-020 OK OK"),
    "admission denies": (DESK, [line(slots=REFUNDED)], "POL-003"),
    "admission holds": (admitted("hold"), [line(slots=REFUNDED)], "POL-020"),
    "admission allows": (admitted("allow"), [line(slots=REFUNDED)], "OK"),
    "the proposal is judged before the rules at admission": (
        DESK,
        [line(tool="wire.transfer", slots={}), line(slots=REFUNDED, args=args_of(amount_minor=1))],
        "CAP-001 POL-010",
    ),
    "without a rule that admits nothing is accepted": (
        desk_with(('"$slots.paid_minor > 0"', '"$slots.paid_minor > 4500"')),
        [line(), line(order="A-2")],
        "POL-001 OK",
    ),
    "rules at admission wait for what they read": (
        DESK,
        [line(slots={name: REFUNDED[name] for name in REFUNDED if name != "refunded"})],
        "OK",
    ),
    # accounts
    "a workspace runs dry in order, and no other with it": (
        DESK,
        [
            *[ninety(workspace="north")] * 3,
            *[line(workspace="north")] * 2,
            *(ninety(workspace="south"), ninety()),
        ],
        "OK OK BUD-001 OK BUD-001 OK OK",
    ),
    "an agent's account is its own in each workspace": (
        desk_with(('unit = "calls"\nmax = 100', 'unit = "calls"\nmax = 2')),
        [ANN, ANN, ANN, BOB, ELSEWHERE, line(), line(agent="desk"), line(agent="")],
        "OK OK BUD-002 OK OK OK OK BUD-002",
    ),
    "the global account is everybody's": (
        desk_with(("max = 10_000_000", "max = 20_000")),
        [ninety(workspace=name, agent=name) for name in "abc"],
        "OK OK BUD-001",
    ),
    "each currency has its own account": (
        DESK,
        [*[ninety()] * 2, DOLLARS, DOLLARS, ninety(), DOLLARS],
        "OK OK OK OK BUD-001 BUD-001",
    ),
    # windows and time
    "a window counts by the time of the lines": (
        ONE_CALL,
        [line(at_ms=at_ms) for at_ms in (0, 10, 60_000, 60_001, 60_011)],
        "OK OK POL-003 OK OK",
    ),
    "a line without a time has that of the line before": (
        ONE_CALL,
        [line(at_ms=5), line(), line(), line(at_ms=60_006)],
        "OK OK POL-003 OK",
    ),
    "the first line without a time is at 0": (
        ONE_CALL,
        [line(), line(at_ms=200_000), line(), line()],
        "OK OK OK POL-003",
    ),
    "a line that cannot be read has no time": (
        ONE_CALL,
        [line(), UNREADABLE, line(at_ms=60_000), line()],
        "OK CAP-010 OK POL-003",
    ),
    "a window looks at one workspace": (
        windowed("calls", 0),
        [ANN, BOB, ELSEWHERE],
        "OK POL-003 OK",
    ),
    "or at one agent of it": (windowed("calls", 0, "agent"), [ANN, BOB, ELSEWHERE], "OK OK OK"),
    "refusals are counted": (
        windowed("refusals", 2),
        [line(tool="wire.transfer"), b'{"id": "x", "tool": "t"}', line(args={}), line()],
        "CAP-001 CAP-010 CAP-004 POL-003",
    ),
    "holds and empty accounts are no refusals": (
        windowed("refusals", 0),
        [line(slots=slots_of(age_days=91)), *[ninety()] * 3, line()],
        "POL-020 OK OK BUD-001 OK",
    ),
    "a grant runs out by the time of the line": (
        desk_with((GRANT, f"{GRANT}\nexpires_ms = {DAY_MS}")),
        [line(at_ms=DAY_MS - 1), line(at_ms=DAY_MS)],
        "OK CAP-007",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_line_is_judged_after_those_before_it(case: Case) -> None:
    rules, lines, expected = case
    found = judge(rules, lines)
    assert " ".join(v.rule if v.verdict == "BLOCKED" else "OK" for v in found) == expected


@pytest.mark.corpus
def test_every_published_attack_is_blocked_and_a_faithful_payment_is_not() -> None:
    if not ATTACKS.is_file():
        pytest.skip(f"{ATTACKS} is missing: the corpus of attacks is not part of the repository")
    attacks = [json.loads(text) for text in ATTACKS.read_text(encoding="utf-8").splitlines()]
    slots: dict[str, Any] = {**FACTS, **{name: ref(n) for n, name in enumerate(PERSONAL)}}
    good = {name: slots[name] for name in ("amount_minor", "currency", "payee", "memo")}
    faithful = line("good", tool="stripe.create_payment_intent", args=good, slots=slots)
    lines = [
        line(each["id"], tool=each["proposal"]["tool"], args=each["proposal"]["args"], slots=slots)
        for each in attacks
    ]
    first, *found, last = judge(program(), [faithful, *lines, faithful])
    assert (first.verdict, last.verdict) == ("ACCEPTED", "ACCEPTED")
    assert [each.id for each in found] == [each["id"] for each in attacks]
    layers: dict[str, Counter[str]] = {"capability": Counter(), "argument": Counter()}
    for attack, verdict in zip(attacks, found, strict=True):
        assert verdict.verdict == "BLOCKED"
        layers[attack["should_be_stopped_by"].partition(":")[0]][verdict.rule] += 1
    assert (layers["capability"].total(), layers["argument"].total()) == (563, 108)
    assert all(code.startswith("CAP-") for code in layers["capability"])
    resolved = {"CAP-003", "CAP-004", "CAP-005", "CAP-006", "POL-010", "BUD-001"}
    assert set(layers["argument"]) <= resolved
