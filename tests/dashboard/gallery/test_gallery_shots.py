"""The page of a shot of the gallery: all that is known of it, for whoever fired it alone."""

import re
from typing import Any

import pytest
from celery import current_app
from django.conf import settings

from pipeline.models import Run, Workspace
from pipeline.store import workspaces
from sabotage.ablation import copies
from sabotage.gallery import SCENARIOS
from sabotage.models import Attack
from tests.dashboard.attacks.test_unguarded_page import OUTCOME, card
from tests.dashboard.visitor import PAGES, Visitor, words

GALLERY = "/attack/gallery/"
ALONE, SHARED = "drained_budget", "widened_grant"  # runs in a workspace of their own; a run of mine
TOGETHER: dict[str, Any] = {
    **OUTCOME,
    "evidence": {
        **OUTCOME["evidence"],
        "paid": [{"run": "AAAA-00", "amount_minor": 100_000, "currency": "USD"}] * 4,
    },
}


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The copies that were asked for, once a shot was fired."""
    found: list[str] = []
    monkeypatch.setattr(current_app, "send_task", lambda _name, args, **_: found.append(args[0]))
    return found


def shoot(visitor: Visitor, name: str = ALONE, **form: str) -> str:
    """Fire a piece of the gallery; the address of the page of the shot."""
    response = visitor.post(f"{GALLERY}{name}/", form)
    assert response.status_code == 303, response.content.decode()
    found = re.findall(rf'href="({GALLERY}{name}/[0-9a-f-]+/)"', visitor.read(GALLERY))
    assert len(set(found)) == 1
    return str(found[0])


def shot_at(path: str) -> Attack:
    return Attack.objects.get(id=path.split("/")[-2])


def ask(visitor: Visitor, path: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Press the button, a queue being there."""
    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    return visitor.post(f"{path}unguarded/")


def test_it_says_all_of_an_attack_whose_runs_are_in_a_workspace_of_their_own(
    visitor: Visitor,
) -> None:
    path = shoot(visitor)
    shot = shot_at(path)
    page = visitor.read(path)
    said = words(page)
    assert 'data-verdict="BLOCKED"' in page
    assert 'href="/docs/rules/BUD-002/"' in page
    assert f"Decided in {shot.where}" in said
    assert "Unauthorized calls 0 by the adapters' own records" in said
    assert "stripe.create_payment_intent 2×" in said
    assert "Payments 2 (1,000.00 USD, 1,000.00 USD), by the own list" in said
    assert "Integrity HELD" in said
    assert "What an ordinary agent loop did with the same attack" in said
    assert "What was fired unit calls" in said
    for run in shot.evidence["runs_ended"]:
        assert f"{run['run']}" in said
        assert run["hash"] in page
    for name in shot.evidence:
        assert f"<dt>{name.replace('_', ' ')}</dt>" in page


def test_each_piece_that_is_alone_has_such_a_page(visitor: Visitor) -> None:
    path = shoot(visitor, "restored_snapshot", undo="an erasure")
    page = visitor.read(path)
    assert 'href="/docs/rules/LOG-006/"' in page
    assert "1,284.50 EUR for the run" in words(page)
    assert "Run this attack without the guard" in card(page)
    assert {name for name, each in SCENARIOS.items() if each.alone} == {
        "split_limit",
        "drained_budget",
        "restored_snapshot",
    }


def test_its_own_workspace_stays_closed(visitor: Visitor) -> None:
    path = shoot(visitor)
    runs = Run.objects.filter(workspace=shot_at(path).run.workspace)
    assert runs.count() == 4
    page = visitor.read(path)
    for run in runs:
        assert run.code in page
        assert f"/runs/{run.code}/" not in page + visitor.read(GALLERY) + visitor.read("/runs/")
        for each in PAGES:
            visitor.read(each.format(code=run.code), 404)
        for command in ("start", "resume", "kill"):
            assert visitor.post(f"/runs/{run.code}/{command}/").status_code == 404


def test_a_shot_at_a_run_of_mine_leads_there_and_has_one_page(visitor: Visitor) -> None:
    path = shoot(visitor, SHARED)
    shot = shot_at(path)
    page = visitor.read(path)
    assert f'href="/runs/{shot.run.code}/"' in page
    assert f'href="/runs/{shot.run.code}/calls/"' in page
    old = visitor.get(f"/runs/{shot.run.code}/attacks/{shot.id}/")
    assert (old.status_code, old["Location"]) == (302, path)
    assert "Run this attack without the guard" in card(page)


def test_it_is_nobody_elses(visitor: Visitor, queued: list[str]) -> None:
    path = shoot(visitor)
    other = Visitor()
    shoot(other, SHARED)
    for stranger in (other, Visitor()):
        stranger.read(path, 404)
        stranger.read(f"{path}report.md", 404)
        assert stranger.post(f"{path}unguarded/").status_code == 404
    assert Visitor(enforce_csrf_checks=True).post(f"{path}unguarded/").status_code == 403
    assert visitor.get(f"{path}unguarded/").status_code == 405
    assert (queued, shot_at(path).unguarded) == ([], {})


def test_it_is_at_its_own_address_alone(visitor: Visitor) -> None:
    path = shoot(visitor, SHARED)
    visitor.read(path.replace(SHARED, ALONE), 404)
    run = visitor.make(hold=True)
    visitor.fire(run, "skip_step")
    fired = Attack.objects.get(injector="skip_step")
    visitor.read(f"{GALLERY}skip_step/{fired.id}/", 404)


def test_after_a_restore_it_is_still_its_visitors(visitor: Visitor) -> None:
    path = shoot(visitor)
    owner = shot_at(path).workspace_id
    Workspace.objects.filter(id=owner).update(successor=workspaces.create())
    visitor.read(path)
    visitor.make(hold=True)  # and from here on the cookie names the log that goes on
    visitor.read(path)
    assert "Fired 1×" in visitor.read(GALLERY)
    other = Visitor()
    other.make(hold=True)
    other.read(path, 404)


def test_the_button_asks_for_a_copy_and_the_page_looks_again(
    visitor: Visitor, queued: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shoot(visitor)
    assert "Refresh" not in visitor.get(path).headers
    assert f'<form method="post" action="{path}unguarded/">' in card(visitor.read(path))
    response = ask(visitor, path, monkeypatch)
    assert (response.status_code, response["Location"]) == (303, f"{path}#unguarded")
    assert queued == [path.split("/")[-2]]
    shown = visitor.get(path)
    assert re.search(rf"url={path}\?at=\d+#unguarded$", shown["Refresh"])
    assert "<form" not in card(shown.content.decode())
    assert 'aria-busy="true"' in visitor.read(GALLERY)


def test_breached_stands_beside_held_with_what_all_its_runs_were_paid(visitor: Visitor) -> None:
    path = shoot(visitor)
    kept = {"state": copies.DONE, "at_ms": 1, "outcome": TOGETHER}
    Attack.objects.filter(id=shot_at(path).id).update(unguarded=kept)
    shown = card(visitor.read(path))
    assert "Here: <strong>HELD</strong>" in shown
    assert "2 (1,000.00 USD, 1,000.00 USD)" in shown
    assert "Without the guard: <strong>BREACHED</strong>" in shown
    assert "4 × 1,000.00 USD" in shown
    assert "1,284.50" not in shown
    assert "The copy's run ended" not in shown
    listed = visitor.read(GALLERY)
    assert "The same attack without the guard: <strong>BREACHED</strong>" in listed
    assert f'href="{path}#unguarded"' in listed


def test_why_no_copy_is_made_is_said_on_its_page(visitor: Visitor) -> None:
    path = shoot(visitor)
    response = visitor.post(f"{path}unguarded/")
    assert response.status_code == 422
    page = response.content.decode()
    assert "No copy was made. No queue server is configured" in words(page)
    assert f'<form method="post" action="{path}unguarded/">' in card(page)


def test_a_form_that_no_guard_carries_says_why(visitor: Visitor) -> None:
    path = shoot(visitor, "resurrected_pii", how="have the model say it again")
    page = visitor.read(path)
    assert "There is no guard to take out." in card(page)
    assert visitor.post(f"{path}unguarded/").status_code == 422


def test_a_breach_is_told_as_one(visitor: Visitor) -> None:
    path = shoot(visitor, SHARED)
    shot = shot_at(path)
    shot.integrity, shot.verdict, shot.rule = "BREACHED", "ACCEPTED", ""
    shot.evidence["seen_by_the_attack"] = ["It <got> out."]
    shot.save()
    page = visitor.read(path)
    assert re.search(r'class="banner-breach" role="alert">BREACHED. It &lt;got&gt; out', page)
    assert "It got through." in words(page)
    assert f'href="{path}report.md"' in page
    report = visitor.read(f"{path}report.md")
    assert report.startswith("# BREACHED: widened_grant")
    assert "- It <got> out." in report


def test_what_was_held_is_not_reported(visitor: Visitor) -> None:
    path = shoot(visitor, SHARED)
    assert "report.md" not in visitor.read(path)
    visitor.read(f"{path}report.md", 404)


def test_it_can_be_taken_along(visitor: Visitor) -> None:
    path = shoot(visitor, ALONE, unit="money")
    page = visitor.read(path)
    assert f'<code id="its-link">http://testserver{path}</code>' in page
    said = words(page)
    assert "--data-urlencode unit=money" in said
    assert f"http://testserver{GALLERY}{ALONE}/" in said
