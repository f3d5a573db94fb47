"""Planning on the pages: a card's form, the list of plans, taking back, a new run's form."""

import re
from typing import Any

import pytest
from django.conf import settings

from dashboard.runs import frames, run_view
from engine.models import Run
from engine.queries.runs import RunHead
from sabotage import tasks
from sabotage.models import Attack, Plan
from sabotage.planned import plans
from tests.dashboard.visitor import FORM, TRANSFER, Visitor, by_code, words

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture(autouse=True)
def sent(queued: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plans that were sent off on the queue."""
    monkeypatch.setattr("dashboard.web.broadcast.announce", lambda _: None)
    return queued[plans.TASK]


@pytest.fixture(scope="module")
def stepping(owner: Visitor) -> RunHead:
    """A run that has not started, and will pause before each step."""
    return owner.make(hold=True, pace="step")


def plan(owner: Visitor, run: RunHead, name: str, step: int | str, **form: str) -> Any:
    return owner.post(f"/runs/{run.code}/plans/{name}/", {"plan_step": str(step), **form})


def planned(owner: Visitor, run: RunHead) -> str:
    """What the console says of the plans."""
    page = owner.read(f"/runs/{run.code}/")
    return words(re.findall(r'<div id="plans"[^>]*>(.*?)</div>', page, re.S)[0])


def begun(owner: Visitor, run: RunHead) -> None:
    """Start a run; whoever hears of its commits notices (these tests commit nothing)."""
    owner.command(run, "start")
    owner.driven(run.code)
    plans.notice(run.id)


def test_a_plan_is_shown_fires_once_and_leads_to_its_verdict(
    owner: Visitor, stepping: RunHead, sent: list[str]
) -> None:
    run = stepping
    for _ in range(2):  # a double click plans once
        key = {"Idempotency-Key": "d" * 32}
        response = plan(owner, run, "tool_injection", 2, proposal=TRANSFER, **key)
        assert (response.status_code, response["Location"]) == (303, f"/runs/{run.code}/#plans")
    assert Plan.objects.count() == 1
    assert "fires automatically at step 2, extract" in planned(owner, run)
    assert not Attack.objects.exists()
    begun(owner, run)
    assert "about to fire" in planned(owner, run)
    for _ in range(2):
        tasks.fire_planned(sent[0])
    attack = Attack.objects.get()
    assert "Planned for step 2, extract, and fired automatically. BLOCKED" in planned(owner, run)
    page = owner.read(f"/runs/{run.code}/attacks/{attack.pk}/")
    assert "Planned for step 2, extract, and fired automatically." in words(page)
    assert "wire_transfer" in page
    assert "by itself" not in words(owner.read(owner.fire(run, "skip_step")))


def test_it_is_told_that_the_run_ended_before(
    owner: Visitor, ready: RunHead, sent: list[str]
) -> None:
    plan(owner, ready, "skip_step", 5)
    owner.command(ready, "kill")
    tasks.sweep_plans()
    said = "Planned for step 5, authorize, but not fired. The run ended before step 5."
    assert said in planned(owner, ready)
    assert sent == []


def test_it_can_be_taken_back_until_it_is_on_its_way(
    owner: Visitor, stepping: RunHead, sent: list[str]
) -> None:
    for step in (3, 2):
        plan(owner, stepping, "skip_step", step)
    first, second = Plan.objects.order_by("step")
    buttons = re.findall("/plans/([^/]+)/take-back/", owner.read(f"/runs/{stepping.code}/"))
    assert buttons == [str(each.pk) for each in (first, first, second, second)]  # one for htmx
    back = f"/runs/{stepping.code}/plans/{{}}/take-back/"
    assert owner.post(back.format(second.pk)).status_code == 303
    begun(owner, stepping)
    assert sent == [str(first.pk)]
    late = owner.post(back.format(first.pk))
    assert late.status_code == 422
    assert "The attack is already firing" in words(late.content.decode())
    live = owner.post(back.format(first.pk), headers={"HX-Request": "true"})
    assert 'id="error-plans"' in live.content.decode()
    assert "/take-back/" not in owner.read(f"/runs/{stepping.code}/")


def test_no_other_step_is_taken(owner: Visitor, ready: RunHead) -> None:
    for step in ("0", "8", "", "x", "²"):
        response = plan(owner, ready, "skip_step", step)
        assert response.status_code == 422
        said = words(response.content.decode())
        assert "skip_step was not planned A step is a number from 1 to 7." in said
    assert not Plan.objects.exists()


def test_only_a_run_that_has_not_started_offers_it(owner: Visitor, stepping: RunHead) -> None:
    assert owner.read(f"/runs/{stepping.code}/").count('name="plan_step"') == 5
    plan(owner, stepping, "skip_step", 5)
    mark = frames.mark_of(frames.marks_of(run_view.read(by_code(stepping.code))))
    owner.command(stepping, "start")
    [live] = frames.frames(stepping.id, [frames.Cursor(after=stepping.length, mark=mark)])
    assert re.search(r'id="plan-skip_step" hx-swap-oob="true"></div>', live.html)
    assert "fires automatically at step 5" in live.html
    assert 'name="plan_step"' not in owner.read(f"/runs/{stepping.code}/")
    response = plan(owner, stepping, "skip_step", 5)
    assert response.status_code == 422
    assert "The run has started" in words(response.content.decode())


def test_the_inventory_says_where_its_words_lie(owner: Visitor, ready: RunHead) -> None:
    plan(owner, ready, "skip_step", 5)
    assert "planned attack" not in words(owner.read(f"/privacy/{ready.code}/"))
    plan(owner, ready, "tool_injection", 5, proposal=TRANSFER)
    assert "Text of 1 planned attack not shown" in words(owner.read(f"/privacy/{ready.code}/"))


def test_a_new_run_takes_a_plan_along(owner: Visitor, sent: list[str]) -> None:
    owner.make(pace="step", plan_attack="corrupt_hash", plan_step="1")
    tasks.sweep_plans()
    made = Plan.objects.get()
    assert (made.injector, made.step, sent) == ("corrupt_hash", 1, [str(made.pk)])
    owner.make(hold=True, plan_attack="", plan_step="4")
    assert Plan.objects.count() == 1


@pytest.mark.parametrize(
    ("attack", "step", "queue", "says"),
    [
        ("nonsense", "4", True, "plan-attack-error"),
        ("skip_step", "8", True, "plan-step-error"),
        ("skip_step", "", True, "Choose the step at which it fires."),
        ("skip_step", "4", False, "needs the queue server"),
    ],
)
def test_a_wrong_plan_makes_no_run(
    visitor: Visitor, attack: str, step: str, queue: bool, says: str, monkeypatch: Any
) -> None:
    if not queue:
        monkeypatch.setattr(settings, "REDIS_URL", None)
    form = {**FORM, "sample": "plain", "plan_attack": attack, "plan_step": step}
    before = Run.objects.count()
    assert says in visitor.refused("/runs/", form)
    assert Run.objects.count() == before
