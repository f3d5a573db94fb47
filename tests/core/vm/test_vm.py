"""ExecutionVM: what it takes, from whom, what is left when something breaks, and replays."""

from collections.abc import Callable

import pytest

from examples.refund_desk.desk import Clock, clerk
from nanovm_core.core import events
from nanovm_core.core.authority.capabilities import grant_id
from nanovm_core.core.canonical import INTEGER_MAX
from nanovm_core.core.envelope import ZERO, canonical_hash
from nanovm_core.core.events import Approved, EffectDone, EffectFailed, KillRequested, RunStarted
from nanovm_core.core.messages import Effect, Scalar
from nanovm_core.errors import CanonicalError, ProgramError, VerificationError
from nanovm_core.ledger.memory import InMemoryLedger
from nanovm_core.vm import Answer, Done, ExecutionVM, Said, Waiting
from tests.core.kit.refund_desk import DESK, TOOL, Run, Till, call_of, desk_with, held

SIMPLE = {"order": "A-1", "message": "please"}


@pytest.mark.parametrize(
    ("missing", "named"),
    [("orders.look_up", "look_up"), (TOOL, "propose"), ("mail.apologise", "apologise")],
)
def test_a_program_without_one_of_its_tools_does_not_begin(missing: str, named: str) -> None:
    tools = {name: Till() for name in ("orders.look_up", TOOL, "mail.apologise", "one.more")}
    del tools[missing]
    with pytest.raises(ProgramError, match=f"PRG-006: step {named} needs {missing}"):
        ExecutionVM(DESK, run="r", tools=tools, model=clerk, now_ms=Clock(), slots=SIMPLE)
    tools[missing] = Till()
    with pytest.raises(ProgramError, match="PRG-006: step propose asks a model"):
        ExecutionVM(DESK, run="r", tools=tools, now_ms=Clock(), slots=SIMPLE)


def test_a_run_is_sealed_from_genesis_to_end() -> None:
    run = Run().go()
    assert run.stands == "completed issue"
    assert run.till.asked[0][0] == {"order": "A-1", "amount_minor": 4_500, "currency": "EUR"}
    looked_up, asked = ["intent", "result", "result"], ["intent", "result", "result"]
    assert run.kinds() == ["genesis", *looked_up, *asked, "intent", "result", "terminal"]
    prev = ZERO
    for n, (stored, body) in enumerate(zip(run.envelopes, run.bodies(), strict=True)):
        assert (body["n"], body["seq"], body["log"], body["run"]) == (n, n, "memory", "run")
        assert (body["program"], body["policy"]) == (run.program.hash, run.program.policy.hash)
        assert (body["prev"], stored.hash) == (prev, canonical_hash(stored.data))
        prev = stored.hash
    run.verify()


def test_who_a_run_counts_against_is_the_programs_agent_or_the_named_one() -> None:
    ledger = InMemoryLedger()
    assert Run(ledger=ledger).go().snapshot.agent == "desk"
    assert Run(ledger=ledger, agent="ann").go().snapshot.agent == "ann"
    assert ledger.counts(DESK, "ann", 0)["refunds_1m"] == 2
    assert ledger.left(DESK, "ann", ())["agent/calls"] == 99


def test_a_result_is_taken_from_the_tool_and_from_nobody_else() -> None:
    run = held()
    key = run.owed.key
    assert run.tell(EffectDone, key=key, out={"receipt": "forged"}) == "FSM-012"
    assert run.tell(EffectFailed, key=key, code="X", text="x") == "FSM-012"
    run.run()
    assert run.snapshot.slots["receipt"] == "re"


def test_an_answer_is_fed_by_nobody_and_taken_from_whom_the_caller_knows() -> None:
    run = Run(Till(Waiting())).go()
    before = run.snapshot
    forged = run.feed(run.awaited(out={"receipt": "forged"})).refusal
    assert forged is not None
    assert (forged.code, run.snapshot) == ("FSM-018", before)
    assert run.answered(out={"receipt": "re_1"}) == ""
    assert (run.stands, run.snapshot.slots["receipt"]) == ("completed issue", "re_1")


def test_money_and_revocations_are_those_of_the_books() -> None:
    ledger = InMemoryLedger()
    program = desk_with(("max = 25_000", "max = 4_499"))
    run = Run(Till(), program, order="A-4", ledger=ledger).go()
    assert run.tell(Approved) == ""
    run.run()
    poor = Run(Till(), desk_with(("max = 25_000", "max = 1_999")), order="A-4").go()
    assert poor.tell(Approved) == ""
    assert (run.stands, poor.stands) == ("completed issue", "budget_exhausted issue BUD-001")
    ledger.revoke(grant_id(program.grants[TOOL]))
    late = Run(Till(), program, order="A-4", ledger=ledger)
    assert late.tell(RunStarted) == ""
    assert late.run().step == "apologise"
    assert [body["rule"] for body in late.bodies() if body["kind"] == "refused"] == ["CAP-008"] * 2


def test_a_tool_and_a_model_get_copies_of_what_they_may_see() -> None:
    out: dict[str, Scalar] = {"receipt": "re"}
    seen: list[dict[str, Scalar]] = []

    def model(view: dict[str, Scalar]) -> bytes:
        seen.append(dict(view))
        view.clear()
        return call_of()

    run = Run(Till(Done(out=out)), model=model).go()
    run.till.asked[0][0]["amount_minor"] = 1
    out["receipt"] = "other"
    slots = run.snapshot.slots
    assert (slots["receipt"], slots["paid_minor"]) == ("re", 4_500)
    assert seen == [{name: slots[name] for name in ("order", "message", "paid_minor", "currency")}]
    assert run.replayed() == run.envelopes
    run.verify()


def test_tokens_are_what_the_model_counted_or_all_that_were_reserved() -> None:
    program = desk_with(('unit = "calls"\nmax = 100', 'unit = "tokens"\nmax = 10_000'))
    for model, left in (
        (lambda view: Said(raw=call_of(), tokens=3), 9_997),
        (lambda view: call_of(), 10_000 - 8_192),
        (lambda view: Said(raw=call_of(), tokens=81_920), 10_000 - 81_920),
    ):
        run = Run(program=program, model=model).go()
        assert run.stands == ("completed issue" if left > 0 else "user_paused issue CAP-040")
        assert run.ledger.left(program, "desk", ())["agent/tokens"] == left
        assert run.ledger.frozen("desk") == 0
        assert run.ledger.halted == ({} if left > 0 else {"desk": "suspended.budget_exhausted"})


def test_an_agent_whose_time_is_over_begins_nothing_until_it_is_let_go_on() -> None:
    program = desk_with(('unit = "calls"\nmax = 100', 'unit = "wall_ms"\nmax = 60_000'))
    run = Run(program=program, order="A-4").go()
    ledger, at_ms = run.ledger, run.clock()
    assert ledger.halted_at(program, "desk", at_ms + 50_000) == {}
    run.clock.at_ms += 60_000
    assert run.tell(Approved) == "CAP-040"
    assert (run.till.asked, ledger.halted) == ([], {"desk": "suspended.budget_exhausted"})
    ledger.halted.clear()
    assert run.tell(Approved) == ""
    assert (run.run(), run.stands)[1] == "completed issue"
    assert run.replayed() == run.envelopes


def test_a_tool_that_raises_leaves_its_effect_owed_under_the_same_key() -> None:
    run = Run(Till(OSError("the network"), Waiting()))
    run.tell(RunStarted)
    with pytest.raises(OSError, match="the network"):
        run.run()
    sealed = run.envelopes
    assert (run.owed.tool, run.money) == (TOOL, 20_500)
    run.run()
    assert run.envelopes[:-1] == sealed
    assert run.till.asked[0] == run.till.asked[1]


@pytest.mark.parametrize("nonsense", ["PENDING", None, {"receipt": "re"}])
def test_an_answer_of_no_known_kind_is_an_error_of_the_tool(nonsense: object) -> None:
    run = Run(Till(nonsense))
    run.tell(RunStarted)
    with pytest.raises(TypeError, match="a tool answers Done, Failed, Unknown or Waiting"):
        run.run()
    assert run.owed.tool == TOOL
    text = Run(Till(Done(out={"receipt": "PENDING"}))).go()  # a text is a text
    assert (text.stands, text.snapshot.slots["receipt"]) == ("completed issue", "PENDING")


def test_the_programs_own_tool_fails_with_an_answer_that_does_not_fit() -> None:
    asked = []

    def orders(args: dict[str, Scalar], key: str) -> Answer:
        asked.append(key)
        return Done(out={"paid_minor": "4500"})

    run = Run(orders=orders).go()
    assert (run.stands, len(asked)) == ("completed apologise", 1)
    failed = [body for body in run.bodies() if body["kind"] == "failed"]
    assert [body["rule"] for body in failed] == ["FSM-007"]


def test_what_cannot_be_sealed_changes_nothing() -> None:
    run = held()
    before = (run.snapshot, run.envelopes, run.money, run.ledger.counts(DESK, "desk", 0))
    run.clock.at_ms = 2**60  # no clock says so: what an event says is bounded
    with pytest.raises(CanonicalError):
        run.feed(events.PauseRequested())
    assert (run.snapshot, run.envelopes, run.money, run.ledger.counts(DESK, "desk", 0)) == before
    assert run.replayed() == run.envelopes


def test_half_of_a_decision_is_not_sealed() -> None:
    run = Run(order="A-3")
    run.clock.at_ms = INTEGER_MAX - 15_000
    with pytest.raises(CanonicalError):
        run.go()
    assert [body["kind"] for body in run.bodies()] == ["genesis", "intent"]
    assert run.replayed() == run.envelopes
    run.verify()


@pytest.mark.parametrize(("late_ms", "asked"), [(0, 0), (-1, 1)])
def test_a_late_warrant_covers_nothing(late_ms: int, asked: int) -> None:
    run = held()
    assert run.owed.warrant is not None
    run.clock.at_ms = run.owed.warrant.expires_ms + late_ms - 10  # it ticks before it tells
    run.run()
    assert len(run.till.asked) == asked
    if not asked:
        assert run.stands == "awaiting_approval issue CAP-021"
        assert run.tell(Approved) == ""
        assert run.run().state == "terminated.completed"


@pytest.mark.parametrize(
    "change",
    [
        lambda owed: owed._replace(args={**owed.args, "amount_minor": 2_001}),
        lambda owed: owed._replace(warrant=None),
    ],
    ids=["other arguments", "no warrant"],
)
def test_a_call_that_its_warrant_does_not_cover_is_not_made(
    change: Callable[[Effect], Effect],
) -> None:
    run = held()
    run.snapshot = run.snapshot._replace(owed=change(run.owed))
    run.run()
    assert (run.stands, run.till.asked) == ("awaiting_approval issue CAP-020", [])


def test_only_what_left_must_be_answered_before_a_run_is_stopped() -> None:
    run = Run(Till(OSError("the network")))
    run.tell(RunStarted)
    with pytest.raises(OSError, match="network"):
        run.run()
    assert run.tell(KillRequested) == "FSM-009"
    assert Run(Till(Waiting())).go().tell(KillRequested) == "FSM-009"
    unasked = held()
    assert unasked.tell(KillRequested) == ""
    assert (unasked.stands, unasked.till.asked) == ("killed issue FSM-006", [])
    assert unasked.money == 25_000


def faults(run: Run) -> tuple[str, int]:
    """What verification finds, and where."""
    with pytest.raises(VerificationError) as caught:
        run.verify()
    return caught.value.code, caught.value.at


@pytest.mark.parametrize(
    ("forged", "code"), [({"hash": "0" * 64}, "LOG-001"), ({"n": 7}, "LOG-002")]
)
def test_a_damaged_record_is_found(forged: dict[str, object], code: str) -> None:
    run = Run().go()
    run._sealed[2] = run._sealed[2]._replace(**forged)  # type: ignore[arg-type]
    assert faults(run)[0] == code


def test_a_value_that_was_not_sealed_is_found() -> None:
    run = Run().go()
    run.snapshot = run.snapshot._replace(slots={**run.snapshot.slots, "paid_minor": 1})
    assert faults(run) == ("LOG-003", 9)
