"""A tool that needs a grant is called under one or not at all, whoever calls it."""

from dataclasses import replace

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import PauseRequested, ResumeRequested, TimePassed
from nanovm_core.core.program import Program
from nanovm_core.errors import ProgramError
from nanovm_core.loading import load_program
from tests.core.kit.refund_runs import HASH, PROGRAM, RECEIPT, TEXT, Refund, code, kinds

REFUND, LETTER = (PROGRAM.grants[name] for name in ("money.refund", "letters.send"))
BARE = """
[tools."TOOL".args]
amount_minor = { type = "integer" }
[tools."TOOL"]
"""


def changed(*changes: tuple[str, str]) -> Program:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return load_program(text.encode())


def test_programs_own_call_loses_its_grant_and_is_refused() -> None:
    run = Refund().to_refund()
    run.program = PROGRAM.attenuated([REFUND])
    after = run.done(RECEIPT)
    assert (run.now.state, run.why) == (life.FAILED, "CAP-001")
    assert "intent" not in kinds(after)


def test_judged_call_loses_its_grant_in_a_pause_and_is_refused() -> None:
    run = Refund(stepping=True)
    run.start()
    while run.now.step != "refund":
        run.feed(ResumeRequested, program=HASH)
        run.look_up() if run.now.step == "look_up" else run.propose()
        run.feed(PauseRequested)
    assert run.now.owed is not None
    run.program = PROGRAM.attenuated([LETTER])
    assert code(run.feed(ResumeRequested, program=HASH)) == "CAP-001"
    assert run.now.state == life.PAUSED


def test_call_without_its_grant_is_still_one_whose_outcome_nobody_knows() -> None:
    run = Refund().to_refund()
    run.program = PROGRAM.attenuated([LETTER])
    run.feed(TimePassed, after_ms=120_000)
    assert (run.now.state, run.why) == (life.APPROVAL, "FSM-014")


def test_copy_of_a_program_does_not_forget_what_needs_a_grant() -> None:
    bare = replace(PROGRAM, grants={})
    assert bare.granted == PROGRAM.granted == {"money.refund", "letters.send"}
    assert PROGRAM.attenuated([LETTER]).attenuated([LETTER]).granted == PROGRAM.granted


@pytest.mark.parametrize(
    "key",
    [
        'money = { amount = "amount_minor", currency_is = "EUR" }',
        'critical = { amount_minor = "amount_minor" }',
    ],
)
def test_tool_that_moves_money_or_has_critical_arguments_loads_with_a_grant_alone(key: str) -> None:
    bare = BARE.replace("TOOL", "money.send") + key + "\n\n[[grants]]"
    with pytest.raises(ProgramError, match="needs a grant") as caught:
        changed(("[[grants]]", bare))
    assert (caught.value.code, len(caught.value.faults)) == ("PRG-002", 1)


def short(tool: str, name: str) -> Program:
    """The program with a tool that takes no text over nine characters."""
    spec = replace(PROGRAM.tools[tool].args[name], length_max=9)
    narrow = replace(PROGRAM.tools[tool], args={name: spec})
    return replace(PROGRAM, tools={**PROGRAM.tools, tool: narrow})


def test_effect_without_a_grant_is_held_to_its_schema() -> None:
    run = Refund()
    run.program = short("orders.look_up", "order")
    after = run.start()
    assert (run.now.state, run.why) == (life.FAILED, "CAP-006")
    assert kinds(after) == ["terminal"]


def test_question_to_the_model_is_held_to_its_tools_schema() -> None:
    run = Refund()
    run.program = short("model.ask", "draft")
    run.to_ask()
    assert run.now.step == "apologise"
    assert run.why == "CAP-006"


@pytest.mark.parametrize("name", ["look_up", "route"])
def test_step_of_no_known_kind_is_not_passed(name: str) -> None:
    step = replace(PROGRAM.steps[name], kind="approval")
    run = Refund()
    run.program = replace(PROGRAM, steps={**PROGRAM.steps, name: step})
    run.start()
    if name == "route":
        run.look_up()
    assert (run.now.state, run.why, run.now.step) == (life.FAILED, "PRG-002", name)


def test_tool_that_the_program_does_not_know_is_not_asked() -> None:
    step = replace(PROGRAM.steps["look_up"], tool="orders.drop")
    run = Refund()
    run.program = replace(PROGRAM, steps={**PROGRAM.steps, "look_up": step})
    run.start()
    assert (run.now.state, run.why) == (life.FAILED, "CAP-001")
