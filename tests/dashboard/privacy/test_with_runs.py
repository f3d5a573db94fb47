"""A supplier and its runs on the pages: found, exported, erased after ten seconds, and gone."""

import json
import re
from typing import Any

import pytest

from dashboard.web import grace
from dashboard.web.workspace import COOKIE
from engine.evidence import signer
from engine.models import Run, Workspace
from engine.privacy import crypto_shred
from engine.queries.runs import RunHead
from pipeline.models import Supplier
from pipeline.register import erasure
from tests.dashboard.sharing.test_links import made, row_of, used
from tests.dashboard.visitor import PAGES, Visitor, words
from tests.kit.clock import Leap, stopped

pytestmark = pytest.mark.usefixtures("db")

NAME, ACCOUNT = "Nordlicht Papier GmbH", "DE89370400440532013000"
PERSONAL = ("Nordlicht", "Musterweg", "billing@nordlicht", ACCOUNT, "NP-2026-")
RIGHT_TO_LEFT = "\u202eGmbH reipaP thcildroN"


@pytest.fixture
def leap(monkeypatch: pytest.MonkeyPatch) -> Leap:
    return stopped(monkeypatch)


def supplier_of(run: RunHead) -> Supplier:
    return Supplier.objects.get(id=str(run.slots["supplier"]))


def at(row: Supplier) -> str:
    return f"/privacy/suppliers/{row.id}/"


def confirmed(visitor: Visitor, row: Supplier, **form: str) -> Any:
    given = {"reason": "art17-1-b", "confirm": f"ERASE {row.code}", **form}
    return visitor.post(at(row), given)


def ticket(response: Any) -> str:
    found = re.search(r'name="ticket" value="([^"]+)"', response.content.decode())
    assert found is not None
    return found[1]


def test_a_supplier_is_found_by_whole_name_account_tax_id_and_code(
    owner: Visitor, paid: RunHead
) -> None:
    row = supplier_of(paid)
    for text in (NAME, "nordlicht  papier, GMBH", "de89 3704 0044 0532 0130 00", row.code.lower()):
        page = words(owner.refused("/privacy/", {"q": text}, 200))
        assert "Erase this supplier and its 1 run…" in page, text
        assert page.count("Erase this supplier") == 1
    for text, says in (
        ("Nordlicht", "No supplier has this name"),
        ("' OR 1=1", "No supplier has this name"),
        (RIGHT_TO_LEFT, "No supplier has this name"),
        ("", "Type a whole name"),
        ("x" * 10_000, "at most 200 characters"),
    ):
        assert says in words(owner.refused("/privacy/", {"q": text}, 200))
    assert "No suppliers yet" in Visitor().read("/privacy/")
    assert "is not a page" in words(owner.read("/privacy/?page=x"))


def test_nothing_begins_before_ten_seconds_or_after_five_minutes(
    owner: Visitor, paid: RunHead, leap: Leap
) -> None:
    row = supplier_of(paid)
    for form, says in (
        ({"confirm": "ERASE"}, f"Type ERASE {row.code} exactly"),
        ({"reason": ""}, "Choose a ground"),
        ({"ticket": "forged"}, "more than five minutes old"),
        (
            {"ticket": grace.issued(f"{row.workspace_id} {row.id} link-x", "art17-1-a")},
            "five minutes",
        ),
    ):
        response = confirmed(owner, row, **form)
        assert response.status_code == 422
        assert says in words(response.content.decode())
    given = ticket(confirmed(owner, row))
    leap(9_900)
    early = owner.refused(at(row), {"ticket": given}, 200)
    assert "The erasure starts in 1 s" in words(early)
    assert not Run.objects.get(id=paid.id).erased_ms
    leap(5 * 60_000)
    late = words(owner.refused(at(row), {"ticket": given}))
    assert "Nothing was erased. The confirmation is more than five minutes old" in late
    assert erasure.newest_with_runs(row) is None
    owner.read(f"{at(row)}certificate/", 404)


def test_all_that_is_held_is_shown_and_exported(owner: Visitor, paid: RunHead) -> None:
    there = f"{at(supplier_of(paid))}held"
    page, export = owner.read(f"{there}/"), json.loads(b"".join(owner.get(f"{there}.json")))
    assert [each for each in PERSONAL if each not in page] == []
    [said] = export["runs"]
    values = {each["label"]: each for each in said["values"]}
    assert (values["IBAN"]["value"], export["supplier"]["details"]["iban"]) == (ACCOUNT, ACCOUNT)
    assert values["Uploaded document"]["value_base64"].startswith("JVBERi")
    assert export["events"][0]["event"] == "registered"
    assert [each.split(":")[0] for each in said["recipients"]] == ["Stripe", "the supplier"]


def erased(visitor: Visitor, row: Supplier, leap: Leap) -> None:
    """Confirm an erasure, and let its ten seconds pass."""
    given = ticket(confirmed(visitor, row))
    leap(grace.WAIT_MS)
    done = visitor.post(at(row), {"ticket": given})
    assert done["Location"] == f"{at(row)}certificate/"


def test_a_supplier_and_its_runs_are_gone_from_every_page_and_the_certificate_proves_it(
    visitor: Visitor, leap: Leap
) -> None:
    run = visitor.make()
    row = supplier_of(run)
    assert run.code in visitor.read(at(row))
    erased(visitor, row, leap)
    paths = [path.format(code=run.code) for path in PAGES]
    paths += ["/", "/runs/", "/audit/", "/suppliers/", "/privacy/", f"/suppliers/{row.id}/"]
    paths += [at(row), f"{at(row)}held/", f"{at(row)}certificate/", f"{at(row)}certificate.json"]
    pages = {path: visitor.read(path) for path in paths}
    pages["export"] = b"".join(visitor.get(f"{at(row)}held.json")).decode()
    pages["search"] = visitor.refused("/privacy/", {"q": ACCOUNT[:-1]}, 200)
    assert [(path, each) for path in pages for each in PERSONAL if each in pages[path]] == []
    assert "kept_after_erasure" in json.loads(pages["export"])
    proof = words(pages[f"{at(row)}certificate/"])
    for part in (
        "Art. 17(1)(b) GDPR: consent withdrawn",
        "Ordered by the visitor whose workspace this is",
        f"{run.code} ",
        "supplier's entry in the register 1 destroyed",
        "Accounting law keeps records of payments (Art. 17(3)(b) GDPR)",
        "not signed yet",
    ):
        assert part in proof, part
    receipt = re.search(r'href="(/audit/[^"]+receipt.json[^"]+)"', pages[f"{at(row)}certificate/"])
    assert receipt is not None
    visitor.read(receipt[1], 503)
    signer.checkpoint(Supplier.objects.get(id=row.id).workspace_id)
    certificate = json.loads(pages[f"{at(row)}certificate.json"])
    proved = json.loads(visitor.read(receipt[1]))
    assert (proved["canonical_hash"], proved["n"]) == (certificate["hash"], certificate["n"])
    assert "signed" in words(visitor.read(f"{at(row)}certificate/"))
    assert f"Supplier {row.code} and 1 run" in words(visitor.read("/privacy/"))
    erased(visitor, row, leap)  # again
    assert json.loads(visitor.read(f"{at(row)}certificate.json")) == certificate


def test_what_is_left_is_counted_and_has_no_certificate(
    visitor: Visitor, leap: Leap, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = supplier_of(visitor.make())
    given = ticket(confirmed(visitor, row))
    leap(grace.WAIT_MS)
    with monkeypatch.context() as broken:
        broken.setattr(crypto_shred, "wal_truncated", lambda: False)
        page = words(visitor.refused(at(row), {"ticket": given}, 500))
    assert "INCOMPLETE: 5 of 6 places. Left: write-ahead log: run" in page
    visitor.read(f"{at(row)}certificate/", 404)
    assert "INCOMPLETE" in words(visitor.read(at(row)))
    assert visitor.post(at(row), {"ticket": given})["Location"] == f"{at(row)}certificate/"


def sound(holder: Visitor, path: str) -> str:
    """A page of a link's holder, none of whose addresses is its owner's alone."""
    page = holder.read(path)
    main = page[page.index("</header>") : page.index("</main>")]
    for href in {*re.findall(r'href="(/(?!static/)[^"#?]*)', main)}:
        assert holder.get(href).status_code == 200, f"{path}: {href}"
    return words(page)


def test_an_erase_link_erases_its_supplier_and_its_runs_as_its_owner_would(
    visitor: Visitor, leap: Leap
) -> None:
    run = visitor.make()
    row, other = supplier_of(run), Visitor().make()
    path = made(visitor, "erase", row.code)
    link, holder, workspaces = row_of(path), used(path), Workspace.objects.count()
    there = f"/l/{link.id}/erase/"
    page = sound(holder, there)
    assert [each for each in (NAME, run.code, "be erased") if each not in page] == []
    holder.refused(there, {"reason": "art17-1-a", "confirm": "ERASE nothing"})
    form = {"reason": "art17-1-a", "confirm": f"ERASE {row.code}", "Idempotency-Key": "k" * 32}
    assert Visitor().post(there, form).status_code == 404
    sent = {"ticket": ticket(holder.post(there, form)), "Idempotency-Key": "l" * 32}
    assert "The erasure starts in 10 s" in words(holder.refused(there, sent, 200))
    assert Run.objects.get(id=run.id).erased_ms is None
    holder.read(f"{there}certificate/", 404)
    leap(grace.WAIT_MS)
    for _ in range(2):
        assert holder.post(there, sent)["Location"] == f"{there}certificate/"
    proof = sound(holder, f"{there}certificate/")
    assert f"Ordered by the holder of the link {link.id}" in proof
    assert f"{run.code} " in proof
    assert not [each for each in PERSONAL if each in sound(holder, there)]
    mine, theirs = f"{at(row)}certificate.json", f"{there}certificate.json"
    assert holder.get(theirs).json() == visitor.get(mine).json()
    assert Run.objects.get(id=run.id).erased_ms
    assert Run.objects.get(id=other.id).erased_ms is None
    assert holder.post(there, {**form, "Idempotency-Key": ""}).status_code == 200
    assert (Workspace.objects.count(), holder.cookies.get(COOKIE)) == (workspaces, None)
    visitor.post(f"/links/{link.id}/revoke/")
    assert {holder.get(each).status_code for each in (there, theirs)} == {410}
