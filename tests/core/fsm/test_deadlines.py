"""Time, which comes on events alone: deadlines, the pauses between attempts, the run's clock."""

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import Context, TimePassed
from nanovm_core.core.fsm import transition
from nanovm_core.core.fsm.results import backoff_ms
from nanovm_core.core.messages import RunId
from tests.core.kit.builders import Play, code
from tests.core.kit.deployment import Deployment, gate, in_step

BUILD_MS, DEPLOY_MS, MODEL_MS, WINDOW_MS = 60_000, 120_000, 120_000, 1_800_000
WALL_MS = 7_200_000


def retried() -> Deployment:
    """A build whose first attempt is known to have failed, and that waits before its second."""
    run = Deployment().to_build()
    run.failed(retry=True)
    return run


# --- deadlines -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "limit_ms"),
    [
        (Deployment().to_build(), BUILD_MS),
        (Deployment(risk=7).to_window(), WINDOW_MS),
        (Deployment().to_plan(), MODEL_MS),
        (Deployment().to_deploy(), DEPLOY_MS),
    ],
    ids=["effect", "wait", "model", "granted"],
)
def test_nothing_happens_and_nothing_is_sealed_before_the_time_is_over(
    run: Deployment, limit_ms: int
) -> None:
    assert run.now.deadline_ms == run.at_ms + limit_ms
    for at_ms in (0, run.at_ms, run.now.deadline_ms - 1):
        decision = transition(run.program, run.now, TimePassed(), Context(at_ms=at_ms))
        assert (decision.snapshot, decision.drafts) == (run.now, ())
        assert (decision.effects, decision.budgets, decision.refusal) == ((), (), None)
    over_at = Context(at_ms=run.now.deadline_ms)
    over = transition(run.program, run.now, TimePassed(), over_at)
    assert over.drafts != ()


def test_an_effect_without_authority_is_tried_again() -> None:
    run = Deployment(gate(in_step("build", "backoff_ms = 500", "backoff_ms = 0"))).to_build()
    keys = [run.key]
    for _ in range(3):
        run.passes(BUILD_MS)
        keys.append(run.key)
    assert len(set(keys)) == 4
    assert [draft.body.get("rule") for draft in run.drafts].count("FSM-014") == 3
    run.passes(BUILD_MS)
    assert (run.now.step, run.now.reason and run.now.reason[0]) == ("tell", "FSM-014")


@pytest.mark.parametrize("waiting", [False, True])
def test_a_granted_effect_that_nobody_answers_waits_for_a_person(waiting: bool) -> None:
    run = Deployment().to_deploy()
    if waiting:
        run.under_way()
    key, reserved = run.key, run.now.reserved
    decision = run.passes(DEPLOY_MS)
    assert (run.now.state, run.now.held_by) == (life.APPROVAL, "unknown-outcome")
    assert (run.now.reason and run.now.reason[0], run.key) == ("FSM-014", key)
    assert (run.now.reserved, decision.budgets, decision.effects) == (reserved, (), ())


def test_a_wait_and_a_question_that_nobody_answers_take_their_error_path() -> None:
    waits, asks = Deployment(risk=7).to_window(), Deployment().to_plan()
    waits.passes(WINDOW_MS)
    decision = asks.passes(MODEL_MS)
    for run in (waits, asks):
        assert (run.now.step, run.now.awaits) == ("tell", "")
        assert (run.now.state, run.now.reason and run.now.reason[0]) == (life.ACTIVE, "FSM-014")
    assert [(each.account, each.reserved, each.spent) for each in decision.budgets] == [
        ("workspace/tokens", -8_192, 0),
        ("global/steps", 0, 1),
    ]


@pytest.mark.parametrize(
    ("until_ms", "waits_ms"), [(0, DEPLOY_MS), (5_000, 5_000), (DEPLOY_MS * 9, DEPLOY_MS)]
)
def test_who_is_under_way_may_say_until_when_but_never_longer_than_the_step(
    until_ms: int, waits_ms: int
) -> None:
    run = Deployment().to_deploy()
    run.under_way(run.at_ms + 10 + until_ms if until_ms else 0)
    assert run.now.deadline_ms == run.at_ms + waits_ms


@pytest.mark.parametrize("until_ms", [1, -5])
def test_an_until_in_the_past_is_over_at_once_and_never_no_deadline(until_ms: int) -> None:
    for pauses in (False, True):
        run = Deployment().to_deploy()
        if pauses:
            run.pause()
        run.under_way(until_ms)
        if pauses:
            run.resume()
        run.passes(0)
        assert run.now.state == life.APPROVAL


def test_no_time_passes_for_a_run_that_has_not_begun_or_stands_still() -> None:
    held = Deployment(frozen=True).to_plan()
    paused = Deployment().to_deploy()
    paused.pause()
    for run in (Deployment(), held, paused):
        before = run.now
        assert (code(run.passes(10**12)), run.now) == ("FSM-002", before)


# --- suspensions do not count ----------------------------------------------------------------


@pytest.mark.parametrize("pause_ms", [1, 119_000, 3_000_000])
def test_a_pause_moves_the_deadline_on(pause_ms: int) -> None:
    run = Deployment().to_deploy()
    left_ms = run.now.deadline_ms - run.at_ms
    run.pause()
    run.resume(by_ms=pause_ms)
    assert run.now.deadline_ms - run.at_ms == left_ms - 10


def test_a_pause_counts_neither_for_a_wait_nor_for_the_runs_clock() -> None:
    run = Deployment(risk=7).to_window()
    started_ms = run.now.started_ms
    run.pause()
    run.resume(by_ms=10**9)
    assert run.now.state == life.WAITING
    run.passes(WINDOW_MS - 11)
    assert run.now.state == life.WAITING
    assert run.now.started_ms == started_ms + 10**9
    run.arrives({"opened_by": "ops"})
    assert run.now.step == "plan"


def test_a_pause_moves_on_only_by_what_came_after_an_effect_was_under_way() -> None:
    run = Deployment().to_deploy()
    run.pause()
    run.tick(50_000)
    run.under_way()
    run.resume(by_ms=70_000)
    assert run.now.deadline_ms - run.at_ms == DEPLOY_MS


def test_a_hold_of_a_year_costs_no_running_time() -> None:
    run = Play().to_propose(amount_minor=2_000_000)
    run.pause()
    started_ms, paused_ms = run.now.started_ms, run.at_ms
    run.resume(by_ms=365 * 86_400_000)
    assert run.now.started_ms - started_ms == run.at_ms - paused_ms
    assert run.now.state == life.ACTIVE


@pytest.mark.parametrize(("ran_ms", "state"), [(-1, life.ACTIVE), (0, life.EXHAUSTED)])
def test_the_runs_clock_is_read_where_a_step_begins(ran_ms: int, state: str) -> None:
    run = Deployment(gate(in_step("build", "60_000", "10_000_000"))).to_build()
    run.tick(WALL_MS - 10 + ran_ms)
    run.built()
    assert run.now.state == state
    assert (run.now.reason is None) == (ran_ms < 0)
    if state == life.EXHAUSTED:
        assert (run.now.reason and run.now.reason[0], run.now.step) == ("BUD-005", "plan")
        run.resume(by_ms=10**9)
        assert (run.now.state, run.now.owed) == (life.EXHAUSTED, None)
        run.kill()
        assert run.now.state == life.KILLED


def test_a_clock_that_goes_back_gives_no_time_and_takes_none() -> None:
    run = Deployment().to_deploy()
    deadline_ms, started_ms = run.now.deadline_ms, run.now.started_ms
    run.pause()
    run.resume(by_ms=-5_000)
    assert (run.now.deadline_ms, run.now.started_ms) == (deadline_ms, started_ms)


# --- between attempts ------------------------------------------------------------------------


def test_a_retry_waits_first_and_is_tried_when_its_time_has_come() -> None:
    run = Deployment().to_build()
    key = run.key
    run.failed(retry=True)
    assert (run.now.state, run.now.owed, run.now.attempt) == (life.IDLE, None, 2)
    wait_ms = run.now.deadline_ms - run.at_ms
    before = run.now
    assert run.passes(wait_ms - 1).drafts == ()
    assert run.now == before
    (effect,) = run.passes(1).effects
    assert (effect.attempt, effect.key != key, run.now.state) == (2, True, life.ACTIVE)
    assert run.now.deadline_ms == run.at_ms + BUILD_MS
    run.built()
    assert run.now.step == "plan"


def test_the_wait_doubles_up_to_its_limit_and_a_quarter_by_the_key() -> None:
    run = Deployment().to_build()
    step = run.program.steps["build"]
    waits = [backoff_ms(run.now._replace(attempt=attempt), step) for attempt in (1, 2, 3, 99)]
    for wait, base in zip(waits, (500, 1_000, 1_500, 1_500), strict=True):
        assert base <= wait < base + base // 4


def test_the_wait_differs_from_run_to_run_and_is_the_same_on_every_machine() -> None:
    step = Deployment().program.steps["build"]
    runs = [Deployment(run=RunId(f"run-{number}")).now for number in range(40)]
    waits = [backoff_ms(now, step) for now in runs]
    assert waits == [backoff_ms(now, step) for now in runs]
    assert len(set(waits)) > 20
    assert len({backoff_ms(runs[0]._replace(attempt=each), step) for each in range(3, 30)}) > 10


def test_attempts_end_after_the_last_one() -> None:
    run, attempts = Deployment().to_build(), []
    while run.now.step == "build":
        attempts.append(run.now.attempt)
        run.failed(retry=True)
        run.passes(10_000)
    assert attempts == [1, 2, 3, 4]
    assert [draft.at_ms for draft in run.drafts] == sorted(draft.at_ms for draft in run.drafts)
    assert run.now.step == "tell"


def test_a_retry_of_a_granted_effect_keeps_what_the_first_one_froze() -> None:
    run = Deployment().to_deploy()
    reserved = run.now.reserved
    assert run.failed(retry=True).budgets == ()
    assert (run.now.state, run.now.reserved) == (life.IDLE, reserved)
    decision = run.passes(10_000)
    assert [each.account for each in decision.budgets] == ["global/steps"]
    (effect,) = decision.effects
    assert (effect.attempt, effect.warrant is None) == (2, False)
    assert run.now.reserved == reserved
    run.done({"release": "r-1"})
    assert run.now.used["calls"] == 1


def test_a_pause_between_attempts_shortens_no_wait() -> None:
    run = retried()
    left_ms = run.now.deadline_ms - run.at_ms
    run.pause()
    assert run.now.state == life.PAUSED
    resumed = run.resume(by_ms=10**6)
    assert ([draft.kind for draft in resumed.drafts], resumed.effects) == (["resumed"], ())
    assert resumed.drafts[0].body["state"]["to"] == run.now.state == life.IDLE  # type: ignore[index]
    assert left_ms - 20 <= run.now.deadline_ms - run.at_ms <= left_ms
    assert run.passes(run.now.deadline_ms - run.at_ms - 1).effects == ()
    (effect,) = run.passes(1).effects
    assert (effect.attempt, run.now.state) == (2, life.ACTIVE)


def test_nothing_is_answered_between_attempts() -> None:
    run = retried()
    before = run.now
    for decision in (run.built(), run.failed(), run.unknown(), run.under_way(), run.arrives()):
        assert code(decision) in ("FSM-001", "FSM-002", "FSM-015")
    assert run.now == before
    run.kill()
    assert run.now.state == life.KILLED
