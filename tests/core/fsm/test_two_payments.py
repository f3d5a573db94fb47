"""A run that pays twice: what a person says of one call holds for no other."""

import pytest

from nanovm_core.core.events import Approved
from nanovm_core.core.program import Program
from nanovm_core.vm import Failed
from tests.core.kit.refund_desk import Run, Till, desk_with, held

ENDS = """fills = ["receipt"]
retry = { attempts_max = 2, backoff_ms = 1_000 }
timeout_ms = 3_600_000
next = "completed"
on_error = "apologise"
"""
ASK_AGAIN = """
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
"""
ISSUE_AGAIN = """
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
    return desk_with((ENDS, ENDS.replace(old, new) + ASK_AGAIN + ISSUE_AGAIN))


def held_again(run: Run) -> None:
    """It stands before the second call, which no person has seen."""
    assert run.stands == "awaiting_approval judge_again POL-020"
    assert run.snapshot.held_by == "old-order"
    assert run.snapshot.approved == ()


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
    till = Till(*answers)
    run = held(program, till)
    run.run()
    held_again(run)
    assert len(till.asked) == 1
    assert run.tell(Approved) == ""
    run.run()
    assert (run.stands, len(till.asked)) == ("completed issue_again", 2)


def test_approval_of_a_judged_call_ends_with_the_next_proposal() -> None:
    judge = 'authorizes = "propose"\nnext = "issue"'
    skips = '[{ when = "$slots.age_days < 0", to = "issue" }, { to = "propose_again" }]'
    edits = (ENDS, ENDS + ASK_AGAIN + ISSUE_AGAIN), (judge, judge.replace('"issue"', skips))
    run = Run(program=desk_with(*edits), order="A-4").go()
    assert run.stands == "awaiting_approval judge POL-020"
    assert run.tell(Approved) == ""
    run.run()
    held_again(run)


def test_approval_to_ask_one_model_is_none_to_ask_another() -> None:
    to_second = 'accepts = ["refund.issue"]\nnext = "judge"\non_error = "apologise"'
    edits = (
        (ENDS, ENDS + ASK_AGAIN + ISSUE_AGAIN),
        (
            to_second,
            to_second.replace("apologise", "propose_again"),
        ),
    )
    run = Run(program=desk_with(*edits, more=ADMITTED), order="A-1", model=lambda _: b"{}").go()
    assert run.stands == "awaiting_approval propose POL-020"
    assert run.tell(Approved) == ""
    run.run()
    assert run.stands == "awaiting_approval propose_again POL-020"
    assert run.snapshot.held_by == "ask-first"
