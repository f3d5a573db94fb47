"""ExecutionVM over time: waits, retries, warrants, accounts under several agents, replays."""

from collections.abc import Callable
from random import Random

import pytest

from examples.refund_desk.desk import ORDERS, TICK_MS, Orders
from examples.refund_desk.scenes import SCENES
from nanovm_core.core.capabilities import grant_id
from nanovm_core.core.events import Approved, KillRequested, ResumeRequested, RunStarted, TimePassed
from nanovm_core.core.messages import Effect, Recorded, Scalar
from nanovm_core.errors import VerificationError
from nanovm_core.ledger import InMemoryLedger
from nanovm_core.vm import Done, ExecutionVM, Failed, Waiting
from tests.core.kit.refund_desk import DESK, TOOL, Run, Till, call_of, desk_with, held


def outcomes(ledger: InMemoryLedger) -> list[str]:
    """What was recorded, in order."""
    return [call.outcome for call in ledger.history]


def test_a_failure_that_arrives_gives_the_money_back_and_counts() -> None:
    run = Run(Till(Waiting())).go()
    # Under way is neither done nor failed.
    assert (run.money, outcomes(run.ledger)) == (20_500, ["called"])
    assert run.answered(code="BANK-1", text="The account is closed.") == ""
    assert run.run().step == "apologise"
    assert (run.money, outcomes(run.ledger)) == (25_000, ["called", "failed"])


def test_a_retry_waits_for_its_time() -> None:
    run = Run(orders=Orders(busy=2).look_up).go()
    for _ in range(2):
        assert run.stands == "idle look_up"
        run.clock.at_ms = run.snapshot.deadline_ms - 1 - TICK_MS
        assert run.feed(TimePassed()).refusal is None
        assert run.run().state == "running.idle"
        run.feed(TimePassed())
        run.run()
    assert run.stands == "completed issue"
    assert Run(orders=Orders(busy=3).look_up).go().stands == "idle look_up"


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


def test_a_grant_taken_back_stops_the_call_that_is_owed() -> None:
    run = held()
    run.ledger.revoke(grant_id(DESK.grants[TOOL]))
    run.run()
    assert (run.stands, run.till.asked) == ("awaiting_approval issue CAP-008", [])
    assert run.tell(Approved) == "CAP-008"
    assert run.stands == "awaiting_approval issue CAP-008"


def test_what_left_must_be_answered_before_a_run_is_stopped() -> None:
    run = Run(Till(OSError("the network")))
    run.tell(RunStarted)
    with pytest.raises(OSError, match="network"):
        run.run()
    assert run.tell(KillRequested) == "FSM-009"
    waits = Run(Till(Waiting())).go()
    assert waits.tell(KillRequested) == "FSM-009"


def test_what_has_not_left_does_not_keep_a_run_from_being_stopped() -> None:
    run = held()
    assert run.tell(KillRequested) == ""
    assert (run.stands, run.till.asked) == ("killed issue FSM-006", [])
    assert run.money == 25_000


@pytest.mark.parametrize("seed", range(8))
def test_agents_together_never_exceed_their_cap(seed: int) -> None:
    dice, ledger, cap = Random(seed), InMemoryLedger(), 25_000  # noqa: S311  dice, no secret
    runs = [
        Run(Till(Waiting()), order="A-2", ledger=ledger, agent=f"agent-{n % 3}", run=f"run-{n}")
        for n in range(6)
    ]
    for _ in range(60):
        run = dice.choice(runs)
        if run.snapshot.state == "running.waiting":
            run.answered(**dice.choice([{}, {"code": "X", "text": "x"}]))
        elif run.snapshot.state == "suspended.budget_exhausted":
            run.tell(ResumeRequested, program=run.program.hash)
        elif run.snapshot.state == "initializing.resource_allocation":
            run.tell(RunStarted)
        run.run()
        frozen = [run for run in runs if run.snapshot.state == "running.waiting"]
        paid = [run for run in runs if "issue" in run.stands and run.stands.startswith("comp")]
        assert 9_000 * (len(frozen) + len(paid)) <= cap
        left = cap - 9_000 * (len(frozen) + len(paid))
        assert ledger.left(run.program, "", ["EUR"])["workspace/EUR"] == left
    assert any(run.stands.startswith("completed") for run in runs)
    for run in runs:
        run.verify()
        assert run.replayed() == run.envelopes


@pytest.mark.parametrize(
    ("edit", "proposed"),
    [
        (('currency = "currency" }\nmoney', 'currency = { constant = "EUR" } }\nmoney'), "EUR"),
        ((', currency = "currency" }\nmoney', ' }\nfree = ["currency"]\nmoney'), "USD"),
    ],
    ids=["a constant", "the model's choice"],
)
def test_money_of_a_currency_that_no_slot_names_has_an_account(
    edit: tuple[str, str], proposed: str
) -> None:
    program = desk_with(edit, ('fills = ["paid_minor", "currency", ', 'fills = ["paid_minor", '))

    def orders(args: dict[str, Scalar], key: str) -> Done:
        known = ORDERS[str(args["order"])]
        return Done(out={name: known[name] for name in ("paid_minor", "age_days", "refunded")})

    run = Run(program=program, orders=orders, model=lambda view: call_of(currency=proposed)).go()
    assert run.stands == "completed issue"
    assert run.ledger.left(program, "", [proposed])[f"workspace/{proposed}"] == 20_500


def test_windows_count_what_all_runs_of_the_books_did() -> None:
    ledger = InMemoryLedger()
    Run(model=lambda view: b"no", ledger=ledger).go()
    Run(Till(Failed(code="X", text="x")), ledger=ledger, run="b").go()
    Run(ledger=ledger, run="c").go()
    assert outcomes(ledger) == ["refused", "refused", "called", "failed", "called", "done"]
    assert ledger.history[2]._replace(at_ms=0) == Recorded(0, TOOL, "called", "desk")


def test_failures_of_other_runs_hold_the_next_one() -> None:
    ledger = InMemoryLedger()
    at_ms, stands = 0, []
    for number in range(8):
        run = Run(Till(Failed(code="X", text="x")), ledger=ledger, run=f"run-{number}")
        run.clock.at_ms = max(run.clock.at_ms, at_ms) + (3_600_000 if number == 7 else 0)
        stands.append(run.go().stands)
        at_ms = run.clock.at_ms
    assert stands[:6] == ["completed apologise"] * 6
    assert stands[6:] == ["awaiting_approval judge POL-020", "completed apologise"]


def test_every_scene_of_the_example_replays_to_the_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    vms: list[ExecutionVM] = []
    started = ExecutionVM.__init__

    def noted(self: ExecutionVM, *args: object, **fields: object) -> None:
        started(self, *args, **fields)  # type: ignore[arg-type]
        vms.append(self)

    monkeypatch.setattr(ExecutionVM, "__init__", noted)
    for scene in SCENES:
        list(scene())
    assert len(vms) > 15
    for vm in vms:
        assert vm.replayed() == vm.envelopes
        vm.verify()


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
