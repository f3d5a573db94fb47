"""Generated proposals: nothing crashes, nothing hangs, and nothing outside the policy is taken."""

import gc
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from random import Random
from types import FrameType
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings

from nanovm_core.core.events import ProposalReceived
from nanovm_core.core.fsm import transition
from nanovm_core.core.messages import Decision, Scalar
from pipeline.models import AdapterCall, Run
from sabotage.models import Attack
from tests.core.kit.builders import LEDGER, Play, proposal, secret, worker_context
from tests.dashboard.visitor import Visitor
from tests.sabotage.injectors.proposals import (
    ATTACKS,
    PAY,
    anything,
    changed,
    is_due,
    needs_nobody,
    recorded,
)

INVOICES: tuple[Mapping[str, Scalar], ...] = (
    {"amount_minor": 128_450, "currency": "EUR"},
    {"amount_minor": 2_000_000, "currency": "USD"},  # over the limit
    {"amount_minor": 128_450, "currency": "SEK"},  # held whatever the amount
)
PLAYS = [Play().to_propose(**invoice) for invoice in INVOICES]
HANG_MS_MAX = 100
WATCHDOG_S = 300
FEW, MANY, BY_HYPOTHESIS = 3_000, 90_000, 10_000


@contextmanager
def watched() -> Iterator[None]:
    """Break off what hangs, however loaded the machine is."""

    def bark(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"one call took more than {WATCHDOG_S} s")

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(WATCHDOG_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def judged(play: Play, raw: bytes) -> tuple[str, int]:
    """Put the bytes before the run, hold the answer to the oracle; returns it, and its CPU µs."""
    event = ProposalReceived(raw=raw, secret=secret("proposal", 500), key=play.key)
    ledger = LEDGER if play.now.slots["currency"] == "EUR" else ALL
    context = worker_context(at_ms=play.at_ms, actor="model", ledger=ledger)
    gc.disable()  # what the tests themselves hold is not swept on this call's account
    began = time.thread_time_ns()
    decision = transition(play.program, play.now, event, context)
    spent = (time.thread_time_ns() - began) // 1000
    gc.enable()
    hold(play, raw, decision)
    return decision.refusal.code if decision.refusal else "taken", spent


ALL = {f"workspace/{each['currency']}": 100_000_000 for each in INVOICES}


def hold(play: Play, raw: bytes, decision: Decision) -> None:
    """What is taken is the invoice's own payment; what is owed then, the policy pays alone."""
    due, slots = is_due(raw, play.now.slots), play.now.slots
    assert (decision.refusal is None) == due, raw
    paid = [each for each in decision.effects if each.tool == PAY]
    assert bool(paid) == (due and needs_nobody(slots)), raw
    for effect in paid:
        assert effect.warrant is not None
        assert {
            name: effect.args[name] for name in ("amount_minor", "currency", "payee", "memo")
        } == {name: slots[name] for name in ("amount_minor", "currency", "payee", "memo")}


def judge_all(proposals: Iterable[bytes], play: Play) -> tuple[Counter[str], int]:
    """The answers by code, and the most CPU time that one took, in µs."""
    answers: Counter[str] = Counter()
    worst = 0
    for raw in proposals:
        code, spent = judged(play, raw)
        answers[code] += 1
        worst = max(worst, spent)
    return answers, worst


def seeded(number: int) -> Random:
    return Random(number)  # noqa: S311 - examples, no secrets


def seeds() -> list[bytes]:
    return recorded() if ATTACKS.is_file() else []


@pytest.mark.parametrize("place", range(len(PLAYS)))
def test_variations_are_taken_only_where_they_are_the_invoices_own(place: int) -> None:
    play = PLAYS[place]
    with watched():
        many = changed(seeded(place), seeds(), INVOICES[place])
        answers, _ = judge_all(islice(many, FEW // len(PLAYS)), play)
    assert answers["taken"] > 50
    assert len(answers) > 12  # as many different refusals, so that not one wall stops them all


@pytest.mark.skipif(not ATTACKS.is_file(), reason="../shared/data is missing: no attacks to read")
@pytest.mark.parametrize("place", range(len(PLAYS)))
def test_nothing_that_a_fooled_model_said_is_taken(place: int) -> None:
    with watched():
        answers, _ = judge_all(recorded(), PLAYS[place])
    assert answers["taken"] == 0
    assert answers["CAP-001"] > 500


@settings(max_examples=400)
@given(raw=anything())
def test_whatever_bytes_come_the_oracle_agrees(raw: bytes) -> None:
    for play in PLAYS:
        judged(play, raw)


def test_the_oracle_has_teeth() -> None:
    slots = PLAYS[0].now.slots
    assert is_due(proposal(), slots)
    assert not is_due(proposal(amount_minor=128_451), slots)
    assert not is_due(proposal(urgent=True), slots)
    assert not is_due(proposal().replace(b"128450", b"128450.0"), slots)
    assert not is_due(proposal("wire_transfer"), slots)


@pytest.mark.usefixtures("runtime_here")
def test_over_http_no_proposal_is_an_error_of_ours() -> None:
    fire_over_http(30, seeded(7))


def fire_over_http(times: int, dice: Random) -> Counter[int]:
    """Fire as a visitor does, at runs that wait for nothing of the kind; says the statuses."""
    many = changed(dice, seeds(), INVOICES[0])
    statuses: Counter[int] = Counter()
    for _ in range(0, times, 25):  # a run's record is read whole each time: it is kept short
        visitor = Visitor()
        run = visitor.make(hold=True)
        for raw in islice(many, min(25, times)):
            answer = visitor.post(
                f"/runs/{run.code}/attacks/tool_injection/",
                urlencode({"proposal": raw}),
                content_type="application/x-www-form-urlencoded",
            )
            statuses[answer.status_code] += 1
        attacks = Attack.objects.filter(run_id=run.id)
        assert set(attacks.values_list("verdict", "integrity")) == {("BLOCKED", "HELD")}
        assert Run.objects.get(id=run.id).state == run.state
        assert not AdapterCall.objects.filter(run_id=run.id).exists()
    assert set(statuses) <= {303, 422}
    return statuses


@pytest.mark.soak
class TestSoak:
    def test_a_hundred_thousand(self, record_property: Callable[[str, object], None]) -> None:
        """Variations and Hypothesis' own; the most CPU time that one took is recorded."""
        told: Counter[str] = Counter()
        worst = 0
        for place, play in enumerate(PLAYS):
            many = changed(seeded(1_000 + place), seeds(), INVOICES[place])
            answers, slowest = judge_all(islice(many, -(-MANY // len(PLAYS))), play)
            told, worst = told + answers, max(worst, slowest)

        @settings(max_examples=BY_HYPOTHESIS)
        @given(raw=anything())
        def generated(raw: bytes) -> None:
            nonlocal worst
            code, spent = judged(PLAYS[0], raw)
            told[code] += 1
            worst = max(worst, spent)

        generated()
        assert told.total() >= MANY + BY_HYPOTHESIS
        record_property("answers", dict(told))
        record_property("slowest_us", worst)
        print(f"{told.total()} proposals, the slowest {worst} µs of CPU: {told}")
        assert worst < HANG_MS_MAX * 1000

    @pytest.mark.usefixtures("runtime_here")
    def test_a_thousand_over_http(self) -> None:
        print(fire_over_http(1_000, seeded(11)))
