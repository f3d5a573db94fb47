"""The supplier pages: listed, added, changed, blocked, imported, exported, erased."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from dashboard.web.workspace import COOKIE
from engine.models import Envelope, Workspace
from engine.runtime import chains
from pipeline.models import Supplier
from pipeline.queries import suppliers as listed
from pipeline.register import sample_register, suppliers
from pipeline.register.details import Details
from reader.known_text.unit import Unit
from tests.dashboard.visitor import Visitor, words
from tests.kit.house import entries

pytestmark = pytest.mark.usefixtures("db", "empty_register")


@pytest.fixture
def empty_register(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new workspace knows no suppliers here, so that a test counts its own."""
    monkeypatch.setattr(sample_register, "new_workspace", chains.create)


FORM = {
    "name": "Nordlicht Papier GmbH",
    "tax_id": "DE 811 907 980",
    "iban": "DE89 3704 0044 0532 0130 00",
    "email": "billing@nordlicht-papier.example",
}
PERSONAL = ("Nordlicht", "DE 811 907 980", "DE89 3704", "DE893704", "billing@nordlicht")
HEAD = "name,tax_id,iban,email\r\n"
WIND = "Hollandse Windtechniek B.V.,,NL91ABNA0417164300,\r\n"


def added(visitor: Visitor, **form: str) -> str:
    """Register a supplier by the form; the address of its page."""
    response = visitor.post("/suppliers/", {**FORM, **form})
    assert response.status_code == 303, words(response.content.decode())
    return str(response["Location"])


def sent(visitor: Visitor, text: str, **form: str) -> tuple[int, str]:
    """Preview a file and import what is shown; the status and what the page says."""
    file = SimpleUploadedFile("suppliers.csv", text.encode(), content_type="text/csv")
    response = visitor.post("/suppliers/preview/", {"file": file})
    if response.status_code == 200:
        rows = response.context["preview"]["rows"]
        response = visitor.post("/suppliers/import/", {"rows": rows, **form})
    return response.status_code, words(response.content.decode())


def row_of(path: str) -> Supplier:
    return Supplier.objects.get(id=path.split("/")[2])


def saved(visitor: Visitor, path: str, **form: str) -> tuple[int, str]:
    """Change a supplier's details as its page now shows it."""
    seen = {"seen": str(row_of(path).sealed_n)}
    response = visitor.post(path, {**FORM, **seen, **form})
    return response.status_code, words(response.content.decode())


def erased(visitor: Visitor, path: str, **form: str) -> tuple[int, str]:
    given = {"reason": "art17-1-a", "confirm": f"ERASE {row_of(path).code}", **form}
    response = visitor.post(f"{path}erase/", given)
    return response.status_code, words(response.content.decode())


def test_looking_makes_no_workspace_and_the_empty_page_says_what_to_do(visitor: Visitor) -> None:
    page = words(visitor.read("/suppliers/"))
    assert "No suppliers yet. The register decides who is paid" in page
    assert "add your first supplier" in page
    assert (COOKIE in visitor.cookies, Workspace.objects.exists()) == (False, False)
    assert visitor.read("/suppliers/export.csv") == HEAD
    assert sent(visitor, "name\r\n")[0] == 422
    assert visitor.post("/suppliers/", {"name": ""}).status_code == 422
    assert not Workspace.objects.exists()


def test_a_supplier_is_added_and_listed(visitor: Visitor) -> None:
    path = added(visitor)
    assert re.fullmatch(r"/suppliers/[0-9a-f-]{36}/", path)
    page = words(visitor.read("/suppliers/"))
    code = row_of(path).code
    for said in (*FORM.values(), "Active", code, "by visitor"):
        assert said in page
    assert 'aria-current="page">Suppliers' in visitor.read("/suppliers/")
    suppliers.register(
        Workspace.objects.get().id, [Details(name="Muster")], actor="runtime", is_sample=True
    )
    assert "Muster" in words(visitor.read("/suppliers/"))
    assert "sample" in words(visitor.read("/suppliers/"))


def test_the_own_company_is_changed_but_neither_blocked_nor_erased(visitor: Visitor) -> None:
    added(visitor)
    owner = Workspace.objects.get()
    company = Details(name="Harbour Ltd")
    (entry,) = suppliers.register(owner.id, [company], actor="runtime", state=suppliers.OWN)
    path = f"/suppliers/{entry.id}/"
    assert "addressed to Harbour Ltd" in words(visitor.read("/suppliers/"))
    shown = visitor.read(path)
    assert ('name="iban"' in shown, "/erase/" in shown, "/block/" in shown) == (False,) * 3
    for act in ("block", "unblock", "erase"):
        assert visitor.post(f"{path}{act}/", {}).status_code == 404
    assert saved(visitor, path, name="Seaside Ltd", tax_id="GB 1", iban="", email="")[0] == 303
    assert suppliers.own_company(owner) == Details(name="Seaside Ltd", tax_id="GB 1")
    assert row_of(path).state == suppliers.OWN
    (supplier,) = entries(owner)
    assert supplier.details.name == FORM["name"]


def test_a_form_that_is_sent_twice_registers_once(visitor: Visitor) -> None:
    key = {"Idempotency-Key": "k" * 32}
    assert added(visitor, **key) == added(visitor, **key)
    assert Supplier.objects.count() == 1
    path = added(visitor, **key)
    form = {**FORM, "email": "", "seen": str(row_of(path).sealed_n), "Idempotency-Key": "c" * 32}
    assert [visitor.post(path, form).status_code for _ in range(2)] == [303, 303]
    assert Envelope.objects.filter(kind="supplier").count() == 2


@pytest.mark.parametrize(
    ("form", "says", "code"),
    [
        ({"iban": "DE89370400440532013001"}, "IBAN has wrong check digits", "SUP-001"),
        ({"name": " ", "email": "x"}, "Name is missing; E-mail is no e-mail", "SUP-001"),
        ({}, "Registered already", "SUP-002"),
    ],
)
def test_what_is_wrong_is_said_with_its_reason_and_what_to_do(
    visitor: Visitor, form: dict[str, str], says: str, code: str
) -> None:
    added(visitor)
    page = visitor.refused("/suppliers/", {**FORM, **form})
    assert says in words(page)
    assert f'href="/docs/rules/{code}/"' in page
    assert visitor.get(f"/docs/rules/{code}/").status_code == 200
    assert FORM["tax_id"] in page  # what was typed is still there
    assert ('aria-invalid="true"' in page) == (code == "SUP-001")
    assert Supplier.objects.count() == 1


def test_details_are_changed_beside_the_old_ones(visitor: Visitor) -> None:
    path = added(visitor)
    page = words(visitor.read(path))
    assert "Registered now" in page
    assert FORM["iban"] in page
    assert saved(visitor, path, iban="NL91 ABNA 0417 1643 00")[0] == 303
    page = words(visitor.read(path))
    assert ("NL91 ABNA 0417 1643 00" in page, FORM["iban"] in page) == (True, False)
    assert "SUP-001" in saved(visitor, path, iban="NL00")[1]
    stale = visitor.refused(path, {**FORM, "seen": "1"}, 409)
    assert "changed after you opened" in words(stale)


def test_a_change_keeps_the_account_at_stripe(visitor: Visitor) -> None:
    path = added(visitor)
    entry = suppliers.by_id(Workspace.objects.get(), path.split("/")[2])
    suppliers.change(entry, replace(entry.details, account="acct_1"), actor="runtime")
    saved(visitor, path, email="")
    after = suppliers.by_id(Workspace.objects.get(), path.split("/")[2]).details
    assert after is not None
    assert (after.account, after.email) == ("acct_1", "")


def test_a_supplier_is_blocked_and_unblocked_and_the_audit_list_says_so(visitor: Visitor) -> None:
    path = added(visitor)
    assert visitor.post(f"{path}block/").status_code == 303
    assert "Blocked: nothing is paid" in words(visitor.read(path))
    assert visitor.post(f"{path}unblock/").status_code == 303
    assert row_of(path).state == "active"
    saved(visitor, path, email="")
    erased(visitor, path)
    page = words(visitor.read("/audit/?kind=supplier"))
    told = [f"supplier {each}" for each in ("registered", "blocked", "unblocked", "changed")]
    for said in (*told, "supplier erased"):
        assert page.count(f"{said} visitor visitor") == 1, said
    assert "log created" not in page
    assert '<option value="supplier" selected>' in visitor.read("/audit/?kind=supplier")
    visitor.refused(f"{path}unblock/", status=409)
    assert "SUP-003" in words(visitor.refused(f"{path}block/", status=409))


def test_a_file_is_imported_whole_or_not_at_all(visitor: Visitor) -> None:
    added(visitor)
    faulty = HEAD + WIND + "Bad,,DE00,\r\n" + "\r\n" + "Short\r\n" + "Nordlicht Papier GMBH,,,\r\n"
    status, page = sent(visitor, faulty)
    assert status == 422
    assert "Line 3: IBAN has wrong check digits" in page
    assert "Line 5: It has 1 values; the first line names 4 columns." in page
    assert "2 faults in the file" in page
    assert Supplier.objects.count() == 1
    status, page = sent(visitor, HEAD + WIND + "nordlicht papier gmbh,DE811907980,,\r\n")
    assert status == 422
    assert "Line 3: A supplier with this name is registered: nordlicht papier gmbh." in page
    assert "Line 3: A supplier with this tax id is registered: nordlicht papier gmbh." in page
    assert Supplier.objects.count() == 1
    assert sent(visitor, HEAD + WIND)[0] == 303
    assert "Hollandse Windtechniek B.V." in words(visitor.read("/suppliers/"))
    assert visitor.post("/suppliers/import/").status_code == 422
    assert sent(visitor, "x" * 1_000_001)[0] == 422


def test_a_file_is_shown_before_it_is_imported(visitor: Visitor) -> None:
    text = "IBAN;Town;Name\r\nNL91ABNA0417164300;Århus;Søren A/S\r\n"
    file = SimpleUploadedFile("suppliers.csv", text.encode("latin-1"))
    page = words(visitor.post("/suppliers/preview/", {"file": file}).content.decode())
    assert "Søren A/S NL91ABNA0417164300" in page
    assert "Ignored columns: “Town”" in page
    assert "Register 1 supplier" in page
    assert Supplier.objects.count() == 0


def test_an_export_can_be_imported_elsewhere(visitor: Visitor) -> None:
    added(visitor)
    added(visitor, name="=SUM(A1)", tax_id="", iban="", email="")
    exported = visitor.get("/suppliers/export.csv")
    assert 'filename="suppliers.csv"' in exported["Content-Disposition"]
    text = exported.content.decode()
    assert "\r\n'=SUM(A1)," in text
    (log,) = Workspace.objects.all()
    suppliers.register(log.id, [Details(name="Us Ltd")], actor="visitor", state=suppliers.OWN)
    assert visitor.read("/suppliers/export.csv") == text
    other = Visitor()
    assert sent(other, text)[0] == 303
    assert {*other.read("/suppliers/export.csv").split("\r\n")} == {*text.split("\r\n")}


def test_what_is_remembered_is_shown_and_taken_back(visitor: Visitor) -> None:
    path = added(visitor)
    assert "What is remembered" not in visitor.read(path)
    (entry,) = entries(row_of(path).workspace)
    unit = Unit(kind="text", mark="m", text="Contact: A", label="Contact", place="p")
    known = entry.details.known.with_units([unit]).with_varying([unit])
    known = known.with_places([("total_due", "m", "")])
    suppliers.change(entry, replace(entry.details, known=known), actor="visitor")
    page = visitor.read(path)
    assert "Text that may vary" in page
    assert "2 of its texts" in page
    assert "Read where a person pointed: total due." in page
    mark, _ = re.findall(r'name="mark" value="(\w+)"', page)
    assert visitor.post(f"{path}fix/", {"mark": mark}).status_code == 303
    page = visitor.read(path)
    assert ("Text that may vary" in page, "2 of its texts" in page) == (False, True)
    assert visitor.post(f"{path}fix/", {"mark": "all"}).status_code == 303
    assert "What is remembered" not in visitor.read(path)


def test_long_lists_are_paged(visitor: Visitor) -> None:
    lines = "".join(f"Supplier {number:03},,,\r\n" for number in range(listed.PAGE + 1))
    sent(visitor, HEAD + lines)
    first, second = (words(visitor.read(f"/suppliers/?page={number}")) for number in ("x", "2"))
    assert ("Older suppliers" in first, "Older suppliers" in second) == (True, False)
    assert first.count("Active") + second.count("Active") == listed.PAGE + 1
    assert "There are no older suppliers" in words(visitor.read("/suppliers/?page=99999"))


def test_a_damaged_row_is_named_and_hides_no_other(visitor: Visitor) -> None:
    path = added(visitor)
    sent(visitor, HEAD + WIND)
    Supplier.objects.filter(id=row_of(path).id).update(state="blocked")
    page = words(visitor.read("/suppliers/"))
    assert ("Damaged" in page, "Hollandse" in page, "Nordlicht" in page) == (True, True, False)
    assert "not what the audit log says" in words(visitor.read(path))
    for status, said in (saved(visitor, path), (409, "PII-002")):
        assert (status, "PII-002" in said) == (409, True)
    assert visitor.post(f"{path}unblock/").status_code == 409
    assert "Nordlicht" not in visitor.read("/suppliers/export.csv")
    assert erased(visitor, path)[0] == 303


def pages(path: str) -> Iterator[str]:
    yield from ("/suppliers/", "/suppliers/export.csv", "/audit/", path)
    yield from (f"{path}{name}" for name in ("erase/", "certificate/", "certificate.json"))


def test_nothing_personal_is_on_any_page_after_erasure(
    visitor: Visitor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    path = added(visitor)
    visitor.read(f"{path}certificate/", 404)
    assert FORM["name"] in visitor.read(f"{path}erase/")
    for form, says in (
        ({"confirm": "ERASE"}, "Type ERASE"),
        ({"reason": "art99"}, "Choose a ground"),
    ):
        status, said = erased(visitor, path, **form)
        assert (status, says in said) == (422, True)
    assert row_of(path).state == "active"
    assert erased(visitor, path)[0] == 303
    for where in pages(path):
        page = visitor.read(where)
        assert not [value for value in PERSONAL if value in page], where
    assert not [value for value in PERSONAL if value in caplog.text]
    assert visitor.get(f"{path}certificate/")["Clear-Site-Data"] == '"cache"'
    made = json.loads(visitor.read(f"{path}certificate.json"))
    assert (made["supplier"], made["state"], made["v"]) == (
        *(str(row_of(path).id), "done", "nanovm-erasure/1"),
    )
    assert "[REDACTED_TOMBSTONE]" in visitor.read("/suppliers/")
    assert "There is nothing left to erase" in words(visitor.read(f"{path}erase/"))
    added(visitor)  # and may be registered anew
