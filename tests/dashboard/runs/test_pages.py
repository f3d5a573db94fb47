"""Every page: that it is there, what it says, and which headers it bears."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from engine.models import Run, Workspace
from engine.queries.runs import RunHead
from pipeline.steps.reasons import REASONS, RULES
from tests.dashboard.visitor import PAGES, Visitor, by_code, numbers, words

pytestmark = pytest.mark.usefixtures("db")

PUBLIC = ("/", "/runs/", "/runs/new/", "/audit/", "/policy/", "/docs/", "/docs/threat-model/")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self' ws://testserver; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def test_a_page_answers_a_visitor_without_a_workspace_and_makes_none(visitor: Visitor) -> None:
    before = Workspace.objects.count()
    for path in PUBLIC:
        response = visitor.get(path)
        page = response.content.decode()
        assert (response.status_code, page.count("<h1")) == (200, 1), path
        assert 'href="#main"' in page
        assert "nanovm_workspace" not in response.cookies
    assert Workspace.objects.count() == before


@pytest.mark.parametrize("path", ["/nothing/", "/runs/ZZZZ-00/", "/docs/rules/NO-001/", "/runs/x/"])
def test_an_unknown_address_is_a_404_with_a_way_on(owner: Visitor, path: str) -> None:
    page = owner.read(path, 404)
    assert "<h1>" in page
    assert 'href="/runs/"' in page


def test_every_page_of_a_run_answers_with_the_headers(owner: Visitor, paid: RunHead) -> None:
    for path in PAGES:
        response = owner.get(path.format(code=paid.code))
        assert response.status_code == 200, path
        assert response["Cache-Control"] == "no-store"
        assert "HX-Request" in response["Vary"]
        assert response["Content-Security-Policy"] == POLICY
        assert {name: response[name] for name in HEADERS} == HEADERS


def test_a_head_request_is_answered_like_a_get(owner: Visitor) -> None:
    run = owner.make(hold=True)
    owner.erase(run)
    certificates = [f"/privacy/certificates/{run.code}{end}" for end in ("/", ".json")]
    own = [path.format(code=run.code) for path in PAGES]
    for path in [*PUBLIC, *own, *certificates, "/docs/rules/CAP-001/"]:
        response = owner.head(path)
        assert (response.status_code, response.content) == (200, b""), path


def test_a_forms_address_says_what_it_is_and_leads_back(owner: Visitor, ready: RunHead) -> None:
    own = ["start/", "attacks/tool_injection/", "again/"]
    back = {f"/runs/{ready.code}/{end}": f"/runs/{ready.code}/" for end in own}
    for path, before in {**back, "/attack/check/": "/attack/", "/runs/plain/": "/runs/"}.items():
        response = owner.get(path)
        assert (response.status_code, response["Allow"]) == (405, "POST")
        page = response.content.decode()
        assert "This page needs the form. Go back and press the button again." in words(page)
        assert f'href="{before}"' in page
        assert owner.get(before).status_code == 200
    assert owner.head("/attack/check/").content == b""
    for path in ("/runs/", f"/privacy/{ready.code}/"):
        assert owner.put(path).status_code == 405
    assert by_code(ready.code).label == "READY"


def test_nothing_inline_is_in_a_page(owner: Visitor, paid: RunHead) -> None:
    owner.fire(paid, "tool_injection")
    pages = [*PUBLIC, *(path.format(code=paid.code) for path in PAGES if "bytes" not in path)]
    for path in pages:
        page = owner.read(path)
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=", page), path


def test_a_paid_run_shows_its_steps_payment_and_events(owner: Visitor, paid: RunHead) -> None:
    page = owner.read(f"/runs/{paid.code}/")
    assert paid.label == "SUCCESS"
    assert "EUR 1,284.50" in page
    assert page.count('data-status="done"') >= 7
    assert numbers(page) == list(range(1, paid.length + 1))
    assert "ocal Stripe test server" in words(page)
    assert "stands for the payout" in words(page)


def test_every_event_and_every_step_has_a_page(owner: Visitor, paid: RunHead) -> None:
    for number in range(1, paid.length + 1):
        page = owner.read(f"/runs/{paid.code}/events/{number}/")
        assert "The stored bytes match the stored hash." in page
        assert len(set(re.findall(r"\b[0-9a-f]{64}\b", page))) >= 2
    owner.read(f"/runs/{paid.code}/events/{paid.length + 1}/", 404)
    owner.read(f"/runs/{paid.code}/events/0/", 404)
    for number in range(1, 8):
        assert "data-seq" in owner.read(f"/runs/{paid.code}/steps/{number}/")
    owner.read(f"/runs/{paid.code}/steps/8/", 404)


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.soak)])
def test_every_rule_has_a_page(owner: Visitor, every: int) -> None:
    for code, rule in [*RULES.items(), *REASONS.items()][::every]:
        assert rule.title in words(owner.read(f"/docs/rules/{code}/"))
    assert re.search(r"capabilities\.py:\d+ ungranted", owner.read("/docs/rules/CAP-001/"))


def test_the_policy_page_states_a_limit_in_each_currency_s_own_decimals(owner: Visitor) -> None:
    page = words(owner.read("/policy/"))
    assert "EUR 1,000,000.00, JPY 100,000,000, KWD 100,000.000, and so on" in page


def test_the_list_filters_by_state_code_and_attack(
    owner: Visitor, paid: RunHead, held: RunHead
) -> None:
    owner.fire(held, "tool_injection")
    assert held.code not in owner.read("/runs/?state=success")
    assert paid.code not in owner.read(f"/runs/?q={held.code}")
    assert paid.code not in owner.read("/runs/?attack=tool_injection")
    empty = words(owner.read("/runs/?state=running"))
    assert "No run matches state “running”" in empty
    assert "Clear all" in empty


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (
            "/runs/?state=done",
            "“done” is not a value of the filter “State”. Choose one of: ready, ",
        ),
        ("/runs/?page=x", "“x” is not a page of this list."),
        ("/runs/?supplier=x", "You have no such supplier."),
        (
            "/audit/?kind=paid",
            "“paid” is not a value of the filter “event”. Choose one of: genesis",
        ),
        ("/audit/?cursor=x", "“x” is not a page of this list."),
        ("/audit/?rule=CAP", "“CAP” is not a rule code."),
        ("/suppliers/?page=x", "“x” is not a page of this list."),
    ],
)
def test_an_unknown_filter_is_named_and_shows_no_rows(
    owner: Visitor, paid: RunHead, path: str, says: str
) -> None:
    page = owner.read(path)
    assert says in words(page)
    assert f'href="/runs/{paid.code}/' not in page


def test_a_form_without_its_token_is_refused_with_a_page(visitor: Visitor) -> None:
    strict, before = Client(enforce_csrf_checks=True), Run.objects.count()
    token = strict.get("/runs/new/").cookies["csrftoken"]
    assert (token["httponly"], token["samesite"]) == (True, "Lax")
    response = strict.post("/runs/plain/")
    assert response.status_code == 403
    assert b"out of date" in response.content
    assert Run.objects.count() == before


def test_too_large_an_upload_is_refused_before_it_is_read(owner: Visitor) -> None:
    response = owner.post("/runs/", {"sample": "plain"}, CONTENT_LENGTH=str(12 * 1024 * 1024))
    assert response.status_code == 413
    assert b"up to 10 MB" in response.content


def test_the_theme_is_remembered_and_leads_nowhere_else(owner: Visitor) -> None:
    response = owner.post("/theme/", {"theme": "dark", "next": "https://evil.example/"})
    assert (response.status_code, response["Location"]) == (303, "/")
    assert 'data-theme="dark"' in owner.read("/")
    owner.post("/theme/", {"theme": '"><script>', "next": "/runs/"})
    assert "data-theme" not in owner.read("/")
    owner.cookies["theme"] = "forged"
    assert "data-theme" not in owner.read("/")


def test_a_policy_at_fault_is_said_on_the_page_and_begins_nothing(
    owner: Visitor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "policy.toml"
    broken.write_text('v = "nanovm-policy/1"\nname = "x"\ncolour = 1\n')
    monkeypatch.setattr(settings, "NANOVM_POLICY", broken)
    assert "colour" in owner.read("/policy/", 503)
    assert "line 3" in owner.read("/policy/", 503)
