"""The gallery's page, a card for each attack, and the page of a shot, for its visitor alone."""

import re

import pytest
from django.utils.html import escape

from dashboard.gallery.shots import GOALS
from engine.models import Run, Workspace
from pipeline.register import sample_register
from sabotage.ablation.guards import line_of
from sabotage.gallery import SCENARIOS
from sabotage.models import Attack
from tests.dashboard.attacks.test_unguarded_page import PAYMENT, card
from tests.dashboard.visitor import PAGES, Visitor, words

pytestmark = pytest.mark.usefixtures("db")

GALLERY = "/attack/gallery/"
ALONE, SHARED = "drained_budget", "widened_grant"  # runs in a workspace of their own; a run of mine


def shoot(visitor: Visitor, name: str = ALONE, **form: str) -> str:
    """Fire a piece of the gallery; the address of the page of the shot."""
    response = visitor.post(f"{GALLERY}{name}/", form)
    assert response.status_code == 303, response.content.decode()
    found = re.findall(rf'href="({GALLERY}{name}/[0-9a-f-]+/)"', visitor.read(GALLERY))
    assert len(set(found)) == 1
    return str(found[0])


@pytest.fixture(scope="module")
def alone(owner: Visitor) -> str:
    """The page of a shot whose runs are in a workspace of their own."""
    return shoot(owner)


@pytest.fixture(scope="module")
def at_mine(owner: Visitor) -> str:
    """The page of a shot at a run of the visitor's own."""
    return shoot(owner, SHARED)


def shot_at(path: str) -> Attack:
    return Attack.objects.get(id=path.split("/")[-2])


def test_it_says_all_of_an_attack_whose_runs_are_in_a_workspace_of_their_own(
    owner: Visitor, alone: str
) -> None:
    shot = shot_at(alone)
    page = owner.read(alone)
    said = words(page)
    assert 'data-verdict="BLOCKED"' in page
    assert 'href="/docs/rules/BUD-002/"' in page
    for text in (
        "Decided in {}:{} , refused in".format(*line_of("budget-shared")),
        shot.where,
        "Unauthorized calls 0 (adapter log)",
        "stripe.create_payment_intent 2×",
        "Payments 2 (USD 1,000.00, USD 1,000.00), according to the payment provider",
        "Integrity intact",
        "Without nanovm (ordinary agent)",
        "With common checks (careful agent)",
        "Parameters unit calls",
    ):
        assert text in said
    for run in shot.evidence["runs_ended"]:
        assert run["run"] in said
        assert run["hash"] in page
    for name in shot.evidence:
        assert f"<dt>{name.replace('_', ' ')}</dt>" in page


def test_a_ledger_that_was_edited_names_the_alert_that_tells_it(owner: Visitor) -> None:
    path = shoot(owner, "edited_ledger", edit="set what was spent to zero")
    said, alert = words(owner.read(path)), shot_at(path).evidence["alert"]
    assert f"Recorded as alert, event #{alert['event']} on the log's own chain" in said
    assert alert["hash"][:6] in said
    assert "Payments 2 (USD 2,000.00, USD 500.00), according to" in said


def test_a_crash_loop_tells_who_was_killed_and_what_came_back(owner: Visitor, alone: str) -> None:
    shot = shot_at(alone)
    before = shot.injector, shot.verdict, shot.rule, shot.evidence
    node = {"strategy": "one_for_one", "max_restarts": 1, "within_s": 60, "ends_ms": [1]}
    pids = [{"payer": {"pid": pid, "incarnation": pid - 6}} for pid in (7, 8)]
    gone = {"payer": {"pid": 0, "incarnation": 2}}
    kills = [
        {"killed": "payer", "before": pids[0], "after": pids[1], "payments": 1, "node": node},
        {"killed": "payer", "before": pids[1], "after": gone, "payments": 1, "node": node},
    ]
    told = {"kills": kills, "supervisor": node, "killed_at": "charge", "run_ended": ""}
    told |= {"recomputed": {"exit_status": 0, "envelopes": 42}}
    told |= {"alerts": [{"text": "It <gave> up."}]}
    shot.injector, shot.verdict, shot.rule, shot.evidence = "crash_loop", "IGNORED", "", told
    shot.save()
    pages = owner.read(alone.replace(ALONE, "crash_loop")), owner.read(GALLERY)
    shot.injector, shot.verdict, shot.rule, shot.evidence = before
    shot.save()
    for said in map(words, pages):
        assert "IGNORED It changed nothing." in said
        then = "payer: process 8, incarnation 2"
        assert f"1 payer payer: process 7, incarnation 1 {then} 1 of 1 1" in said
        assert f"2 payer {then} payer: stopped 1 of 1 1" in said
        assert "The run waits. It <gave> up. All 42 recorded events" in said


def test_what_a_rogue_client_did_is_told_by_the_bank_alone(visitor: Visitor) -> None:
    path, name, how = shoot(visitor, SHARED), "rogue_mcp_client", {"how": "an unlisted tool"}
    told = {"sent": {"POST": 1}, "may_execute": 0, "far_side": {"reachable": True}, "paid": []}
    out = {"state": "done", "at_ms": 1, "outcome": {"evidence": {"paid": [PAYMENT]}}}
    row = Attack.objects.filter(id=shot_at(path).id)
    row.update(injector=name, params=how, evidence=told, unguarded=out)
    for said in map(words, (visitor.read(path.replace(SHARED, name)), visitor.read(GALLERY))):
        assert "Made by the bank none, according to the bank's own list; allowed: 0" in said
        assert "Payments in the copy (its bank's own list): 1 × EUR 1,284.50" in said
        assert not re.search(r"adapter log|payment provider [()]|[(]payment provider", said)


def test_every_attack_is_in_the_group_of_one_goal(visitor: Visitor) -> None:
    assert sorted(name for names in GOALS.values() for name in names) == sorted(SCENARIOS)
    page = visitor.read(GALLERY)
    found = re.findall(
        r'<h2 class="goal" id="\S+">(.*?)</h2>|<section class="card stack" id="(\w+)"', page
    )
    assert [one or two for one, two in found] == [
        each for goal, names in GOALS.items() for each in (goal, *names)
    ]
    for goal in ("Pay wrongly", "Pay twice", "Hide it", "Read erased data", "Take over an agent"):
        anchor = goal.lower().replace(" ", "-")
        assert page.count(f'href="#{anchor}"') == page.count(f'id="{anchor}"') == 1


def test_its_own_workspace_stays_closed(owner: Visitor, alone: str) -> None:
    runs = Run.objects.filter(workspace=shot_at(alone).run.workspace)
    assert runs.count() == 4
    page = owner.read(alone)
    for run in runs:
        assert run.code in page
        assert f"/runs/{run.code}/" not in page + owner.read(GALLERY) + owner.read("/runs/")
        for each in PAGES:
            owner.read(each.format(code=run.code), 404)
        for command in ("start", "resume", "kill"):
            assert owner.post(f"/runs/{run.code}/{command}/").status_code == 404


def test_a_shot_at_a_run_of_mine_leads_there_and_has_one_page(owner: Visitor, at_mine: str) -> None:
    shot = shot_at(at_mine)
    page = owner.read(at_mine)
    assert f'href="/runs/{shot.run.code}/"' in page
    assert f'href="/runs/{shot.run.code}/calls/"' in page
    old = owner.get(f"/runs/{shot.run.code}/attacks/{shot.id}/")
    assert (old.status_code, old["Location"]) == (302, at_mine)
    assert "Run this attack without this check" in card(page)


def test_it_is_at_its_own_address_alone(owner: Visitor, at_mine: str) -> None:
    owner.read(at_mine.replace(SHARED, ALONE), 404)
    Attack.objects.filter(id=shot_at(at_mine).id).update(injector="skip_step")
    owner.read(at_mine.replace(SHARED, "skip_step"), 404)


def test_after_a_restore_it_is_still_its_visitors(owner: Visitor, alone: str) -> None:
    workspace = shot_at(alone).workspace_id
    Workspace.objects.filter(id=workspace).update(successor=sample_register.new_workspace())
    owner.twin().read(alone)
    later = owner.twin()
    later.make(hold=True)  # and from here on the cookie names the log that goes on
    later.read(alone)
    assert "Fired 1×" in later.read(GALLERY)
    other = Visitor()
    other.make(hold=True)
    other.read(alone, 404)


def test_why_no_copy_is_made_is_said_on_its_page(owner: Visitor, alone: str) -> None:
    page = owner.refused(f"{alone}unguarded/")
    assert "No copy was made. A copy needs the queue server" in words(page)
    assert f'<form method="post" action="{alone}unguarded/">' in card(page)


def test_a_breach_is_told_as_one_and_reported(owner: Visitor, at_mine: str) -> None:
    assert "report.md" not in owner.read(at_mine)
    owner.read(f"{at_mine}report.md", 404)
    shot = shot_at(at_mine)
    shot.integrity, shot.verdict, shot.rule = "BREACHED", "ACCEPTED", ""
    shot.evidence["seen_by_the_attack"] = ["It <got> out."]
    shot.save()
    page = owner.read(at_mine)
    assert re.search(r'class="banner-breach" role="alert">BREACHED. It &lt;got&gt; out', page)
    assert "It got through." in words(page)
    assert f'href="{at_mine}report.md"' in page
    report = owner.read(f"{at_mine}report.md")
    assert report.startswith("# BREACHED: widened_grant")
    assert "- It <got> out." in report


def exhibit(page: str, name: str) -> str:
    """The part of the page that shows one exhibit."""
    return str(re.findall(rf'<section class="card stack" id="{name}".*?</section>', page, re.S)[0])


def test_every_exhibit_has_a_card_with_claim_want_guard_and_a_button(visitor: Visitor) -> None:
    page = visitor.read(GALLERY)
    for name, scenario in SCENARIOS.items():
        shown = exhibit(page, name)
        injector = scenario.injector
        for text in (injector.claim, injector.wants, injector.stopped_by, scenario.why_alone):
            assert escape(text) in shown
        assert f"Fire {name.replace('_', ' ')}" in shown
        assert "data-verdict" not in shown


def test_a_double_click_is_one_shot_that_stays_on_its_card(visitor: Visitor) -> None:
    before = Attack.objects.count()
    key = re.findall(r'name="Idempotency-Key" value="(\w+)"', visitor.read(GALLERY))[0]
    for _ in range(2):
        form = {"how": "any amount", "Idempotency-Key": key}
        response = visitor.post(f"{GALLERY}widened_grant/", form)
        assert (response.status_code, response["Location"]) == (303, f"{GALLERY}#widened_grant")
    assert Attack.objects.count() == before + 1
    shown = exhibit(visitor.read(GALLERY), "widened_grant")
    said = words(shown)
    assert 'data-verdict="BLOCKED"' in shown
    assert 'href="/docs/rules/CAP-030/"' in shown
    assert re.search(r"nanovm_core/core/authority/capabilities\.py:\d+ attenuate", said)
    assert "Payments none, according to the payment provider (local Stripe test server" in said
    assert "Unauthorized calls 0 (adapter log)" in said
    assert "Integrity intact" in said
    assert "how: any amount" in said
    link = re.findall(r'href="(/attack/gallery/widened_grant/[^"]+/)"', shown)[0]
    assert "CAP-030" in visitor.read(link)
    shot = Attack.objects.latest("created_ms")
    shot.integrity, shot.verdict, shot.rule = "BREACHED", "ACCEPTED", ""
    shot.evidence["breaches"] = ["1 payments exist without a recorded intent."]
    shot.save()
    said = words(exhibit(visitor.read(GALLERY), "widened_grant"))
    assert "BREACHED. 1 payments exist without a recorded intent." in said
    assert "It got through." in said


def test_what_cannot_be_fired_is_said_beside_its_form(visitor: Visitor) -> None:
    before = Attack.objects.count()
    shown = exhibit(visitor.refused(f"{GALLERY}split_limit/", {"agents": "99"}), "split_limit")
    assert "Agents at once is a number from 2 to 8. The attack was not fired." in words(shown)
    assert 'aria-describedby="error-split_limit"' in shown
    assert Attack.objects.count() == before
    assert visitor.post(f"{GALLERY}nonsense/").status_code == 404
    assert visitor.get(f"{GALLERY}widened_grant/").status_code == 405


def test_a_page_that_stays_open_is_told_what_is_new_alone(visitor: Visitor) -> None:
    asked = visitor.get(f"{GALLERY}news/")
    known = asked["X-Mark"]
    assert 'id="outcome-widened_grant"' in asked.content.decode()
    assert visitor.get(f"{GALLERY}news/?mark={known}").status_code == 204
    visitor.post(f"{GALLERY}widened_grant/")
    told = visitor.get(f"{GALLERY}news/?mark={known}").content.decode()
    assert 'data-verdict="BLOCKED"' in told
    assert "Fired 1×" in told
    board = visitor.get("/attack/board/")
    assert f'<dd id="total-attempts">{Attack.objects.count()}</dd>' in board.content.decode()
    assert visitor.get(f"/attack/board/?mark={board['X-Mark']}").status_code == 204
