"""Every page: that it is there, what it says, and which headers it bears."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from dashboard.start.forms import MODELS, PACES
from pipeline.models import Run, Workspace
from pipeline.steps.reasons import REASONS, RULES
from samples import SAMPLES
from tests.dashboard.visitor import PAGES, Visitor, by_code, numbers, words

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
    for path in PUBLIC:
        response = visitor.get(path)
        page = response.content.decode()
        assert (response.status_code, page.count("<h1")) == (200, 1), path
        assert 'href="#main"' in page
        assert "nanovm_workspace" not in response.cookies
    assert not Workspace.objects.exists()


@pytest.mark.parametrize("path", ["/nothing/", "/runs/ZZZZ-00/", "/docs/rules/NO-001/", "/runs/x/"])
def test_an_unknown_address_is_a_404_with_a_way_on(visitor: Visitor, path: str) -> None:
    page = visitor.read(path, 404)
    assert "<h1>" in page
    assert 'href="/runs/"' in page


def test_every_page_of_a_run_answers_with_the_headers(visitor: Visitor) -> None:
    run = visitor.make()
    for path in PAGES:
        response = visitor.get(path.format(code=run.code))
        assert response.status_code == 200, path
        assert response["Cache-Control"] == "no-store"
        assert "HX-Request" in response["Vary"]
        assert response["Content-Security-Policy"] == POLICY
        assert {name: response[name] for name in HEADERS} == HEADERS


def test_a_head_request_is_answered_like_a_get(visitor: Visitor) -> None:
    run = visitor.make()
    visitor.erase(run)
    certificates = [f"/privacy/certificates/{run.code}{end}" for end in ("/", ".json")]
    own = [path.format(code=run.code) for path in PAGES]
    for path in [*PUBLIC, *own, *certificates, "/docs/rules/CAP-001/"]:
        response = visitor.head(path)
        assert (response.status_code, response.content) == (200, b""), path


@pytest.mark.parametrize("path", ["/runs/", "/privacy/{code}/"])
def test_a_page_with_a_form_takes_no_other_method(visitor: Visitor, path: str) -> None:
    run = visitor.make(hold=True)
    assert visitor.put(path.format(code=run.code)).status_code == 405


def test_the_address_of_a_form_says_what_it_is_and_leads_back(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    own = ["audit/verify/", "start/", "attacks/tool_injection/", "again/"]
    back = {f"/runs/{run.code}/{end}": f"/runs/{run.code}/" for end in own}
    for path, before in {**back, "/attack/check/": "/attack/", "/runs/demo/": "/runs/"}.items():
        response = visitor.get(path)
        assert (response.status_code, response["Allow"]) == (405, "POST")
        page = response.content.decode()
        assert "takes what a form sends" in words(page)
        assert f'href="{before}"' in page
        assert visitor.get(before).status_code == 200
    assert visitor.head("/attack/check/").content == b""
    assert by_code(run.code).label == "READY"


def test_nothing_inline_is_in_a_page(visitor: Visitor) -> None:
    run = visitor.make()
    visitor.fire(run, "tool_injection")
    pages = [*PUBLIC, *(path.format(code=run.code) for path in PAGES if "bytes" not in path)]
    for path in pages:
        page = visitor.read(path)
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=", page), path


def test_the_start_page_offers_every_sample_model_and_pace(visitor: Visitor) -> None:
    page = visitor.read("/")
    for sample in SAMPLES:
        assert f'name="sample" value="{sample.name}"' in page
    for name in (*(model[0] for model in MODELS), *(pace[0] for pace in PACES)):
        assert f'value="{name}"' in page


def test_the_demo_button_leads_to_a_started_run(visitor: Visitor) -> None:
    response = visitor.post("/runs/demo/", {"Idempotency-Key": "a" * 32})
    assert response.status_code == 303
    assert re.fullmatch(r"/runs/[A-Z0-9]{4}-\d{2}/", response["Location"])
    assert Run.objects.get().state == "running.active"


def test_a_paid_run_shows_its_steps_payment_and_events(visitor: Visitor) -> None:
    run = visitor.make("plain")
    page = visitor.read(f"/runs/{run.code}/")
    assert run.label == "SUCCESS"
    assert "1,284.50 EUR" in page
    assert page.count('data-status="done"') >= 7
    assert numbers(page) == list(range(1, run.length + 1))
    assert "Stripe test counterpart on this machine" in words(page)
    assert "stands in for the payout" in words(page)


def test_every_event_has_a_page_with_its_whole_hash(visitor: Visitor) -> None:
    run = visitor.make()
    for number in range(1, run.length + 1):
        page = visitor.read(f"/runs/{run.code}/events/{number}/")
        assert "The stored bytes hash to the stored value." in page
        assert len(set(re.findall(r"\b[0-9a-f]{64}\b", page))) >= 2
    visitor.read(f"/runs/{run.code}/events/{run.length + 1}/", 404)
    visitor.read(f"/runs/{run.code}/events/0/", 404)


def test_every_step_has_a_page(visitor: Visitor) -> None:
    run = visitor.make()
    for number in range(1, 8):
        assert "data-seq" in visitor.read(f"/runs/{run.code}/steps/{number}/")
    visitor.read(f"/runs/{run.code}/steps/8/", 404)


def test_a_run_that_waits_or_failed_says_why(visitor: Visitor) -> None:
    held = words(visitor.read(f"/runs/{visitor.make('over_limit').code}/"))
    assert "SUSPENDED" in held
    assert "Waiting:" in held
    failed = words(visitor.read(f"/runs/{visitor.make('broken').code}/"))
    assert "FAILED" in failed
    assert "Why:" in failed
    assert "DOC-" in failed


def test_every_rule_has_a_page(visitor: Visitor) -> None:
    for code, rule in {**RULES, **REASONS}.items():
        assert rule.title in words(visitor.read(f"/docs/rules/{code}/"))


def test_a_rule_names_the_line_that_decides(visitor: Visitor) -> None:
    assert re.search(r"capabilities\.py:\d+ ungranted", visitor.read("/docs/rules/CAP-001/"))


def test_the_list_filters_by_state_code_and_attack(visitor: Visitor) -> None:
    paid, held = visitor.make("plain"), visitor.make("over_limit")
    visitor.fire(held, "tool_injection")
    assert held.code not in visitor.read("/runs/?state=success")
    assert paid.code not in visitor.read(f"/runs/?q={held.code}")
    assert paid.code not in visitor.read("/runs/?attack=tool_injection")
    empty = words(visitor.read("/runs/?state=ready"))
    assert "No run matches state “ready”" in empty
    assert "Clear all" in empty


def test_the_audit_list_pages_by_cursor(visitor: Visitor) -> None:
    for _ in range(4):
        visitor.make()
    first = visitor.read("/audit/")
    older = re.search(r'href="\?([^"]*cursor=\d+)"', first)
    assert older
    second = visitor.read("/audit/?" + older[1].replace("&amp;", "&"))
    seqs = [
        int(n) for page in (first, second) for n in re.findall(r'data-label="Seq">(\d+)<', page)
    ]
    assert seqs == list(range(seqs[0], -1, -1))


def test_a_form_without_its_token_is_refused_with_a_page(visitor: Visitor) -> None:
    strict = Client(enforce_csrf_checks=True)
    token = strict.get("/runs/new/").cookies["csrftoken"]
    assert (token["httponly"], token["samesite"]) == (True, "Lax")
    response = strict.post("/runs/demo/")
    assert response.status_code == 403
    assert b"out of date" in response.content
    assert not Run.objects.exists()


def test_too_large_an_upload_is_refused_before_it_is_read(visitor: Visitor) -> None:
    response = visitor.post("/runs/", {"sample": "plain"}, CONTENT_LENGTH=str(12 * 1024 * 1024))
    assert response.status_code == 413
    assert b"up to 10 MB" in response.content


def test_the_theme_is_remembered_and_leads_nowhere_else(visitor: Visitor) -> None:
    response = visitor.post("/theme/", {"theme": "dark", "next": "https://evil.example/"})
    assert (response.status_code, response["Location"]) == (303, "/")
    assert 'data-theme="dark"' in visitor.read("/")
    visitor.post("/theme/", {"theme": '"><script>', "next": "/runs/"})
    assert "data-theme" not in visitor.read("/")
    visitor.cookies["theme"] = "forged"
    assert "data-theme" not in visitor.read("/")


def test_a_policy_at_fault_is_said_on_the_page_and_begins_nothing(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "policy.toml"
    broken.write_text('v = "nanovm-policy/1"\nname = "x"\ncolour = 1\n')
    monkeypatch.setattr(settings, "NANOVM_POLICY", broken)
    assert "colour" in visitor.read("/policy/", 503)
    assert "line 3" in visitor.read("/policy/", 503)
