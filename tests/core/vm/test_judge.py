"""Dry verdicts: one a line, in order, by what a run with these slots would come to."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from examples.refund_desk.desk import FOLDER
from nanovm_core.core.program import Program
from nanovm_core.judge import judge
from tests.core.kit.builders import FACTS, ROOT, program, ref
from tests.core.kit.deployment import DEPLOY, gate
from tests.core.kit.refund_desk import DESK, TOOL, args_of, desk_with, slots_of

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


def codes(rules: Program, *lines: bytes) -> list[str]:
    """ACCEPTED, or the code, of each line."""
    return [v.rule if v.verdict == "BLOCKED" else v.verdict for v in judge(rules, lines)]


# --- the contract ----------------------------------------------------------------------------


def test_a_verdict_says_who_what_by_which_rule_and_why() -> None:
    """The four keys of the command, for an accepted and for a blocked line."""
    found = [each._asdict() for each in judge(DESK, [line("a"), line("b", tool="wire.transfer")])]
    assert found == [
        {
            "id": "a",
            "verdict": "ACCEPTED",
            "rule": "small-or-signed",
            "why": "Every check holds; allowed by small-or-signed.",
        },
        {
            "id": "b",
            "verdict": "BLOCKED",
            "rule": "CAP-001",
            "why": "The proposed tool was never granted.",
        },
    ]


def test_verdicts_come_one_by_one_in_the_order_of_their_lines() -> None:
    """Nothing is read ahead: a line that was not given yet cannot matter."""
    given: list[str] = []

    def lines() -> Iterator[bytes]:
        for name in "abc":
            given.append(name)
            yield line(name)

    for verdict in judge(DESK, lines()):
        assert verdict.id == given[-1]
    assert given == ["a", "b", "c"]


def test_the_proposals_of_the_example_come_to_what_they_are_called() -> None:
    """Faithful ones, attacks, unreadable ones, holds, and a workspace that runs dry."""
    text = (FOLDER / "proposals.jsonl").read_bytes()
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


def test_any_program_is_judged_by_its_own_rules() -> None:
    """A deployment gate, whose tools move no money, and a rollback that only it accepts."""
    slots = {"change": "c", "risk": 1, "frozen": False, "artifact": "v2", "tests_failed": 0}
    args = {"artifact": "v2", "region": "eu-1", "replicas": 3}
    found = codes(
        gate(),
        line(tool=DEPLOY, args=args, slots=slots),
        line(tool=DEPLOY, args={**args, "artifact": "v3"}, slots=slots),
        line(tool=DEPLOY, args={**args, "replicas": 11}, slots=slots),
        line(tool=DEPLOY, args={**args, "replicas": 21}, slots=slots),
        line(tool="cluster.delete", args={}, slots=slots),
    )
    assert found == ["ACCEPTED", "POL-010", "POL-020", "CAP-006", "CAP-001"]


def test_what_is_granted_and_nowhere_accepted_is_the_programs_own() -> None:
    """The mail of the invoice program, with exactly the right arguments."""
    slots = {**FACTS, **{name: ref(n) for n, name in enumerate(PERSONAL)}}
    args = {"to": slots["advice_to"], "subject": slots["advice_subject"]}
    mail = {**args, "body": slots["advice_body"]}
    rules = program(
        b'v = "nanovm-policy/1"\nname = "all"\n[[rules]]\nid = "all"\nat = "authorize"\n'
        b'outcome = "allow"\nwhen = "true"\nwhy = "All."\n'
    )
    assert codes(rules, line(tool="notify.send_email", args=mail, slots=slots)) == ["CAP-002"]


# --- holds and admission ---------------------------------------------------------------------


def test_a_hold_is_blocked_and_uses_up_nothing() -> None:
    """It waits for a person, and here is none: POL-020 with the rule's reason."""
    old = line("old", "A-2", slots=slots_of("A-2", age_days=200))
    found = list(judge(DESK, [old, old, line("a", "A-2"), line("b", "A-2")]))
    assert [each.verdict for each in found] == ["BLOCKED", "BLOCKED", "ACCEPTED", "ACCEPTED"]
    assert found[0].rule == "POL-020"
    assert found[0].why == ("Held for a person: The order is older than 90 days. (rule old-order)")


@pytest.mark.parametrize(
    ("outcome", "code"), [("deny", "POL-003"), ("hold", "POL-020"), ("allow", "ACCEPTED")]
)
def test_what_keeps_a_model_from_being_asked_keeps_its_proposal_out(
    outcome: str, code: str
) -> None:
    """A proposal that could never have been made is none."""
    edit = ('at = "admission"\noutcome = "deny"', f'at = "admission"\noutcome = "{outcome}"')
    assert codes(desk_with(edit), line(slots=slots_of(refunded=True))) == [code]


def test_the_proposal_itself_is_judged_before_what_stood_in_front_of_the_model() -> None:
    """An ungranted tool is one whatever slots there are; a wrong amount is one too."""
    found = codes(
        DESK,
        line(tool="wire.transfer", slots={}),
        line(slots=slots_of(refunded=True), args=args_of(amount_minor=1)),
    )
    assert found == ["CAP-001", "POL-010"]


def test_without_a_rule_that_admits_nothing_is_accepted() -> None:
    """No model would be asked."""
    rules = desk_with(('"$slots.paid_minor > 0"', '"$slots.paid_minor > 4500"'))
    assert codes(rules, line()) == ["POL-001"]
    assert codes(rules, line(order="A-2")) == ["ACCEPTED"]


def test_rules_of_admission_wait_for_a_context_that_lets_them_be_judged() -> None:
    """They stand before the model is asked; a context may tell of the proposal alone."""
    slots = slots_of(refunded=True)
    assert codes(DESK, line(slots=slots)) != ["ACCEPTED"]
    del slots["refunded"]
    assert codes(DESK, line(slots=slots)) == ["ACCEPTED"]


def test_a_slot_that_a_rule_reads_and_the_context_leaves_out_is_named() -> None:
    """It is missing, an error denies, and whoever wrote the context can mend it."""
    lines = (FOLDER / "proposals.jsonl").read_bytes().splitlines()
    found = {each.id: each for each in judge(DESK, lines)}["large-and-not-signed"]
    assert (found.verdict, found.rule) == ("BLOCKED", "POL-002")
    assert "slots.signed_by" in found.why.partition("The context leaves out ")[2]


# --- accounts --------------------------------------------------------------------------------


def ninety(name: str, **context: object) -> bytes:
    """90.00 of a workspace's 250.00."""
    return line(name, "A-2", **context)  # type: ignore[arg-type]


def test_a_workspace_runs_dry_in_order_and_no_other_with_it() -> None:
    """What is refused takes nothing; what still fits is accepted after it."""
    small = line("small", "A-1", workspace="north")
    lines = [ninety(str(n), workspace="north") for n in range(3)]
    found = codes(DESK, *lines, small, small, ninety("s", workspace="south"), ninety("none"))
    assert found == ["ACCEPTED"] * 2 + ["BUD-001", "ACCEPTED", "BUD-001", "ACCEPTED", "ACCEPTED"]


def test_an_agents_account_is_its_own_in_each_workspace() -> None:
    """Two calls for each agent; the program's agent where none is named."""
    rules = desk_with(('unit = "calls"\nmax = 100', 'unit = "calls"\nmax = 2'))
    ann = line(agent="ann")
    found = codes(rules, ann, ann, ann, line(agent="bob"), line(agent="ann", workspace="w"))
    assert found == ["ACCEPTED", "ACCEPTED", "BUD-002", "ACCEPTED", "ACCEPTED"]
    assert codes(rules, line(), line(agent="desk"), line(agent="")) == ["ACCEPTED"] * 2 + [
        "BUD-002"
    ]


def test_the_global_account_is_everybodys() -> None:
    """Three workspaces, three agents, one account."""
    rules = desk_with(("max = 10_000_000", "max = 20_000"))
    lines = [ninety(name, workspace=name, agent=name) for name in "abc"]
    assert codes(rules, *lines) == ["ACCEPTED", "ACCEPTED", "BUD-001"]


def test_each_currency_has_its_own_account() -> None:
    """And a run's own limit is a line's own."""
    dollars = line(slots=slots_of("A-2", currency="USD"), args=args_of("A-2", currency="USD"))
    assert codes(DESK, *[ninety("e")] * 2, dollars, dollars, ninety("e"), dollars) == [
        *["ACCEPTED"] * 4,
        *["BUD-001"] * 2,
    ]


# --- windows ---------------------------------------------------------------------------------


def windowed(counts: str, most: int, scope: str = "workspace") -> Program:
    """The desk, where another allow rule asks a window that counts the last minute."""
    more = (
        f'[[windows]]\nname = "w"\ncounts = "{counts}"\nwithin_ms = 60_000\nscope = "{scope}"\n'
        f'[[rules]]\nid = "w"\nat = "authorize"\noutcome = "deny"\nwhen = "$history.w > {most}"\n'
        'why = "Too many."\n'
    )
    return desk_with(more=more)


def test_a_window_counts_by_the_time_of_the_lines() -> None:
    """Up to its edge and not past it, a call counts; nothing else is a clock."""
    rules = windowed("calls", 1)
    at = [line(str(at_ms), at_ms=at_ms) for at_ms in (0, 10, 60_000, 60_001, 60_011)]
    assert codes(rules, *at) == ["ACCEPTED", "ACCEPTED", "POL-003", "ACCEPTED", "ACCEPTED"]


def test_a_line_without_a_time_has_that_of_the_line_before() -> None:
    """At first it is 0. A line that says nothing of it does not fall out of the window."""
    rules = windowed("calls", 1)
    assert codes(rules, line(at_ms=5), line(), line(), line(at_ms=60_006)) == [
        *["ACCEPTED"] * 2,
        "POL-003",
        "ACCEPTED",
    ]
    assert codes(rules, line(), line(at_ms=200_000), line(), line()) == [
        *["ACCEPTED"] * 3,
        "POL-003",
    ]
    unreadable = b'{"id": "x", "tool": "t", "args": {}, "context": {"at_ms": "9"}}'
    assert codes(rules, line(), unreadable, line(at_ms=60_000), line()) == [
        "ACCEPTED",
        "CAP-010",
        "ACCEPTED",
        "POL-003",
    ]


def test_a_window_looks_at_one_workspace_or_one_agent_of_it() -> None:
    """What happens elsewhere does not count."""
    for scope, bob in (("workspace", "POL-003"), ("agent", "ACCEPTED")):
        rules = windowed("calls", 0, scope)
        found = codes(rules, line(agent="ann"), line(agent="bob"), line(agent="ann", workspace="w"))
        assert found == ["ACCEPTED", bob, "ACCEPTED"]


def test_refusals_are_counted_and_holds_and_empty_accounts_are_none() -> None:
    """What a run would have refused; what waits for a person or for money was not."""
    refused = [line(tool="wire.transfer"), b'{"id": "x", "tool": "t"}', line(args={})]
    assert codes(windowed("refusals", 2), *refused, line()) == [
        *("CAP-001", "CAP-010", "CAP-004"),
        "POL-003",
    ]
    waits = [line(slots=slots_of(age_days=91)), *[ninety("n")] * 3]
    assert codes(windowed("refusals", 0), *waits, line()) == [
        *("POL-020", "ACCEPTED", "ACCEPTED", "BUD-001"),
        "ACCEPTED",
    ]


def test_a_grant_runs_out_by_the_time_of_the_line() -> None:
    """Its last millisecond is before ``expires_ms``."""
    edit = ('where = { currency = { one_of = ["EUR", "USD"] } }', "X")
    rules = desk_with((edit[0], f"{edit[0]}\nexpires_ms = {DAY_MS}"))
    assert codes(rules, line(at_ms=DAY_MS - 1), line(at_ms=DAY_MS)) == ["ACCEPTED", "CAP-007"]


# --- the corpus ------------------------------------------------------------------------------


@pytest.mark.corpus
def test_every_published_attack_is_blocked_and_a_faithful_payment_is_not() -> None:
    """Each under slots that legitimate steps produced, by the layer that is to stop it."""
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
