"""Erasing from the page: the confirmation, the certificate, and that nothing is left to see."""

import json

import pytest

from engine.models import Run
from engine.privacy import erasure
from engine.queries.runs import RunHead
from engine.runtime import api
from engine.vault import secret_store
from tests.dashboard.visitor import PAGES, TRANSFER, Visitor, by_code, words

pytestmark = pytest.mark.usefixtures("db")

PERSONAL = (
    "Nordlicht", "Musterweg", "billing@nordlicht", "DE89370400440532013000", "NP-2026-",
    "Harbour Analytics", "Quayside", "plain.pdf",
)  # fmt: skip
CANARY = "ZYX-canary-441"
TOMBSTONE = "[REDACTED_TOMBSTONE]"
GONE = "There is nothing left to erase"


def inventory(owner: Visitor, run: RunHead) -> str:
    return owner.read(f"/privacy/{run.code}/")


def test_the_inventory_lists_every_secret_of_a_run(owner: Visitor, paid: RunHead) -> None:
    page = inventory(owner, paid)
    assert page.count("vault://secret/") >= 10
    assert [value for value in PERSONAL if value not in page] == []


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


def test_the_certificate_names_the_head_and_clears_the_page_copies_of_the_browser(
    owner: Visitor,
) -> None:
    run = owner.make()
    owner.erase(run)
    page = owner.get(f"/privacy/certificates/{run.code}/")
    assert page["Clear-Site-Data"] == '"cache"'
    text = owner.read(f"/privacy/certificates/{run.code}.json")
    made = json.loads(text)
    assert (made["code"], made["state"], made["reason"]) == (run.code, "done", "art17-1-a")
    assert (made["head_before"], made["head_after"]) == (run.head, by_code(run.code).head)
    owner.erase(run)
    assert owner.read(f"/privacy/certificates/{run.code}.json") == text


def test_what_came_after_an_erasure_can_be_erased_too(owner: Visitor) -> None:
    run = owner.make(hold=True)
    owner.erase(run)
    assert GONE in inventory(owner, run)
    row = Run.objects.get(code=run.code)
    sealed = secret_store.seal_values(run.id, row.workspace.origin, {"proposal": b"a late word"})
    secret_store.keep(row, sealed.values())
    page = inventory(owner, run)
    assert "a late word" in page
    assert "1 value can still be read" in words(page)
    assert f'action="/privacy/{run.code}/"' in page
    owner.erase(run)
    page = inventory(owner, run)
    assert ("a late word" in page, GONE in page) == (False, True)


def test_a_wrong_confirmation_erases_nothing(owner: Visitor, paid: RunHead) -> None:
    for form, says in (
        ({"confirm": "ERASE"}, "Type ERASE"),
        ({"confirm": "erase everything"}, "Type ERASE"),
        ({"reason": ""}, "Choose a ground"),
        ({"reason": "art99"}, "Choose a ground"),
    ):
        response = owner.erase(paid, **form)
        assert response.status_code == 422
        assert says in words(response.content.decode())
    assert by_code(paid.code) == paid
    owner.read(f"/privacy/certificates/{paid.code}/", 404)


def test_a_paused_run_is_stopped_and_erased(owner: Visitor) -> None:
    run = owner.make(pace="step")
    assert "Stop and erase" in inventory(owner, run)
    owner.erase(run)
    ended = by_code(run.code)
    assert (ended.label, ended.erased_ms is not None) == ("FAILED", True)


def test_a_running_run_is_not_erased_and_says_why(owner: Visitor, ready: RunHead) -> None:
    api.start(ready.id, "visitor")  # and no worker comes
    page = inventory(owner, ready)
    assert "Wait until it ends, or stop it first" in words(page)
    assert '<form method="post" action="/privacy' not in page
    response = owner.erase(ready)
    assert response.status_code == 409
    assert "FSM-010" in words(response.content.decode())
    assert Run.objects.get(code=ready.code).erased_ms is None


def test_a_store_that_will_not_go_makes_no_certificate(
    owner: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    run = owner.make()
    with monkeypatch.context() as broken:
        broken.setattr("pathlib.Path.unlink", refuse)
        response = owner.erase(run)
    assert response.status_code == 500
    assert "INCOMPLETE" in words(response.content.decode())
    owner.read(f"/privacy/certificates/{run.code}/", 404)
    for path in (f"/privacy/{run.code}/", f"/tour/8/?run={run.code}"):
        page = owner.read(path)
        assert "INCOMPLETE" in words(page)
        assert GONE not in words(page)
        assert 'name="confirm"' in page
    owner.erase(run)
    assert GONE in words(inventory(owner, run))
    assert "Erasure certificate" in owner.read(f"/privacy/certificates/{run.code}/")


def test_inventory_and_certificate_name_the_same_of_stripe_mail_and_register(
    owner: Visitor, paid: RunHead
) -> None:
    before = words(owner.read(f"/privacy/{paid.code}/"))
    kept = [str(line) for line in erasure.remains(paid.id)]
    assert all(line in before for line in kept[1:])
    assert "Remittance advice (mail file)" in before
    assert f"kept: {kept[-1]}" in before
    owner.erase(paid)
    after = words(owner.read(f"/privacy/certificates/{paid.code}/"))
    assert all(line in after for line in kept[1:])
    assert "remittance advice in the mail folder" in after
    assert "Remittance advice (mail file)" not in owner.read(f"/privacy/{paid.code}/")
