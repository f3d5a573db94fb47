"""Links: each opens what it grants and nothing else, before its use, after, and once it ended."""

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any
from unittest.mock import Mock

import pytest
from django.conf import settings

from dashboard.web import held
from dashboard.web.workspace import COOKIE
from engine.evidence.fsck.audit import audit
from engine.models import Envelope, Link, Run
from engine.ops.log_files import WithoutSecrets
from engine.privacy import expiry
from engine.queries.runs import RunHead
from engine.runtime import links
from engine.store import records
from pipeline.queries import personal
from pipeline.register import suppliers
from pipeline.register.details import Details
from tests.dashboard.visitor import Visitor, words
from tests.dashboard.web.test_isolation import OWNED, Property, form_of, property_of
from tests.kit.house import sql
from tests.kit.pdf_builder import text_pdf

pytestmark = pytest.mark.usefixtures("own_folder", "db")

RUN = {
    *("run", "event", "event_bytes", "step", "calls", "run_audit", "run_export"),
    *("verify", "report_page"),
}
LATER = {"receipt", "bundle"}  # once a checkpoint covers the run: 503 until then
PICTURES = {"crop", "sheet"}
LOG = {"log", "log_export", "log_bundle"}
# What each link of the owner opens: by its grants and whether it shows personal data.
OPENS: Mapping[str, set[str]] = {
    "view": RUN | LATER,
    "view personal": RUN | LATER | PICTURES,
    "audit": RUN | LATER | LOG,
    "verdict": {"attack"},
    "gallery": {"gallery_shot"},
    "erase": set(),
}
REFUSED = {403, 404, 405}
OTHER_BUYER = text_pdf(
    [
        "Another Seller Ltd      INVOICE",
        "Invoice number: OB-1",
        "Invoice date: 2026-03-05                 Due date: 2026-04-04",
        "Bill to: Someone Else AG",
        "IBAN IE29 AIBK 9311 5212 3456 78",
        "Total  EUR 120.00",
    ]
)


@pytest.fixture(scope="module")
def theirs(own_folder: None, owner: Visitor, paid: RunHead) -> Property:
    return property_of(owner, paid)


def made(owner: Visitor, grants: str, of: str = "", **form: Any) -> str:
    """The path of a new link that its owner made with the form."""
    page = owner.post("/links/", {"grants": grants, "of": of, "hours": "24", **form})
    assert page.status_code == 200, words(page.content.decode())
    found = re.search(r'id="its-link"[^>]*>http://testserver(/l/[^<]+)<', page.content.decode())
    assert found is not None
    return found[1]


def used(path: str, visitor: Visitor | None = None) -> Visitor:
    """A browser that pressed the button of a link."""
    holder = visitor or Visitor()
    assert holder.post(path).status_code == 303
    return holder


def row_of(path: str) -> Link:
    return Link.objects.get(secret=links.hash_of(path.split("/")[2]))


def made_for(theirs: Property, kind: str) -> str:
    """A link of each kind of ``OPENS`` to what the owner has."""
    grants, _, shows = kind.replace("gallery", "verdict").partition(" ")
    if grants == "erase":
        workspace = Run.objects.get(id=theirs.runs["paid"].id).workspace_id
        (supplier,) = suppliers.register(workspace, [Details(name="B")], actor="visitor")
        return made(theirs.visitor, grants, supplier.row.code)
    of = {
        "view": theirs.runs["paid"].code,
        "verdict": theirs.shot if kind == "gallery" else theirs.attack,
    }
    return made(theirs.visitor, grants, of.get(grants, ""), **({"personal": "on"} if shows else {}))


def opened(
    theirs: Property, holder: Visitor, names: Iterable[str], *, whole: bool = False
) -> set[str]:
    """The addresses of the owner's that open.

    ``whole``: with each run of the owner, and with each address's form, which is taken nowhere.
    """
    found: set[str] = set()
    codes = [run.code for run in theirs.runs.values()] if whole else []
    for name in names:
        for path in {theirs.path(name, code) for code in (*codes, code_of(theirs, name))}:
            answer = holder.get(path)
            if answer.status_code not in REFUSED:
                found.add(path)
                assert holder.head(path).status_code == answer.status_code
            if whole:
                form = form_of(theirs.runs[OWNED[name]], theirs)
                assert holder.post(path, form).status_code in REFUSED, path
    return found


@pytest.mark.parametrize("kind", OPENS)
def test_a_link_opens_what_it_grants_and_nothing_else(
    theirs: Property, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, holder = made_for(theirs, kind), Visitor()
    link = row_of(path)
    before = Envelope.objects.count()
    for method in (holder.get, holder.head):
        assert method(path).status_code == 200
    assert opened(theirs, holder, OPENS[kind]) == set()
    assert Envelope.objects.count() == before
    used(path, holder)
    codes = [run.code for run in theirs.runs.values()] if kind == "audit" else []
    assert opened(theirs, holder, OWNED, whole=True) == {
        theirs.path(name, code)
        for name in OPENS[kind]
        for code in (codes or [code_of(theirs, name)])
    }
    with monkeypatch.context() as patch:
        patch.setattr(links, "now_ms", lambda: link.until_ms)
        assert opened(theirs, holder, OPENS[kind]) == set()
        assert "has expired" in holder.read(path, 410)
    theirs.visitor.post(f"/links/{link.id}/revoke/")
    assert opened(theirs, holder, OPENS[kind]) == set()
    assert "was revoked" in holder.read(path, 410)
    assert holder.post(path).status_code == 410


@pytest.mark.parametrize("kind", ["view", "view personal", "audit", "verdict", "gallery"])
def test_the_pages_of_a_link_have_no_form_and_no_address_that_fails(
    theirs: Property, kind: str
) -> None:
    holder = used(made_for(theirs, kind))
    names = OPENS[kind] & (RUN | LOG | {"attack", "gallery_shot"}) - {"event_bytes"}
    leads: dict[str, str] = {}
    for path in [theirs.path(name, code_of(theirs, name)) for name in names]:
        answer = holder.get(path)
        if "text/html" not in answer["Content-Type"]:
            continue
        page = answer.content.decode()
        main = page[page.index("<main") : page.index("</main>")]
        assert "You read this through a link" in main, path
        assert 'method="post"' not in main, path
        assert 'form="act"' not in main, path
        leads |= dict.fromkeys(re.findall(r'(?:href|src)="(/(?!static/)[^"#?]*)', main), path)
    for href, path in leads.items():
        assert holder.get(href).status_code in (200, 503), f"{path}: {href}"


def code_of(theirs: Property, name: str) -> str:
    return theirs.runs[OWNED[name] if name in ("attack", "gallery_shot") else "paid"].code


def test_a_link_shows_personal_data_only_where_its_owner_said_so(theirs: Property) -> None:
    paid = theirs.runs["paid"]
    values = personal.of_run(paid).values
    names = [*("payee", "seller", "invoice_number", "file_name", "destination", "payment")]
    canaries = {values[name] for name in names if len(values.get(name, "")) > 3}
    assert len(canaries) >= 4
    texts: list[str] = []
    for kind, shows in (("view", False), ("audit", False), ("view personal", True)):
        path = made_for(theirs, kind)
        holder = Visitor()
        texts = [holder.read(path)]
        used(path, holder)
        for name in OPENS[kind] - LATER - LOG:
            answer = holder.get(theirs.path(name, paid.code))
            texts.append(b"".join(answer).decode("utf-8", "replace"))
        for number in range(1, paid.steps_count + 1):
            texts.append(holder.read(f"/runs/{paid.code}/steps/{number}/"))
        found = {value for value in canaries if any(value in text for text in texts)}
        assert found == (canaries if shows else set())
    assert "Personal data shown" in words(texts[0])


def test_a_narrowed_link_names_nobody_of_the_register(theirs: Property) -> None:
    run, number = theirs.visitor.upload("other.pdf", OTHER_BUYER), 0
    while run.held_by != "other-company":
        theirs.visitor.command(run, "approve")
        run, number = theirs.visitor.driven(run.code), number + 1
        assert number < 5, run.held_by
    own = suppliers.own_company(Run.objects.get(id=run.id).workspace)
    assert own is not None
    assert own.name in theirs.visitor.read(f"/runs/{run.code}/")
    for grants in ("view", "audit"):
        holder = used(made(theirs.visitor, grants, run.code))
        page = holder.read(f"/runs/{run.code}/")
        assert "(hidden), and not (hidden)" in page
        assert own.name not in page


def test_a_link_of_another_workspace_or_a_cut_one_is_not_known(theirs: Property) -> None:
    path = made_for(theirs, "view")
    for wrong in (path[:-6] + "/", "/l/x/", f"/l/{'A' * 32}/", f"/l/{'A' * 5000}/", "/l/%00/"):
        page = Visitor().get(wrong)
        assert page.status_code in (400, 404), wrong
        assert page.status_code == 400 or "This link is not known" in page.content.decode()
    stranger = Visitor()
    mine = stranger.make(hold=True)
    said = {"grants": "view", "hours": "24"}
    for grants, of in (
        ("view", theirs.runs["paid"].code),
        ("approve", theirs.runs["paid"].code),
        ("verdict", theirs.attack),
        ("verdict", theirs.shot),
        ("erase", theirs.supplier),
        ("kill", mine.code),
    ):
        stranger.refused("/links/", {**said, "grants": grants, "of": of})
    stranger.refused("/links/", {**said, "of": mine.code, "hours": "9000"})
    Visitor().refused("/links/", {**said, "of": mine.code})
    assert not Link.objects.filter(workspace_id=mine.workspace).exists()
    assert stranger.post(f"/links/{row_of(path).id}/revoke/").status_code == 404
    assert Visitor().get(path).status_code == 200


def test_a_forged_cookie_or_another_links_id_opens_nothing(theirs: Property) -> None:
    link = row_of(made_for(theirs, "view"))
    forged = Visitor()
    forged.cookies[held.COOKIE] = f'["{link.id}"]'
    assert forged.get(f"/runs/{theirs.runs['paid'].code}/").status_code == 404
    forged.cookies[held.COOKIE] = theirs.visitor.cookies[COOKIE].value  # signed for something else
    assert forged.get(f"/runs/{theirs.runs['paid'].code}/").status_code == 404
    assert forged.get(f"/l/{link.id}/approve/").status_code == 404


EDITS: Mapping[str, Mapping[str, Any]] = {
    "longer": {"until_ms": 2**52},
    "more": {"grants": "audit"},
    "all": {"narrowed": False},
    "other": {"secret": links.hash_of("mine")},
    "elsewhere": {"sealed_n": 0},
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_row_grants_nothing_and_the_audit_names_it(theirs: Property, edit: str) -> None:
    path = made_for(theirs, "view")
    holder, run = used(path), theirs.runs["paid"]
    assert holder.get(f"/runs/{run.code}/").status_code == 200
    Link.objects.filter(id=row_of(path).id).update(**EDITS[edit])
    assert holder.get(f"/runs/{run.code}/").status_code == 404
    again = "/l/mine/" if edit == "other" else path
    assert "changed in the database" in holder.read(again, 410)
    assert [each.code for each in audit().damage if "link" in each.text] == ["LOG-003"]


def test_one_request_reads_the_log_for_one_link(
    theirs: Property, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, holder = theirs.runs["paid"], Visitor()
    for code in (theirs.runs["ready"].code, run.code):
        used(made(theirs.visitor, "view", code), holder)
    used(path := made(theirs.visitor, "view", run.code), holder)
    theirs.visitor.post(f"/links/{row_of(path).id}/revoke/")
    log = Mock(wraps=links.sealed)
    monkeypatch.setattr(links, "sealed", log)
    assert holder.get(f"/runs/{run.code}/").status_code == 200
    assert log.call_count == 1


def test_a_revoked_link_does_not_live_again_by_its_row_or_without_its_event(
    theirs: Property,
) -> None:
    path = made_for(theirs, "view")
    holder, run, link = used(path), theirs.runs["paid"], row_of(path)
    theirs.visitor.post(f"/links/{link.id}/revoke/")
    Link.objects.filter(id=link.id).update(revoked_ms=None)
    assert holder.get(f"/runs/{run.code}/").status_code == 404
    assert "LOG-003" in [each.code for each in audit().damage]
    last = Envelope.objects.filter(run="log", kind=links.KIND).order_by("-n").first()
    assert last is not None
    assert records.body_of(last.bytes)["event"] == links.REVOKED
    sql(("DELETE FROM pipeline_envelope WHERE hash = %s", [last.hash]))
    assert "changed in the database" in holder.read(path, 410)


def test_what_is_sealed_of_a_link_has_no_secret_and_is_told_in_words(theirs: Property) -> None:
    path = made_for(theirs, "view")
    used(path)
    link, secret = row_of(path), path.split("/")[2]
    theirs.visitor.post(f"/links/{link.id}/revoke/")
    rows = Envelope.objects.filter(workspace=link.workspace, kind=links.KIND).order_by("-n")
    bodies = [records.body_of(each.bytes) for each in rows]
    mine = [each for each in bodies if each.get("link") == str(link.id)]
    assert [each["event"] for each in mine] == [links.REVOKED, links.USED, links.MADE]
    assert {each["of"] for each in mine} == {theirs.runs["paid"].id}
    assert [each["actor"] for each in mine] == ["visitor", f"link-{link.id}", "visitor"]
    assert not any(secret.encode() in bytes(each.bytes) for each in rows)
    listed = words(theirs.visitor.read("/audit/?kind=capability"))
    for said in ("link made (view)", "link used (view)", "link revoked (view)"):
        assert said in listed
    shown = theirs.visitor.read("/links/")
    assert "1×" in words(shown)
    assert secret not in shown


def test_the_address_of_a_link_goes_no_further(theirs: Property) -> None:
    path = made_for(theirs, "verdict")
    page = Visitor().get(path)
    assert page["Referrer-Policy"] == "strict-origin"
    assert page["Cache-Control"] == "no-store"
    text = page.content.decode()
    assert 'property="og:title" content="BLOCKED: tool_injection"' in text
    assert re.search(r'og:description" content="[^"]*nanovm: [^"]* lost', text)
    response = Visitor().post(path, {"next": "//evil.example/"}, query_params={"next": "//evil"})
    assert response["Location"].startswith("/runs/")
    assert 'property="og:title"' in Visitor().read("/")
    for typed in (path, path.replace("/l/", "/L/"), path.replace("/l/", "/l//")):
        line = logging.LogRecord("django.request", 30, "", 1, "Gone: %s", (typed,), None)
        assert WithoutSecrets().filter(line)
        line.exc_info = (ValueError, ValueError(typed), None)
        assert WithoutSecrets().filter(line)
        assert path.split("/")[2] not in logging.Formatter().format(line)
    written: Any = settings.LOGGING["handlers"]
    assert all("secrets" in each["filters"] for each in written.values())


def test_at_most_a_hundred_links_are_open(
    theirs: Property, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "OPEN_MAX", Link.objects.count() + 1)
    path = made_for(theirs, "view")
    code = theirs.runs["paid"].code
    said = theirs.visitor.refused("/links/", {"grants": "view", "of": code, "hours": "1"})
    assert "which is the limit" in said
    theirs.visitor.post(f"/links/{row_of(path).id}/revoke/")
    path = made_for(theirs, "view")
    used(path)
    monkeypatch.setattr(links, "USES_MAX", 1)
    assert "used too often" in Visitor().refused(path, status=410)


def test_the_rows_of_links_go_thirty_days_after_their_end(
    theirs: Property, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = row_of(made_for(theirs, "view"))
    for at_ms, there in ((link.until_ms + links.KEPT_MS, True), (2**50, False)):
        monkeypatch.setattr(links, "now_ms", lambda at_ms=at_ms: at_ms)
        expiry.erase_unused()
        assert Link.objects.filter(id=link.id).exists() is there
    assert "link" not in "".join(each.text for each in audit().damage)
