"""Planning on the pages: a card's form, the list of plans, taking back, a new run's form."""

import re
from typing import Any

import pytest
from celery import current_app
from django.conf import settings

from dashboard.runs import frames
from pipeline.models import Run
from pipeline.queries.runs import RunHead
from sabotage import tasks
from sabotage.models import Attack, Plan
from sabotage.planned import plans
from tests.dashboard.visitor import FORM, TRANSFER, Visitor, by_code, words


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plans that were sent off on the queue."""
    found: list[str] = []

    def send_task(name: str, args: list[str], **_: object) -> None:
        if name == plans.TASK:
            found.append(args[0])

    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setattr("dashboard.web.broadcast.announce", lambda _: None)
    monkeypatch.setattr(current_app, "send_task", send_task)
    return found


def plan(visitor: Visitor, run: RunHead, name: str, step: int, **form: str) -> Any:
    return visitor.post(f"/runs/{run.code}/plans/{name}/", {"plan_step": str(step), **form})


def planned(visitor: Visitor, run: RunHead) -> str:
    """What the console says of the plans."""
    found = re.search(r'<div id="plans"[^>]*>(.*?)</div>', visitor.read(f"/runs/{run.code}/"), re.S)
    assert found
    return words(found[1])


def begun(visitor: Visitor, run: RunHead) -> None:
    """Start a run; whoever hears of its commits notices (these tests commit nothing)."""
    visitor.command(run, "start")
    visitor.driven(run.code)
    plans.notice(run.id)


def test_a_plan_is_shown_fires_once_and_leads_to_its_verdict(
    visitor: Visitor, sent: list[str]
) -> None:
    run = visitor.make(hold=True, pace="step")
    response = plan(visitor, run, "tool_injection", 2, proposal=TRANSFER)
    assert (response.status_code, response["Location"]) == (303, f"/runs/{run.code}/#plans")
    assert "fires by itself as the run reaches step 2, extract" in planned(visitor, run)
    assert not Attack.objects.exists()
    begun(visitor, run)
    assert "on its way" in planned(visitor, run)
    for _ in range(2):
        tasks.fire_planned(sent[0])
    attack = Attack.objects.get()
    url = f"/runs/{run.code}/attacks/{attack.pk}/"
    assert "Planned for step 2, extract, and fired by itself. BLOCKED" in planned(visitor, run)
    page = visitor.read(url)
    assert "Planned for step 2, extract, and fired by itself." in words(page)
    assert "wire_transfer" in page
    pressed = visitor.read(visitor.fire(run, "skip_step"))
    assert "by itself" not in words(pressed)


def test_where_the_run_was_by_then_is_said(visitor: Visitor, sent: list[str]) -> None:
    run = visitor.make(hold=True, pace="step")
    plan(visitor, run, "skip_step", 2)
    begun(visitor, run)
    visitor.command(by_code(run.code), "resume")
    visitor.driven(run.code)
    tasks.fire_planned(sent[0])
    assert "fired by itself; the run was at step 7 by then." in planned(visitor, run)
    assert Attack.objects.get().verdict == "IGNORED"


def test_it_is_told_that_the_run_ended_before(visitor: Visitor, sent: list[str]) -> None:
    run = visitor.make(hold=True)
    plan(visitor, run, "skip_step", 5)
    visitor.command(run, "kill")
    tasks.sweep_plans()
    said = "Planned for step 5, authorize, and not fired. The run ended before step 5."
    assert said in planned(visitor, run)
    assert (sent, Attack.objects.count()) == ([], 0)


def test_a_double_click_plans_once(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    for _ in range(2):
        plan(visitor, run, "skip_step", 3, **{"Idempotency-Key": "d" * 32})
    assert Plan.objects.count() == 1


def test_it_can_be_taken_back_until_it_is_on_its_way(visitor: Visitor, sent: list[str]) -> None:
    run = visitor.make(hold=True, pace="step")
    for step in (2, 3):
        plan(visitor, run, "skip_step", step)
    first, second = Plan.objects.order_by("step")
    page = visitor.read(f"/runs/{run.code}/")
    assert page.count("/take-back/") == 4  # a button each, with and without htmx
    back = f"/runs/{run.code}/plans/{{}}/take-back/"
    assert visitor.post(back.format(second.pk)).status_code == 303
    begun(visitor, run)
    assert sent == [str(first.pk)]
    late = visitor.post(back.format(first.pk))
    assert late.status_code == 422
    assert "It is on its way already" in words(late.content.decode())
    live = visitor.post(back.format(first.pk), headers={"HX-Request": "true"})
    assert 'id="error-plans"' in live.content.decode()
    assert "/take-back/" not in visitor.read(f"/runs/{run.code}/")


@pytest.mark.parametrize("step", ["0", "8", "", "x", "²"])
def test_no_other_step_is_taken(visitor: Visitor, step: str) -> None:
    run = visitor.make(hold=True)
    response = visitor.post(f"/runs/{run.code}/plans/skip_step/", {"plan_step": step})
    assert response.status_code == 422
    said = words(response.content.decode())
    assert "skip_step was not planned A step is a number from 1 to 7." in said
    assert not Plan.objects.exists()


def test_only_a_run_that_has_not_started_offers_it(visitor: Visitor) -> None:
    run = visitor.make(hold=True, pace="step")
    assert visitor.read(f"/runs/{run.code}/").count('name="plan_step"') == 5
    visitor.command(run, "start")
    visitor.driven(run.code)
    assert 'name="plan_step"' not in visitor.read(f"/runs/{run.code}/")
    response = plan(visitor, run, "skip_step", 5)
    assert response.status_code == 422
    assert "The run has started" in words(response.content.decode())


def test_the_live_page_loses_the_offer_and_gets_the_news(visitor: Visitor) -> None:
    run = visitor.make(hold=True, pace="step")
    plan(visitor, run, "skip_step", 5)
    mark = frames.seen(by_code(run.code))
    visitor.command(run, "start")
    html = frames.frame(run.id, run.length, mark, {}).html
    assert re.search(r'id="plan-skip_step" hx-swap-oob="true"></div>', html)
    assert "fires by itself as the run reaches step 5" in html


def test_the_inventory_says_where_its_words_lie(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    plan(visitor, run, "skip_step", 5)
    assert "planned attack" not in words(visitor.read(f"/privacy/{run.code}/"))
    plan(visitor, run, "tool_injection", 5, proposal=TRANSFER)
    assert "Words of 1 planned attack not shown" in words(visitor.read(f"/privacy/{run.code}/"))


def test_a_new_run_takes_a_plan_along(visitor: Visitor, sent: list[str]) -> None:
    visitor.make(pace="step", plan_attack="corrupt_hash", plan_step="1")
    tasks.sweep_plans()
    made = Plan.objects.get()
    assert (made.injector, made.step, sent) == ("corrupt_hash", 1, [str(made.pk)])
    visitor.make(pace="step", plan_attack="", plan_step="4")
    assert Plan.objects.count() == 1


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"plan_attack": "nonsense", "plan_step": "4"}, "plan-attack-error"),
        ({"plan_attack": "skip_step", "plan_step": "8"}, "plan-step-error"),
        ({"plan_attack": "skip_step"}, "Choose the step at which it fires."),
    ],
)
def test_a_wrong_plan_makes_no_run(visitor: Visitor, form: dict[str, str], says: str) -> None:
    response = visitor.post("/runs/", {**FORM, "sample": "plain", **form})
    assert response.status_code == 422
    assert says in response.content.decode()
    assert not Run.objects.exists()


def test_without_a_queue_it_is_said_and_no_run_is_made(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "REDIS_URL", None)
    form = {**FORM, "sample": "plain", "plan_attack": "skip_step", "plan_step": "4"}
    response = visitor.post("/runs/", form)
    assert response.status_code == 422
    assert "No queue server is configured" in words(response.content.decode())
    assert not Run.objects.exists()
