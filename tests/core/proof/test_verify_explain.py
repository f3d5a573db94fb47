"""``--explain``: what the verifier says of payments, and what it says that it cannot know."""

from typing import Any

import pytest

from nanovm_core import verify
from tests.core.proof import bundles as kit
from tests.core.proof.test_verify import GOOD, LOG, RUN, verdict

ESC = "a\x1b[2J\u202e\n"  # clears a terminal, turns the text around, begins a line
MADE = {
    "outcome": "done",
    "idempotency_key": kit.HASH,
    "out": {"payment_status": ESC, "payment": kit.REF},
}


def explained(*, last: str = "", disclosed: bool = False, **order: Any) -> tuple[int, str]:
    """What is printed of a payment; ``last``: what its bundle ends with."""
    log, run, said = kit.Log(), kit.run_id(0), {"amount_minor": 128_450, "currency": "EUR"}
    secret = {"slot": "payee", "ref": kit.REF, "c": kit.commitment(ESC)}
    log.add(run, "genesis", secrets=[secret])
    rules, event = {"verdict": "ACCEPTED", "rules": ["within-limit"]}, {"from": "a", "to": "b"}
    sent = {
        "in": {**said, "payee": kit.REF, **order},
        "idempotency_key": kit.HASH,
        "decision": rules,
    }
    log.add(run, "suspended", rule="POL-020", actor=ESC)
    log.add(run, "resumed", actor="link-7", state={**event, "event": "Approved"}, secrets=[secret])
    log.add(run, "intent", **sent, actor="link-7", state={**event, "event": "Approved"})
    if last != "intent":
        log.add(run, "result", **MADE)
    if last == "erased":
        log.add(run, "erasure_done", **{"in": {"refs": [kit.REF, 7]}})
    members = kit.run_members(log, run)
    if disclosed:
        members["disclosures.ndjson"] = kit.disclosed(ESC)
    return verdict(kit.packed(members), "--explain")


def test_explain_says_amount_time_payee_rule_and_decider_of_what_was_paid() -> None:
    code, text = explained(disclosed=True)
    said = text.partition("as recorded:\n")[2].split("\n    ")
    assert code == 0
    assert [said[-9].rpartition("\n")[2], *said[-8:]] == [
        "2023-11-14 22:13:20 UTC payment a\\x1b[2J\\x202e\\x0a",
        "EUR 1,284.50 (128450 minor units)",
        r'to "a\u001b[2J\x202e\n"',
        "allowed by rule within-limit",
        "decided by link-7 (triggered by link-7)",
        "ordered 2023-11-14 22:13:20 UTC",
        r'payment id "a\u001b[2J\x202e\n"',
        "calls not recorded",
        f"run {RUN}\n",
    ]
    assert r"decided by rule POL-020 (triggered by a\x1b[2J\x202e\x0a)" in text
    assert "approved\n    decided by link-7 (triggered by link-7)\n    payee" in text


@pytest.mark.parametrize(
    ("kind", "actor", "told"),
    [
        ("resumed", "ada", "approved\n    decided by ada (triggered by ada)"),
        ("resumed", "register", "judged again\n    decided by the program (triggered by register)"),
        ("refused", "ada", "refused\n    decided by rule POL-026 (triggered by ada)"),
        ("suspended", "ada", "on hold\n    decided by rule POL-026 (triggered by ada)"),
    ],
)
def test_explain_names_who_decided_of_a_hold(kind: str, actor: str, told: str) -> None:
    log, run = kit.Log(), kit.run_id(0)
    log.add(run, "genesis")
    rule = {} if kind == "resumed" else {"rule": "POL-026"}
    log.add(run, kind, actor=actor, state={"from": "a", "event": "Approved", "to": "b"}, **rule)
    text = verdict(kit.packed(kit.run_members(log, run)), "--explain")[1]
    said = text.partition("as recorded:\n")[2]
    assert (told in said, said.count("approved")) == (True, told.count("approved"))


@pytest.mark.parametrize(
    ("last", "said"),
    [("", "to not disclosed"), ("erased", "to erased"), ("intent", "without a recorded answer")],
)
def test_explain_says_what_it_cannot_know(last: str, said: str) -> None:
    code, text = explained(last=last)
    assert (code, said in text, "\0" in text) == (0, True, False)


@pytest.mark.parametrize(
    ("currency", "minor", "said"),
    [
        ("JPY", 1_500_000, "JPY 1,500,000 (1500000 minor units)"),
        ("KWD", 5, "KWD 0.005 (5 minor units)"),
        ("EUR", 2**53 - 1, "EUR 90,071,992,547,409.91 (9007199254740991 minor units)"),
        (ESC, [1], r"a\x1b[2J\x202e\x0a ([1] minor units)"),
    ],
)
def test_explain_writes_amounts_exactly(currency: str, minor: object, said: str) -> None:
    assert f"\n    {said}\n" in explained(currency=currency, amount_minor=minor)[1]


def test_explain_says_nothing_of_what_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    for data, code in ((kit.export(LOG.lines, None), 3), (GOOD["run"][:-40], 2)):
        found, text = verdict(data, "--explain")
        assert (found, "decided by" in text) == (code, False)
        assert "does not show that they are in the signed log" in text
    monkeypatch.setattr(verify, "TOLD_MAX", 1)
    assert explained()[1].endswith("There are more: this list ends after 1.\n")
