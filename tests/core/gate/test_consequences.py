"""Consequences: a rule that suspends its agent, at every stage, and facts that rules share."""

import json
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from nanovm_core.conditions import parse
from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.policy import ALLOW, DENY, HOLD, SUSPEND, Fact, PolicyRule
from nanovm_core.core.messages import Suspension
from nanovm_core.core.program import Program
from nanovm_core.errors import RefusedError
from nanovm_core.judge import judge
from nanovm_core.ledger.memory import InMemoryLedger
from nanovm_core.vm import Failed
from tests.core.conditions.condition_reference import outcome
from tests.core.gate.cashier import call, facts, gate, rule
from tests.core.gate.test_decider import Engine
from tests.core.kit.builders import Play, body, code
from tests.core.kit.refund_desk import DESK, TOOL, Run, Till, call_of, desk_with, slots_of
from tests.core.kit.refund_runs import HASH, PROGRAM, RECEIPT, Refund

STOP = rule("stop", SUSPEND, "true")
AGENT = PROGRAM.agent
COMMAND = (Suspension(AGENT, "stop", "Because."),)


def under(*rules: PolicyRule, **changes: Any) -> Program:
    return replace(PROGRAM, rules=(*PROGRAM.rules, *rules), **changes)


def at(stage: str, *outcomes: str) -> list[PolicyRule]:
    """A rule that applies for each outcome; the one that suspends is called stop."""
    names = {SUSPEND: "stop"}
    return [rule(names.get(each, each), each, "true", at=stage) for each in outcomes]


@pytest.mark.parametrize(("outcomes", "state", "step", "why", "commands"), [
    ((ALLOW,), life.ACTIVE, "", "", ()),
    ((ALLOW, HOLD), life.APPROVAL, "", "POL-020", ()),
    ((ALLOW, HOLD, SUSPEND), life.PAUSED, "", "CAP-040", COMMAND),
    ((SUSPEND,), life.PAUSED, "", "CAP-040", COMMAND),
    ((ALLOW, DENY, HOLD), life.ACTIVE, "apologise", "POL-003", ()),
    ((DENY, SUSPEND, ALLOW), life.PAUSED, "apologise", "CAP-040", COMMAND),
])  # fmt: skip
@pytest.mark.parametrize("stage", ["admission", "authorize"])
def test_what_rules_make_of_a_run_before_its_call(
    stage: str, outcomes: tuple[str, ...], state: str, step: str, why: str, commands: object
) -> None:
    run = Refund(under(*at(stage, *outcomes)))
    if stage == "admission":
        run.start()
        decision, stands = run.look_up(), "ask"
    else:
        refused = run.to_ask().propose()
        if DENY in outcomes:  # a refused proposal suspends nothing: anybody may send one
            assert (code(refused), refused.commands) == ("POL-003", ())
            decision, commands = run.propose(), ()
            state, why = life.ACTIVE, "FSM-005"
        else:
            decision = refused
        stands = "refund" if state == life.ACTIVE else "judge"
    assert (run.now.state, run.now.step, decision.commands) == (state, step or stands, commands)
    assert run.why == why
    if state == life.PAUSED and not step:
        assert body(decision, -1)["decision"] == {"verdict": "SUSPENDED", "rules": ("stop",)}
        assert "Because. (rule stop)" in (run.now.reason or ("", ""))[1]


def test_a_call_denied_when_it_is_made_suspends_as_well_and_the_error_path_waits() -> None:
    late = rule("stop", SUSPEND, "$history.refunds > 0")  # as the rule that denies
    run = Refund(under(late)).to_ask()
    run.pause()
    run.propose()
    run.counts = {"refunds": 1}
    decision = run.resume()
    assert decision.commands == COMMAND
    assert (run.now.state, run.now.step, run.why) == (life.PAUSED, "apologise", "CAP-040")


@pytest.mark.parametrize("retry", [True, False])
def test_six_calls_the_last_three_declined_suspend_the_payer_and_none_is_repeated(
    retry: bool,
) -> None:
    def sixth(earlier: int, failing: int) -> Any:
        run = Play().to_charge()
        run.counts = {"calls_1m@payer": earlier + 1, "failing@payer": failing}
        failed = events.EffectFailed(key=run.key, code="STR-001", text="declined", retry=retry)
        return run.feed(failed), run

    decision, run = sixth(5, 2)
    assert [each[:2] for each in decision.commands] == [("payer", "error-storm")]
    assert (decision.effects, run.why) == ((), "CAP-040" if retry else "STR-001")
    for earlier, failing in ((4, 2), (5, 1)):
        decision, _ = sixth(earlier, failing)
        assert (decision.commands, len(decision.effects)) == ((), int(retry))


def test_in_memory_the_sixth_refund_suspends_the_desk_until_it_is_resumed() -> None:
    storm = """[[rules]]\nid = "storm"\nat = "outcome"\noutcome = "suspend"\nwhy = "A storm."
when = "$history.refunds_1m > 5 and $history.failing >= 3 and $result.failed"\n"""
    program, ledger = desk_with(more=storm), InMemoryLedger()
    for number in range(6):
        declined = Failed(code="DESK-1", text="declined", retry=number == 5)
        assert not ledger.halted
        Run(Till(declined) if number > 2 else Till(), program, ledger=ledger, run=f"{number}").go()
    assert dict(ledger.halted) == {DESK.agent: "suspended.by_rule"}
    last = Run(Till(), program, ledger=ledger, run="7").go()
    assert (last.snapshot.state, last.till.asked) == (life.PAUSED, [])
    ledger.halted.clear()
    assert last.tell(events.ResumeRequested, program=program.hash) == ""
    last.run()
    assert last.stands == "awaiting_approval judge POL-020"  # a rule of the desk's own
    assert last.replayed() == last.envelopes


@pytest.mark.parametrize(("when", "why"), [
    ("$result.failed or $result.code != ''", ""),
    ("$slots.urgent and $proposal.amount_minor == 3000 and $tool == 'money.refund'", "Because."),
    ("$slots.receipt == ''", "POL-002"),  # of the run before the result: there is none yet
])  # fmt: skip
def test_a_payment_that_was_made_is_recorded_whatever_a_rule_does(when: str, why: str) -> None:
    run = Refund(under(rule("stop", SUSPEND, when, at="outcome"))).to_refund()
    decision = run.done(RECEIPT)
    assert run.now.slots["receipt"] == RECEIPT.ref
    assert [each.agent for each in decision.commands] == ([AGENT] if why else [])
    assert all(why in each.why for each in decision.commands)
    assert (run.now.state, run.now.step) == (life.PAUSED if why else life.ACTIVE, "letter")


def test_a_late_answer_is_an_outcome_too_and_a_forged_one_is_none() -> None:
    run = Refund(under(rule("stop", SUSPEND, "$result.code == 'X-1'", at="outcome"))).to_refund()
    run.under_way()
    late = events.AnswerArrived(run=run.now.run, program=HASH, key=run.now.awaits, code="X-1")
    assert run.feed(late, vouched=False).commands == ()
    assert run.feed(late).commands == COMMAND
    nameless = Refund(under(rule("stop", SUSPEND, "$result.failed", at="outcome"))).to_refund()
    failed = events.EffectFailed(key=nameless.key, code="", text="")
    assert nameless.feed(failed).commands == COMMAND


def test_the_agent_that_uses_the_tool_is_the_one_that_is_suspended_or_stopped() -> None:
    tools = {**PROGRAM.tools}
    for name, agent in (("letters.send", "clerk"), ("model.ask", "reader")):
        tools[name] = replace(tools[name], agent=agent)
    run = Refund(under(rule("stop", SUSPEND, "$tool == 'letters.send'", at="outcome"), tools=tools))
    run.halted = {"reader": "suspended.by_rule"}
    run.start()
    run.look_up()
    assert (run.now.step, run.why, code(run.resume())) == ("ask", "CAP-040", "CAP-040")
    run.halted = {}
    run.resume()
    run.propose()
    run.halted = {AGENT: "suspended.by_rule"}
    assert run.done(RECEIPT).effects[0].tool == "letters.send"
    assert [each.agent for each in run.done().commands] == ["clerk"]


def test_facts_say_what_their_conditions_say_in_place() -> None:
    dice, answers = Random(34), []  # noqa: S311  # it chooses examples
    atoms = (
        "$slots.open",
        "$slots.amount > 400",
        "$slots.absent",
        "not $slots.open",
        "$agent == 'x'",
    )
    for _ in range(300):
        texts: list[tuple[str, str]] = []  # with facts, and without any
        for _ in range(dice.randint(1, 5)):
            parts = [(text, text) for text in dice.sample(atoms, 2)]
            parts += [(f"$fact.f{place}", f"({plain})") for place, (_, plain) in enumerate(texts)]
            word, chosen = dice.choice((" and ", " or ")), dice.sample(parts, 2)
            texts.append((word.join(p[0] for p in chosen), word.join(p[1] for p in chosen)))
        *above, (mine, plain) = texts
        named = tuple(Fact(name=f"f{n}", when=parse(each[0])) for n, each in enumerate(above))
        expected = outcome(plain, {"slots": facts().slots, "agent": "payer"})
        try:
            gate(rule("no", DENY, mine), facts=named).permit(call(), facts())
            found: object = False
        except RefusedError as error:
            found = {"POL-003": True}.get(error.code, error.code)
        assert found == (expected if isinstance(expected, bool) else "POL-002"), (mine, named)
        answers.append(found)
    assert {*answers} == {True, False, "POL-002"}


def test_a_fact_is_asked_once_a_decision_and_only_where_it_is_read() -> None:
    asked: list[str] = []

    def fact(name: str, text: str) -> Fact:
        def run(context: Mapping[str, object]) -> bool:
            asked.append(name)
            return parse(text).run(context)

        return Fact(name=name, when=replace(parse(text), run=run))

    named = (fact("low", "$slots.amount < 9"), fact("idle", "true"), fact("odd", "$fact.low"))
    rules = [rule(f"r{n}", DENY, "$fact.odd") for n in range(3)]
    of = gate(*rules, rule("s", SUSPEND, "$fact.idle", at="outcome"), facts=named)
    of.permit(call(), facts())
    assert asked == ["low", "odd"]
    of.admit(facts())
    assert asked == ["low", "odd"]
    assert of.context(facts())["fact"] == {"low": False, "idle": True, "odd": False}  # for guards
    asked.clear()
    assert [each.id for each in of.ended(call(), facts(), "ann", None)] == ["s"]
    assert asked == ["idle"]


def test_pages_and_dry_verdicts_show_what_suspends() -> None:
    found = gate(STOP).explain(call(), facts())
    shown = {each.subject: each.text for each in found if each.held}
    assert shown == {"": "Suspends the agent: stop.", "stop": "It suspends the agent: Because."}
    row = '[[rules]]\nid = "{}"\nat = "{}"\noutcome = "{}"\nwhen = "{}"\nwhy = "So it is."\n'
    more = """[[facts]]\nname = "eve"\nwhen = "$slots.signed_by == 'eve'"\n"""
    more += row.format("no-eve", "admission", DENY, "$fact.eve")  # of a slot that is to come
    more += row.format("s", "authorize", SUSPEND, f"$tool == '{TOOL}'")
    line = call_of()[:-1] + f', "context": {{"slots": {json.dumps(slots_of())}}}}}'.encode()
    assert [each.rule for each in judge(desk_with(more=more), [line])] == ["POL-004"]


def test_a_foreign_engine_that_denies_does_not_spare_the_agent() -> None:
    engine = Engine(admits=RefusedError("POL-003", "no"))
    with pytest.raises(RefusedError) as caught:
        gate(replace(STOP, at="admission"), decider=engine).admit(facts())
    assert [each.id for each in caught.value.fired] == ["stop"]
