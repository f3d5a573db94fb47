"""Erasing from the page: the confirmation, the certificate, and that nothing is left to see."""

import json
import re

import pytest

from pipeline.models import Run, Secret
from pipeline.runtime import api
from pipeline.vault import secret_store
from tests.dashboard.visitor import PAGES, TRANSFER, Visitor, by_code, words

PERSONAL = (
    "Nordlicht", "Musterweg", "billing@nordlicht", "DE89370400440532013000", "NP-2026-0417",
    "Harbour Analytics", "Quayside", "plain.pdf",
)  # fmt: skip
CANARY = "ZYX-canary-441"
TOMBSTONE = "[REDACTED_TOMBSTONE]"


def test_the_inventory_lists_every_secret_of_a_run(visitor: Visitor) -> None:
    run = visitor.make()
    page = visitor.read(f"/privacy/{run.code}/")
    assert page.count("vault://secret/") >= 10
    for value in PERSONAL:
        assert value in page, value


def test_nothing_personal_is_on_any_page_after_erasure(visitor: Visitor) -> None:
    run = visitor.make("over_limit")
    attack = visitor.fire(run, "tool_injection", proposal=TRANSFER.replace("USD", CANARY))
    assert CANARY in visitor.read(attack)
    assert visitor.erase(run)["Location"] == f"/privacy/certificates/{run.code}/"
    number = by_code(run.code).length
    paths = [path.format(code=run.code) for path in PAGES]
    paths += [f"/runs/{run.code}/events/{n}/" for n in range(1, number + 1)]
    paths += [f"/runs/{run.code}/steps/{n}/" for n in range(1, 8)]
    paths += [f"/privacy/certificates/{run.code}/", f"/privacy/certificates/{run.code}.json"]
    for path in [*paths, attack, "/", "/runs/", "/audit/"]:
        page = visitor.read(path)
        assert not [value for value in (*PERSONAL, CANARY) if value in page], path
    assert visitor.read(f"/runs/{run.code}/").count(TOMBSTONE) >= 8
    assert TOMBSTONE in visitor.read(attack)


def test_erasure_changes_no_envelope(visitor: Visitor) -> None:
    run = visitor.make()
    before = [visitor.get(f"/runs/{run.code}/events/{n}/bytes/").content for n in range(1, 15)]
    visitor.erase(run)
    after = [visitor.get(f"/runs/{run.code}/events/{n}/bytes/").content for n in range(1, 15)]
    assert before == after
    assert api.check(run.id) is None


def test_the_certificate_clears_the_page_copies_of_the_browser(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    visitor.erase(run)
    response = visitor.get(f"/privacy/certificates/{run.code}/")
    assert response["Clear-Site-Data"] == '"cache"'


def test_the_certificate_names_the_head_and_holds_nothing_personal(visitor: Visitor) -> None:
    run = visitor.make()
    visitor.erase(run)
    text = visitor.read(f"/privacy/certificates/{run.code}.json")
    made = json.loads(text)
    assert (made["code"], made["state"], made["reason"]) == (run.code, "done", "art17-1-a")
    assert made["head_before"] == run.head
    assert made["head_after"] == by_code(run.code).head
    assert not [value for value in PERSONAL if value in text]


def test_erasing_twice_shows_the_same_certificate(visitor: Visitor) -> None:
    run = visitor.make()
    visitor.erase(run)
    first = visitor.read(f"/privacy/certificates/{run.code}.json")
    visitor.erase(run)
    assert visitor.read(f"/privacy/certificates/{run.code}.json") == first


def test_what_came_after_an_erasure_can_be_erased_too(visitor: Visitor) -> None:
    run = visitor.make()
    visitor.erase(run)
    assert "Nothing is left to erase" in visitor.read(f"/privacy/{run.code}/")
    origin = Run.objects.get(code=run.code).workspace.origin
    sealed = secret_store.seal_values(run.id, origin, {"proposal": b"a late word"})
    Secret.objects.bulk_create(secret_store.rows(Run.objects.get(code=run.code), sealed.values()))
    page = visitor.read(f"/privacy/{run.code}/")
    assert "a late word" in page
    assert "1 value can still be read" in words(page)
    assert f'action="/privacy/{run.code}/"' in page
    visitor.erase(run)
    page = visitor.read(f"/privacy/{run.code}/")
    assert "a late word" not in page
    assert "Nothing is left to erase" in page


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"confirm": "ERASE"}, "Type ERASE"),
        ({"confirm": "erase everything"}, "Type ERASE"),
        ({"reason": ""}, "Choose the ground"),
        ({"reason": "art99"}, "Choose the ground"),
    ],
)
def test_a_wrong_confirmation_erases_nothing(
    visitor: Visitor, form: dict[str, str], says: str
) -> None:
    run = visitor.make()
    response = visitor.erase(run, **form)
    assert response.status_code == 422
    assert says in words(response.content.decode())
    assert by_code(run.code) == run
    visitor.read(f"/privacy/certificates/{run.code}/", 404)


def test_a_paused_run_is_stopped_and_erased(visitor: Visitor) -> None:
    run = visitor.make(pace="step")
    assert "Stop and erase" in visitor.read(f"/privacy/{run.code}/")
    visitor.erase(run)
    ended = by_code(run.code)
    assert ended.label == "FAILED"
    assert ended.erased_ms is not None


def test_a_running_run_is_not_erased_and_says_why(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    api.start(run.id, "visitor")  # and no worker comes
    page = visitor.read(f"/privacy/{run.code}/")
    assert "Wait until it ends, or stop it first" in words(page)
    assert '<form method="post" action="/privacy' not in page
    response = visitor.erase(run)
    assert response.status_code == 409
    assert "FSM-010" in words(response.content.decode())
    assert Run.objects.get(code=run.code).erased_ms is None


def test_a_store_that_will_not_go_makes_no_certificate(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = visitor.make()
    with monkeypatch.context() as broken:
        broken.setattr("pathlib.Path.unlink", _refuse)
        response = visitor.erase(run)
    assert response.status_code == 500
    assert "INCOMPLETE" in words(response.content.decode())
    visitor.read(f"/privacy/certificates/{run.code}/", 404)
    for path in (f"/privacy/{run.code}/", f"/tour/8/?run={run.code}"):
        page = visitor.read(path)
        assert "INCOMPLETE" in words(page)
        assert "Nothing is left to erase" not in words(page)
        assert 'name="confirm"' in page
    visitor.erase(run)
    assert "Nothing is left to erase" in words(visitor.read(f"/privacy/{run.code}/"))
    assert re.search("Erasure certificate", visitor.read(f"/privacy/certificates/{run.code}/"))


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")
