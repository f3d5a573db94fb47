"""Approve links: one decision about what was shown, by somebody else where four eyes are wanted."""

import re

import pytest

from engine.evidence.fsck.audit import audit
from engine.models import Envelope
from engine.queries.runs import RunHead
from engine.runtime import links
from engine.store import records
from tests.dashboard.sharing.test_links import OPENS, made, made_for, row_of, used
from tests.dashboard.sharing.test_links import theirs as theirs
from tests.dashboard.visitor import Visitor, by_code, seen, words
from tests.dashboard.web.test_isolation import Property

pytestmark = pytest.mark.usefixtures("own_folder", "db")


@pytest.fixture
def waits(theirs: Property) -> RunHead:
    """A run of the owner's that waits for a person."""
    return theirs.visitor.make("over_limit")


def decision(run: RunHead, **form: str) -> dict[str, str]:
    return {"decision": "approve", **seen(run), **form}


def test_an_approve_link_decides_what_it_showed_once(theirs: Property, waits: RunHead) -> None:
    path = made(theirs.visitor, "approve", waits.code)
    link, holder, other = row_of(path), used(path), used(path)
    at = f"/l/{link.id}/approve/"
    page = words(holder.read(at))
    assert "Held for" in page
    assert re.search(r"Approve [A-Z]{3} [\d,.]+ to ", page)
    assert "Personal data is hidden" not in holder.read(f"/runs/{waits.code}/")
    assert holder.post(at, decision(waits, hold="0" * 64)).status_code == 409
    assert holder.post(at, decision(waits, terms="")).status_code == 409
    assert holder.post(at, {**decision(waits), "decision": "kill"}).status_code == 404
    assert holder.post(f"/runs/{waits.code}/approve/", seen(waits)).status_code == 404
    assert by_code(waits.code).hold == waits.hold
    assert holder.post(at, decision(waits))["Location"] == f"/runs/{waits.code}/"
    assert other.post(at, decision(waits)).status_code == 410
    assert other.get(at).status_code == 410
    with pytest.raises(links.LinkError, match=links.SPENT):  # who came in before it was spent
        links.acting(link)
    paid = theirs.visitor.driven(waits.code)
    assert paid.label == "SUCCESS"
    assert f"decided by link-{link.id}" in words(holder.read(f"/runs/{waits.code}/"))
    assert "only shows the run now" in Visitor().read(path)
    assert audit().damage == ()


def test_a_declined_payment_spends_the_link_too(theirs: Property, waits: RunHead) -> None:
    link = row_of(path := made(theirs.visitor, "approve", waits.code))
    holder = used(path)
    at = f"/l/{link.id}/approve/"
    assert holder.post(at, decision(waits, decision="decline")).status_code == 303
    assert by_code(waits.code).label == "DECLINED"
    assert holder.post(at, decision(waits)).status_code == 410


def test_a_link_to_approve_needs_a_payment_that_waits(theirs: Property, waits: RunHead) -> None:
    for code in (theirs.runs["paid"].code, theirs.runs["ready"].code):
        form = {"grants": "approve", "of": code, "hours": "1"}
        assert "nothing to approve" in theirs.visitor.refused("/links/", form)
    path = made(theirs.visitor, "approve", waits.code)
    holder = used(path)
    theirs.visitor.post(f"/links/{row_of(path).id}/revoke/")
    assert holder.post(f"/l/{row_of(path).id}/approve/", decision(waits)).status_code == 410
    assert by_code(waits.code).hold == waits.hold


def test_no_decision_is_sealed_of_a_payment_that_does_not_wait(
    theirs: Property, waits: RunHead
) -> None:
    path, other = (made(theirs.visitor, "approve", waits.code) for _ in range(2))
    link, holder, form = row_of(path), used(path), decision(waits)
    at = f"/l/{link.id}/approve/"
    declined = {**form, "decision": "decline"}
    assert used(other).post(f"/l/{row_of(other).id}/approve/", declined).status_code == 303
    for late in (form, declined):
        page = holder.refused(at, late, status=409)
        assert "This run is not waiting for a decision." in page
    rows = Envelope.objects.filter(workspace=link.workspace, kind=links.KIND)
    said = [records.body_of(each.bytes) for each in rows]
    assert [each["link"] for each in said if "outcome" in each] == [str(row_of(other).id)]
    assert row_of(path).spent_ms is None


def test_a_link_fills_the_log_with_no_refused_decisions(
    theirs: Property, waits: RunHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = used(path := made(theirs.visitor, "approve", waits.code))
    at, wrong = f"/l/{row_of(path).id}/approve/", decision(waits, hold="0" * 64)
    monkeypatch.setattr(links, "USES_MAX", 3)
    assert [holder.post(at, wrong).status_code for _ in range(3)] == [409, 409, 410]
    before = Envelope.objects.count()
    assert "was used too often" in holder.refused(at, wrong, status=410)
    assert Envelope.objects.count() == before
    assert holder.post(at, decision(waits)).status_code == 303
    assert audit().damage == ()


def test_four_eyes_are_the_requesters_and_those_of_a_link(
    four_eyes: None, theirs: Property
) -> None:
    run = theirs.visitor.make("over_limit")
    path = made(theirs.visitor, "approve", run.code)
    at = f"/l/{row_of(path).id}/approve/"
    refused = theirs.visitor.command(run, "approve")
    assert refused["Location"].endswith("POL-026")
    own = used(path, theirs.visitor.twin())
    assert "belongs to the workspace that requested" in own.read(at)
    page = own.post(at, decision(run))
    assert (page.status_code, "POL-026" in page.content.decode()) == (409, True)
    assert by_code(run.code).hold == run.hold
    assert used(path).post(at, decision(run)).status_code == 303
    assert theirs.visitor.driven(run.code).label == "SUCCESS"


@pytest.mark.parametrize("kind", [*OPENS, "approve"])
def test_a_link_does_no_act_of_another_kind(theirs: Property, waits: RunHead, kind: str) -> None:
    is_approve = kind == "approve"
    path = made(theirs.visitor, kind, waits.code) if is_approve else made_for(theirs, kind)
    holder, link, before = used(path), row_of(path), Envelope.objects.count()
    acts = {"approve/": "approve"}
    acts |= dict.fromkeys(("erase/", "erase/certificate/", "erase/certificate.json"), "erase")
    for at in [at for at, of in acts.items() if of != kind]:
        assert holder.get(f"/l/{link.id}/{at}").status_code == 404, at
        assert holder.post(f"/l/{link.id}/{at}", decision(waits)).status_code in (404, 405), at
    assert Envelope.objects.count() == before
