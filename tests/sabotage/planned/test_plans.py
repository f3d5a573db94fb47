"""Planned attacks: fired once as the run reaches the step, told where they were missed."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.db import connection, connections
from kombu.exceptions import OperationalError

from engine.models import Run, Secret
from engine.privacy import journal
from engine.privacy.erasure import erase_run
from engine.runtime import api
from engine.vault.key_store import keystore
from engine.worker.drive import drive_patiently
from nanovm_core.core import lifecycle as life
from sabotage import tasks
from sabotage.kit.injector import InjectionError
from sabotage.models import Attack, Plan
from sabotage.planned import plans
from tests.kit.house import crash
from tests.sabotage.runs import VISITOR, at, let_go, now

pytestmark = pytest.mark.usefixtures("runtime_here")

TYPED = '{"tool": "Zyxomma Petiolatum", "args": {}}'


@pytest.fixture(autouse=True)
def sent(queued: dict[str, list[str]]) -> list[str]:
    """The plans that were sent off on the queue."""
    return queued[plans.TASK]


def planned(run: Run, step: int, injector: str = "skip_step", **params: str) -> Plan:
    return plans.make(str(run.id), injector, params, step)


def fresh(plan: Plan) -> Plan:
    return Plan.objects.get(pk=plan.pk)


@contextmanager
def unheard() -> Iterator[None]:
    """Commits that no process hears of."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "on_commit", lambda _run_id: None)
        yield


def step_on(run: Run) -> Run:
    """Let a run that goes step by step take one step."""
    run_id = str(run.id)
    (api.start if now(run).state == life.READY else api.step)(run_id, VISITOR)
    drive_patiently(run_id)
    return now(run)


def test_it_is_sent_off_as_the_run_reaches_its_step_and_not_before(sent: list[str]) -> None:
    run = at("stepped")
    plan = planned(run, 3)
    for number, state in ((2, "planned"), (3, "due"), (4, "due")):
        assert plans.number_of(step_on(run)) == number
        assert (fresh(plan).state, sent) == (state, [str(plan.pk)] if state == "due" else [])


def test_it_is_fired_once_through_the_same_door_however_often_its_message_comes(
    sent: list[str],
) -> None:
    run = at("stepped")
    plan = planned(run, 2, "tool_injection", proposal=TYPED)
    assert step_on(run).state == life.PAUSED
    for _ in range(3):
        tasks.fire_planned(sent[0])
    found = fresh(plan)
    attack = Attack.objects.get(run=run)
    assert (found.state, found.at_step, found.attack) == ("fired", 2, attack)
    assert f"{attack.injector} {attack.verdict} {attack.rule}" == "tool_injection BLOCKED CAP-001"


def test_two_who_notice_at_once_send_it_once(
    sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = at("stepped")
    plan = planned(run, 2)
    with unheard():
        step_on(run)
    assert sent == []
    together, moved = threading.Barrier(4), plans._advance
    monkeypatch.setattr(plans, "_advance", lambda *what: (together.wait(), moved(*what))[1])

    def look() -> None:
        try:
            plans.notice(str(run.id))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda _: look(), range(4))] == [None] * 4
    assert sent == [str(plan.pk)]


def test_what_nobody_heard_of_the_sweep_finds(sent: list[str]) -> None:
    run, ended = at("stepped"), at("stepped")
    plan, missed = planned(run, 1), planned(ended, 1)
    with unheard():
        step_on(run)
        step_on(ended)
        api.kill(str(ended.id), VISITOR)
    tasks.sweep_plans()  # which may find what other tests left
    assert [each for each in sent if each in (str(plan.pk), str(missed.pk))] == [str(plan.pk)]
    assert fresh(missed).why == "The run ended before the attack at step 1 could be fired."


def test_a_run_that_ended_before_its_step_is_told(sent: list[str]) -> None:
    run = at("stepped")
    plan = planned(run, 5, "tool_injection", proposal=TYPED)
    step_on(run)
    api.kill(str(run.id), VISITOR)
    found = fresh(plan)
    assert (found.state, found.why) == ("missed", "The run ended before step 5.")
    assert (sent, found.words, found.attack) == ([], None, None)


def test_a_lost_message_is_sent_again_and_a_young_one_not(
    sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise OperationalError

    run = at("stepped")
    plan = planned(run, 1)
    with monkeypatch.context() as broken:
        broken.setattr(plans, "current_app", SimpleNamespace(send_task=away))
        step_on(run)
    assert fresh(plan).state == "due"
    at_ms = fresh(plan).changed_ms
    monkeypatch.setattr(plans, "now_ms", lambda: at_ms + plans.RESEND_MS)
    plans.sweep()
    assert str(plan.pk) not in sent
    monkeypatch.setattr(plans, "now_ms", lambda: at_ms + plans.RESEND_MS + 1)
    plans.sweep()
    assert str(plan.pk) in sent


def swept_much_later(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """The plan after a sweep that finds it lost; one just before leaves it alone."""
    later = fresh(plan).changed_ms + plans.LOST_MS
    for at_ms in (later, later + 1):
        assert fresh(plan).state == "firing"
        monkeypatch.setattr(plans, "now_ms", lambda at_ms=at_ms: at_ms)
        plans.sweep()
    return fresh(plan)


@pytest.mark.parametrize(
    ("dies_before", "lost", "state", "times"),
    [
        ("fire", False, "due", 2),  # it is fired after all
        ("_close", False, "fired", 1),  # it is not fired twice
        ("_close", True, "missed", 1),  # in the middle: nobody knows, and that is told
    ],
)
def test_what_became_of_an_attack_whose_worker_dies(
    dies_before: str,
    lost: bool,
    state: str,
    times: int,
    sent: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = at("stepped")
    plan = planned(run, 1)
    step_on(run)
    with monkeypatch.context() as dying:
        dying.setattr(plans, dies_before, crash)
        with pytest.raises(KeyboardInterrupt):
            plans.carry_out(str(plan.pk))
    if lost:
        Attack.objects.filter(run=plan.run).update(verdict="")
    found = swept_much_later(plan, monkeypatch)
    assert (found.state, sent.count(str(plan.pk))) == (state, times)
    assert found.attack == (Attack.objects.get(run=plan.run) if state == "fired" else None)
    assert found.why == (plans.DIED if lost else "")


def test_it_is_taken_back_until_it_is_on_its_way(sent: list[str]) -> None:
    run, other = at("stepped"), at("stepped")
    plan, kept = planned(run, 1, "tool_injection", proposal=TYPED), planned(run, 1)
    assert not plans.take_back(str(other.id), plan.pk)
    assert plans.take_back(str(run.id), plan.pk)
    assert keystore().keys([plan.words_ref]) == {}
    step_on(run)
    assert sent == [str(kept.pk)]
    assert not plans.take_back(str(run.id), kept.pk)
    assert fresh(kept).state == "due"


def test_what_was_typed_lies_sealed_and_is_destroyed_once_it_is_fired_or_erased(
    sent: list[str],
) -> None:
    run = at("stepped")
    plan = planned(run, 2, "tool_injection", proposal=TYPED)
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM sabotage_plan WHERE id = %s", [plan.pk.hex])
        assert "Zyxomma" not in repr(cursor.fetchall())
    assert not Secret.objects.filter(ref=plan.words_ref).exists()  # no envelope commits to it
    step_on(run)
    plans.carry_out(sent[0])
    assert (fresh(plan).words, keystore().keys([plan.words_ref])) == (None, {})
    assert plan.words_ref in journal.refs()  # which a backup of the keys cannot undo
    waits = planned(other := at("stepped"), 5, "tool_injection", proposal=TYPED)
    erase_run(str(other.id), "art17-1-a", VISITOR)
    assert (fresh(waits).state, fresh(waits).words) == ("missed", None)
    assert keystore().keys([waits.words_ref]) == {}


@pytest.mark.parametrize(
    ("erased", "says"), [(True, plans.NO_WORDS), (False, "finds no instruction")]
)
def test_an_attack_that_cannot_be_made_is_told(sent: list[str], erased: bool, says: str) -> None:
    run = at("stepped")
    plan = planned(run, 1, "tool_injection", proposal="hello", by="gullible")
    if erased:
        keystore().destroy([plan.words_ref])
    step_on(run)
    plans.carry_out(sent[0])
    assert fresh(plan).state == "missed"
    assert says in fresh(plan).why
    assert not Attack.objects.filter(run=run).exists()


@pytest.mark.parametrize(
    ("injector", "step", "params", "says"),
    [
        ("nonsense", 1, {}, "no injector"),
        ("split_limit", 1, {}, "no injector"),
        ("skip_step", 0, {}, "from 1 to 7"),
        ("skip_step", 8, {}, "from 1 to 7"),
        ("skip_step", 1, {"skip": "lunch"}, "is one of"),
    ],
)
def test_a_wrong_plan_is_refused(
    injector: str, step: int, params: dict[str, str], says: str
) -> None:
    run = at("stepped")
    with pytest.raises(InjectionError, match=says):
        planned(run, step, injector, **params)
    assert not run.plans.exists()


def test_a_run_takes_so_many_plans_none_once_it_started_and_none_without_a_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = at("stepped")
    for _ in range(plans.PLANS_MAX):
        planned(run, 7)
    refused = [(run, f"up to {plans.PLANS_MAX} planned attacks")]
    refused += [(let_go(at("stepped")), "has started"), (at("stepped"), "needs the queue server")]
    before = keystore().refs().keys()
    for other, says in refused:
        if says == "needs the queue server":
            monkeypatch.setattr(settings, "REDIS_URL", None)
        with pytest.raises(InjectionError, match=says):
            planned(other, 7, "tool_injection")
        assert other.plans.count() == (plans.PLANS_MAX if other == run else 0)
    assert keystore().refs().keys() == before
