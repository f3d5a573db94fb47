"""Holds: a person's word is about the call they saw held, and each new call is judged anew."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.policy import CHANGED_SINCE, UNKNOWN_OUTCOME
from nanovm_core.core.events import Approved, Declined, PauseRequested, ResumeRequested
from nanovm_core.core.fsm.commands import hold_id
from nanovm_core.core.messages import Commitment, Decision, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.loading import load_program
from nanovm_core.vm import Failed
from tests.core.kit.builders import POLICY, Play, program, proposal
from tests.core.kit.refund_desk import Run, Till, desk_with, held
from tests.core.kit.refund_runs import BUYER, FUNDS, HASH, PROGRAM, TEXT, Refund, body, code, kinds

OVER = 1_000_001


def over_limit(rules: Program | None = None) -> Play:
    """A payment over the limit, before a person."""
    play = Play(rules).to_propose(amount_minor=OVER)
    play.propose(proposal(amount_minor=OVER))
    assert play.now.state == life.APPROVAL
    return play


HELD = over_limit()


@pytest.mark.parametrize("kind", [Approved, Declined])
def test_decision_that_names_no_hold_or_another_is_refused(
    kind: type[Approved] | type[Declined],
) -> None:
    play = over_limit()
    before, name = play.now, hold_id(play.now)
    for hold in ("0" * 64, name.upper(), name[:-1]):
        assert (code(play.feed(kind(hold=hold))), play.now) == ("FSM-016", before)
    assert play.feed(kind(hold=name)).refusal is None


def test_an_approval_fills_no_slot_that_is_not_a_persons() -> None:
    play = over_limit()
    before, ref = play.now, "vault://secret/00000000-0000-4000-8000-000000000000"
    for slot in ("staging", "payee", "nowhere"):
        said = Commitment(slot=slot, ref=ref, c="0" * 64)
        assert code(play.feed(Approved(hold=hold_id(play.now), said=said))) == "FSM-007"
        assert play.now == before


def _others(now: Snapshot) -> dict[str, Snapshot]:
    assert now.call is not None
    tool, args = now.call
    return {
        "run": now._replace(run="another"),  # type: ignore[arg-type]
        "step": now._replace(step="another"),
        "rule": now._replace(held_by="another"),
        "tool": now._replace(call=("another", args)),
        "arguments": now._replace(call=(tool, {**args, "amount_minor": 1})),
        "time": now._replace(suspended_ms=now.suspended_ms + 1),
        "place": now._replace(begun=now.begun + 1),
    }


TERMS = {"policy": "1", "supplier": "2"}
WEEK_MS = program().limits.approval_ttl_ms


def deciding(play: Play, *, seen: Mapping[str, str] = TERMS, **known: Any) -> Decision:
    """Somebody approves, on these terms, what the run's page shows."""
    context = {"at_ms": play.now.suspended_ms, "terms": TERMS, "actor": "ada", **known}
    return play.feed(Approved(seen=seen), **context)


@pytest.mark.parametrize(("found", "names"), [
    ({"policy": "1", "supplier": "3"}, "supplier"),
    ({**TERMS, "document": "4"}, "document"),
    ({}, "policy, supplier"),
])  # fmt: skip
def test_an_approval_on_other_terms_is_refused_and_says_which(
    found: dict[str, str], names: str
) -> None:
    play = over_limit()
    before, decision = play.now, deciding(play, terms=found)
    assert (code(decision), play.now, decision.effects) == ("POL-025", before, ())
    assert f"shown: {names}. Look" in str(decision.refusal)


def test_nobody_agrees_to_what_cannot_be_read() -> None:
    unreadable = {**TERMS, "policy": ""}
    assert code(deciding(over_limit(), seen=unreadable, terms=unreadable)) == "POL-025"


def test_an_approval_seals_its_terms_and_ends_with_the_call() -> None:
    play = over_limit()
    assert (body(deciding(play))["agreed"], play.now.agreed) == (TERMS, TERMS)
    play.pay()
    assert (play.now.step, play.now.agreed, play.now.agreed_ms) == ("seal", {}, 0)


def test_a_hold_is_approved_for_a_week_and_then_asked_again() -> None:
    play = over_limit()
    assert len(deciding(play, at_ms=play.now.suspended_ms + WEEK_MS).effects) == 1
    play = over_limit()
    before, at_ms = play.now, play.now.suspended_ms + WEEK_MS + 1
    late = deciding(play, at_ms=at_ms)
    assert (late.effects, late.refusal, play.now.approved) == ((), None, ())
    assert (play.now.state, play.now.held_by, play.why) == (life.APPROVAL, "over-limit", "POL-024")
    assert hold_id(play.now) != hold_id(before)
    assert play.now.started_ms == before.started_ms + WEEK_MS + 1  # its clock stood still
    assert len(deciding(play).effects) == 1


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize(("later_ms", "terms", "expected"), [
    (WEEK_MS, TERMS, ""),
    (WEEK_MS + 1, TERMS, "POL-024"),
    (1, {**TERMS, "supplier": "3"}, "POL-025"),
])  # fmt: skip
def test_what_was_approved_is_compared_again_before_its_intent(
    later_ms: int, terms: dict[str, str], expected: str, begun: bool
) -> None:
    """A run is paused between yes and call, or (``begun``) when the call may have been made."""
    play = over_limit()
    play.now = play.now._replace(stepping=not begun)
    deciding(play)
    if begun:
        play.feed(PauseRequested(), at_ms=play.now.agreed_ms)
    assert (play.now.state, bool(play.now.owed), play.now.agreed) == (life.PAUSED, begun, TERMS)
    go, at_ms = ResumeRequested(program=play.now.program), play.now.agreed_ms + later_ms
    effects = play.feed(go, at_ms=at_ms, terms=terms).effects
    assert (play.why, len(effects)) == (expected, 0 if expected else 1)
    if expected:
        assert play.now.held_by == (UNKNOWN_OUTCOME if begun else CHANGED_SINCE)
        assert len(deciding(play, seen=terms, terms=terms).effects) == 1


@pytest.mark.parametrize(
    ("actor", "requested_by", "expected"),
    [
        ("ada", "ada", "POL-026"),
        ("ada", "", "POL-026"),
        ("ada", "bob", ""),
        ("register", "bob", "POL-026"),
    ],
)
def test_four_eyes_want_another_person_than_the_requester(
    actor: str, requested_by: str, expected: str
) -> None:
    play = over_limit(program(POLICY.replace(b"\nname =", b"\nfour_eyes = true\nname =", 1)))
    decision = deciding(play, actor=actor, requested_by=requested_by)
    assert (code(decision), len(decision.effects)) == (expected, 0 if expected else 1)


@pytest.mark.parametrize("other", _others(HELD.now))
def test_every_hold_has_a_name_of_its_own(other: str) -> None:
    assert [len(hold_id(draft.after)) for draft in HELD.drafts][-2:] == [0, 64]
    assert hold_id(_others(HELD.now)[other]) != hold_id(HELD.now)


def test_every_hold_needs_an_approval_of_its_own() -> None:
    play = Play().to_propose(amount_minor=OVER, currency="SEK")
    play.ledger = {"workspace/SEK": OVER}
    play.propose(proposal(amount_minor=OVER, currency="SEK"))
    assert play.now.held_by == "currency-not-allowed"
    play.approve()
    assert (play.now.held_by, play.now.owed) == ("over-limit", None)
    play.approve()
    assert play.now.owed is not None


ENDS = """fills = ["receipt"]
retry = { attempts_max = 2, backoff_ms = 1_000 }
timeout_ms = 3_600_000
next = "completed"
on_error = "apologise"
"""
AGAIN = """
[[steps]]
name = "propose_again"
kind = "model"
tool = "model.ask"
accepts = ["refund.issue"]
next = "judge_again"
on_error = "apologise"
[[steps]]
name = "judge_again"
kind = "pure"
authorizes = "propose_again"
next = "issue_again"
on_error = "apologise"
[[steps]]
name = "issue_again"
kind = "effect"
call = "authorized"
fills = ["receipt"]
next = "completed"
on_error = "apologise"
"""


ADMITTED = """
[[rules]]
id = "ask-first"
at = "admission"
outcome = "hold"
approvable = true
when = "$slots.paid_minor > 0"
why = "A person says whether a model is asked."
"""


def twice(old: str, new: str) -> Program:
    """The desk with a second refund behind the first one."""
    return desk_with((ENDS, ENDS.replace(old, new) + AGAIN))


def held_again(run: Run) -> None:
    """The run waits before the second call, which no person has seen."""
    assert run.stands == "awaiting_approval judge_again POL-020"
    assert (run.snapshot.held_by, run.snapshot.approved) == ("old-order", ())


@pytest.mark.parametrize(
    ("program", "answers"),
    [
        (twice('"completed"', '"propose_again"'), ()),
        (
            twice('on_error = "apologise"', 'on_error = "propose_again"'),
            [Failed(code="OUT-1", text="No.")],
        ),
    ],
    ids=["after the first call was made", "after the first call failed"],
)
def test_approval_of_one_call_lifts_no_hold_of_another(
    program: Program, answers: list[Failed]
) -> None:
    run = held(program, Till(*answers))
    run.run()
    held_again(run)
    assert len(run.till.asked) == 1
    assert run.tell(Approved) == ""
    run.run()
    assert (run.stands, len(run.till.asked)) == ("completed issue_again", 2)


def test_approval_of_a_judged_call_ends_with_the_next_proposal() -> None:
    judge = 'authorizes = "propose"\nnext = "issue"'
    skips = '[{ when = "$slots.age_days < 0", to = "issue" }, { to = "propose_again" }]'
    edits = (ENDS, ENDS + AGAIN), (judge, judge.replace('"issue"', skips))
    run = Run(program=desk_with(*edits), order="A-4").go()
    assert run.stands == "awaiting_approval judge POL-020"
    assert run.tell(Approved) == ""
    run.run()
    held_again(run)


def test_approval_to_ask_one_model_is_none_to_ask_another() -> None:
    first = 'accepts = ["refund.issue"]\nnext = "judge"\non_error = "apologise"'
    edits = (ENDS, ENDS + AGAIN), (first, first.replace("apologise", "propose_again"))
    run = Run(program=desk_with(*edits, more=ADMITTED), order="A-1", model=lambda _: b"{}").go()
    assert run.stands == "awaiting_approval propose POL-020"
    assert run.tell(Approved) == ""
    run.run()
    assert run.stands == "awaiting_approval propose_again POL-020"
    assert run.snapshot.held_by == "ask-first"


LATE = 'id = "late", at = "authorize", outcome = "deny"'
assert LATE in TEXT
HOLDS = load_program(
    TEXT.replace(LATE, LATE.replace('"deny"', '"hold", approvable = true')).encode()
)


def refunded(run: Refund) -> None:
    """Somebody refunds elsewhere: no rule allows another one now."""
    run.counts = {"refunds": 1}


def refused(run: Refund, decision: Decision) -> None:
    """The call was not made, by rule, and the step's error path was taken."""
    assert [effect.step for effect in decision.effects] == ["apologise"]
    assert (run.now.step, run.why) == ("apologise", "POL-003")
    assert run.now.reserved == ()


def between_calls(**changes: Any) -> Refund:
    """A run that was paused before its judged call was made."""
    run = Refund().to_refund()
    now = run.now._replace(owed=None, state=life.PAUSED, suspended_ms=run.at_ms, deadline_ms=0)
    run.now = now._replace(**changes)
    return run


def test_call_after_a_pause_for_funds_or_at_another_attempt_is_judged_as_it_is_made() -> None:
    run = between_calls()
    refunded(run)
    refused(run, run.resume())
    poor = Refund().to_ask()
    poor.ledger = {**FUNDS, "workspace/EUR": 1}
    poor.propose()
    assert (poor.now.state, poor.now.step) == (life.EXHAUSTED, "refund")
    poor.ledger = FUNDS
    refunded(poor)
    refused(poor, poor.resume())
    retried = Refund().to_refund()
    refunded(retried)
    refused(retried, retried.fail())


def test_hold_at_the_call_suspends_there_and_its_approval_covers_that_call() -> None:
    run = Refund(HOLDS).to_refund()
    first = run.key
    refunded(run)
    waits = run.fail()
    assert kinds(waits) == ["failed", "suspended"]
    assert (run.now.state, run.now.step, run.now.held_by) == (life.APPROVAL, "refund", "late")
    assert run.now.owed is None
    assert run.now.reserved != ()  # for the attempt that is to come
    lifted = run.feed(Approved)
    assert kinds(lifted) == ["resumed", "intent"]
    assert (run.owed.attempt, run.key != first) == (2, True)
    assert body(lifted, 1)["decision"] == {"verdict": "ACCEPTED", "rules": ("small", "late")}
    assert run.now.allowed_by == ("small", "late")


def test_same_key_handed_out_once_more_is_asked_no_rule() -> None:
    run = Refund().to_refund()
    key = run.key
    run.feed(PauseRequested)
    refunded(run)
    assert run.feed(ResumeRequested, program=HASH).effects[0].key == key


def test_call_is_judged_with_what_its_step_puts_in() -> None:
    """No file says so; a program that is built by hand may."""
    step = replace(PROGRAM.steps["refund"], args={"to": "order"})
    run = Refund(replace(PROGRAM, steps={**PROGRAM.steps, "refund": step})).to_refund()
    assert (run.now.step, run.why) == ("apologise", "POL-010")
    assert BUYER.ref == run.now.slots["buyer"]


@pytest.mark.parametrize("tool", ["desk.apologise", "nobody.knows"])
def test_call_that_was_never_granted_is_not_made(tool: str) -> None:
    run = between_calls(call=(tool, {}))
    run.resume()
    assert (run.now.step, run.why) == ("apologise", "CAP-001")
