"""Branches and waits: guards that err, keys, and answers that are late."""

from dataclasses import replace
from itertools import pairwise

import pytest

from examples.refund_desk.desk import ORDERS
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import Approved
from nanovm_core.core.messages import Scalar
from nanovm_core.core.program import Program
from nanovm_core.errors import ProgramError
from nanovm_core.loading import load_program
from nanovm_core.loading.graph import MOVES_MAX
from nanovm_core.vm import Answer, Done
from tests.core.kit.builders import Scene
from tests.core.kit.refund_desk import Run, desk_with
from tests.core.kit.refund_runs import (
    BUYER,
    DRAFT,
    PROGRAM,
    RECEIPT,
    TEXT,
    Refund,
    body,
    code,
    kinds,
)


@pytest.mark.parametrize("paused", [False, True])
def test_a_guard_that_errs_fails_the_run_whatever_its_error_path_says(paused: bool) -> None:
    erring = replace(PROGRAM.steps["route"], on_error="apologise")
    run = Refund(replace(PROGRAM, steps={**PROGRAM.steps, "route": erring}))
    run.start()
    if paused:
        run.pause()
    decision = run.done(BUYER, DRAFT, amount_minor=3_000)  # nobody said whether it is urgent
    if paused:
        assert (run.now.state, run.now.step) == (life.PAUSED, "route")
        decision = run.resume()
    assert (run.now.state, run.now.step, run.why) == (life.FAILED, "route", "FSM-013")
    assert run.now.reason is not None
    assert "CON-" in run.now.reason[1]
    assert (decision.effects, code(decision)) == ((), "")
    assert kinds(decision)[-2:] == ["result", "terminal"]


def test_each_question_has_a_key_of_its_own_whatever_failed_or_was_refused_before() -> None:
    accepts = 'accepts = ["money.refund"]'
    asks_again = TEXT.replace(accepts, f"{accepts}, retry = {{ attempts_max = 3 }}")
    run = Refund(load_program(asks_again.encode())).to_ask()
    keys = [run.key]
    run.fail()
    keys.append(run.key)
    run.say(b"nonsense")
    keys.append(run.key)
    run.pause()
    run.fail()
    run.resume()
    keys.append(run.key)
    assert len({*keys, ""}) == 5
    assert (run.now.refused, run.now.attempt) == (1, 4)
    run.fail()  # the third failure; the refused answer used up no attempt
    assert run.now.step == "apologise"


HEAD = 'v = "nanovm-program/1"\nname = "long"\nfirst = "s0"\n[limits]\n[slots]\n'


def row(count: int, last: str, step: str, head: str = HEAD) -> Program:
    """A program of so many equal steps, one after the other; NEXT is the one that follows."""
    names = [*(f"s{place}" for place in range(count)), last]
    steps = (
        f'[[steps]]\nname = "{name}"\n{step.replace("NEXT", to)}\n' for name, to in pairwise(names)
    )
    return load_program((head + "".join(steps)).encode())


def test_a_row_of_branches_is_passed_in_one_transition_and_no_longer_one_loads() -> None:
    pure = 'kind = "pure"\nnext = "NEXT"'
    run = Scene(row(MOVES_MAX + 1, "completed", pure), {}, [])
    decision = run.start()
    assert run.now.state == life.COMPLETED
    assert len(decision.drafts) == MOVES_MAX + 2
    with pytest.raises(ProgramError, match="PRG-002"):
        row(MOVES_MAX + 2, "completed", pure)


@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize("until_ms", [1, -5])
def test_an_until_in_the_past_is_over_at_once_and_never_no_deadline(
    until_ms: int, paused: bool
) -> None:
    run = Refund().to_refund()
    if paused:
        run.pause()
    run.under_way(until_ms)
    if paused:
        run.resume()
    run.passes(0)
    assert run.now.state == life.APPROVAL


def test_true_answer_after_a_time_out_is_what_became_of_the_call() -> None:
    run = Refund().to_refund()
    run.under_way()
    run.passes(120_000)
    assert (run.now.state, run.now.held_by) == (life.APPROVAL, "unknown-outcome")
    began_ms = run.now.started_ms
    decision = run.arrives({"receipt": RECEIPT.ref}, RECEIPT)
    moved = {"from": life.APPROVAL, "event": "AnswerArrived", "to": life.ACTIVE}
    assert (code(decision), body(decision)["state"]) == ("", moved)
    assert (run.now.step, run.now.held_by, run.now.used["EUR"]) == ("letter", "", 3_000)
    assert sum(each.spent for each in decision.budgets if each.account == "workspace/EUR") == 3_000
    assert run.now.started_ms > began_ms


def test_a_pause_between_attempts_shortens_no_wait() -> None:
    run = Refund()
    run.start()
    run.fail()
    left_ms = run.now.deadline_ms - run.at_ms
    run.pause()
    resumed = run.resume(by_ms=10**6)
    assert (kinds(resumed), resumed.effects) == (["resumed"], ())
    assert body(resumed)["state"]["to"] == run.now.state == life.IDLE
    assert left_ms - 20 <= run.now.deadline_ms - run.at_ms <= left_ms
    assert run.passes(run.now.deadline_ms - run.at_ms - 1).effects == ()
    (effect,) = run.passes(1).effects
    assert (effect.attempt, run.now.state) == (2, life.ACTIVE)


UNSIGNED = """
[[rules]]
id = "no-age"
at = "admission"
outcome = "hold"
approvable = true
again_from = "look_up"
when = "$slots.age_days > 10"
why = "Mend the order's date first."

# Rules: hard"""


def looked_up_again() -> tuple[Run, list[str]]:
    """A run whose order is too old at the first look-ups, and the keys of these."""
    keys: list[str] = []

    def orders(args: dict[str, Scalar], key: str) -> Answer:
        keys.append(key)
        known = ORDERS[str(args["order"])]
        return Done(out={**known, "age_days": 99 if len(keys) < 3 else 1})

    desk = desk_with(("\n# Rules: hard", UNSIGNED))
    return Run(program=desk, orders=orders).go(), keys


def test_an_approval_leads_back_to_the_step_that_looks_it_up_and_lifts_nothing() -> None:
    run, keys = looked_up_again()
    for _ in range(2):
        assert run.stands == "awaiting_approval propose POL-020"
        assert run.tell(Approved) == ""
        run.run()
    assert (run.stands, len(set(keys))) == ("completed issue", 3)
    assert not any(
        "no-age" in str(body.get("decision", {}).get("rules")) for body in run.bodies()[-5:]
    )
    run.verify()
    assert run.replayed() == run.envelopes


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (("look_up", "nowhere"), "no step with an effect"),
        (("look_up", "sort"), "no step with an effect"),
        (("approvable = true\n", ""), "a hold at admission that a person can approve"),
        (("admission", "authorize"), "a hold at admission that a person can approve"),
    ],
)
def test_an_approval_leads_back_to_a_step_that_is_there(edit: tuple[str, str], says: str) -> None:
    with pytest.raises(ProgramError, match=says):
        desk_with(("\n# Rules: hard", UNSIGNED.replace(*edit)))
