"""The supplier register: what it takes, how it is found, and what an edited row leads to."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.models import Envelope, Workspace
from engine.runtime import chains
from engine.store import log_chain, records
from engine.store.sql import key
from engine.vault.key_store import keystore
from nanovm_core.core.vault import NONCE_BYTES, R_BYTES, commit, seal_value
from nanovm_core.errors import VerificationError
from pipeline.models import Register, Supplier, SupplierIndex
from pipeline.register import index, suppliers, versions
from pipeline.register.details import Details, DetailsError
from pipeline.register.versions import Entry
from tests.kit.house import House, entries, sql

PAPER = Details(
    name="Nordlicht Papier GmbH",
    tax_id="DE 811 907 980",
    iban="DE89 3704 0044 0532 0130 00",
    email="billing@nordlicht-papier.example",
)
WIND = Details(name="Hollandse Windtechniek B.V.", iban="NL91ABNA0417164300")


@pytest.fixture
def workspace(house: House) -> Workspace:
    return chains.create()


def registered(workspace: Workspace, *given: Details) -> list[Entry]:
    return suppliers.register(workspace.id, given, actor="visitor")


def found(workspace: Workspace, details: Details) -> Entry | None:
    return suppliers.find(workspace, details.identities())


def test_a_supplier_is_found_by_tax_id_or_name_however_it_is_spelt(workspace: Workspace) -> None:
    paper, _ = registered(workspace, PAPER, WIND)
    for other in (
        Details(name="Somebody else", tax_id="de811907980"),
        Details(name="NORDLICHT  PAPIER  GMBH."),
        Details(name="Nordlicht Papier GmbH", tax_id="FR 1"),
    ):
        hit = found(workspace, other)
        assert hit is not None
        assert (hit.id, hit.details) == (paper.id, replace(PAPER, iban="DE89370400440532013000"))
    assert found(workspace, Details(name="Nordlicht Papier AG")) is None
    assert found(chains.create(), PAPER) is None


def test_an_index_that_leads_to_another_workspaces_supplier_is_found(workspace: Workspace) -> None:
    registered(workspace, PAPER)
    (other,) = registered(chains.create(), replace(PAPER, iban=WIND.iban))
    SupplierIndex.objects.filter(workspace=workspace).update(supplier=other.row)
    with pytest.raises(VerificationError, match="PII-002"):
        found(workspace, PAPER)


def test_each_version_is_sealed_and_its_predecessors_key_is_destroyed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (paper,) = registered(workspace, PAPER)
    ref = paper.row.ref
    changed = suppliers.change(paper, replace(PAPER, iban=WIND.iban), actor="visitor")
    blocked = suppliers.block(changed, actor="visitor")
    suppliers.unblock(blocked, actor="visitor")
    bodies = [records.body_of(each.data) for each in log_chain.read_chain(workspace.id)][1:]
    assert [(each["kind"], records.part_of(each, "state")["event"]) for each in bodies] == [
        ("supplier", event) for event in ("registered", "changed", "blocked", "unblocked")
    ]
    assert str(PAPER.iban) not in str(bodies)
    monkeypatch.setattr(versions, "CHUNK_ROWS", 1)
    refs = [each.ref for each in versions.sealed_versions(workspace)]
    assert (refs[0], len(refs)) == (ref, 4)
    assert keystore().keys(refs).keys() == {refs[-1]}
    hit = found(workspace, PAPER)
    assert hit is not None
    assert (hit.row.state, hit.details) == ("active", replace(PAPER, iban=WIND.iban))


@pytest.mark.parametrize(
    ("details", "says"),
    [
        (Details(name=" . "), "name is missing"),
        (Details(name="A", iban="DE89370400440532013001"), "iban has wrong check digits"),
        (Details(name="A", email="nobody"), "email is no e-mail address"),
        (Details(name="A", email="a@b@c.example"), "email is no e-mail address"),
        (Details(name="A", email="a@b.example\nBcc: c@d.example"), "email has a control character"),
        (Details(name="A\r\nB"), "name has a control character"),
        (Details(name="A" * 201), "name has more than 200 characters"),
    ],
)
def test_malformed_details_are_refused(workspace: Workspace, details: Details, says: str) -> None:
    with pytest.raises(DetailsError, match=f"SUP-001: .*{says}"):
        registered(workspace, WIND, details)
    assert not Supplier.objects.exists()


@pytest.mark.parametrize("other", [replace(PAPER, name="Other"), replace(PAPER, tax_id="")])
def test_no_two_suppliers_have_one_name_or_tax_id(workspace: Workspace, other: Details) -> None:
    with pytest.raises(DetailsError, match="SUP-002"):
        registered(workspace, PAPER, other)
    registered(workspace, PAPER)
    with pytest.raises(DetailsError, match="SUP-002"):
        registered(workspace, WIND, other)
    (wind,) = registered(workspace, WIND)
    with pytest.raises(DetailsError, match="SUP-002"):
        suppliers.change(wind, other, actor="visitor")
    assert found(workspace, WIND) is not None


def _exchange(field: str) -> Callable[[Supplier, Supplier], None]:
    def edit(row: Supplier, other: Supplier) -> None:
        Supplier.objects.filter(id=row.id).update(**{field: getattr(other, field)})

    return edit


def _whole_row(row: Supplier, other: Supplier) -> None:
    names = ("ref", "commitment", "ciphertext", "sealed_n")
    Supplier.objects.filter(id=row.id).update(**{name: getattr(other, name) for name in names})


def _index(row: Supplier, other: Supplier) -> None:
    SupplierIndex.objects.filter(supplier=row).update(supplier=other)


def _index_key(row: Supplier, _: Supplier) -> None:
    Register.objects.filter(workspace=row.workspace_id).update(index_ref="index://gone")


@pytest.mark.parametrize(
    "edit",
    [*map(_exchange, ("ref", "ciphertext", "sealed_n", "state")), _whole_row, _index, _index_key],
)
def test_an_edited_register_leads_to_nobody(
    workspace: Workspace, edit: Callable[[Supplier, Supplier], None]
) -> None:
    (paper,) = registered(workspace, PAPER)
    (wind,) = registered(workspace, WIND)
    blocked = suppliers.block(wind, actor="visitor")
    edit(paper.row, blocked.row)
    with pytest.raises(VerificationError, match="PII-002"):
        found(workspace, PAPER)


def test_a_version_that_was_put_back_leads_to_nobody(workspace: Workspace) -> None:
    (paper,) = registered(workspace, PAPER)
    old = Supplier.objects.filter(id=paper.row.id).values().get()
    suppliers.block(paper, actor="visitor")
    Supplier.objects.filter(id=paper.row.id).update(**old)
    with pytest.raises(VerificationError, match="PII-002"):
        found(workspace, PAPER)


def test_a_change_that_was_begun_before_another_one_is_refused(workspace: Workspace) -> None:
    (paper,) = registered(workspace, PAPER)
    suppliers.block(paper, actor="visitor")
    with pytest.raises(DetailsError, match="SUP-005"):
        suppliers.change(paper, replace(PAPER, iban=WIND.iban), actor="visitor")
    entry = found(workspace, PAPER)
    assert entry is not None
    assert (entry.row.state, entry.details) == (suppliers.BLOCKED, paper.details)


def test_an_erased_supplier_is_not_found_and_its_old_index_leads_nowhere(
    workspace: Workspace,
) -> None:
    paper, wind = registered(workspace, PAPER, WIND)
    old_key = index.key_of(workspace)
    before = set(SupplierIndex.objects.values_list("value", flat=True))
    suppliers.destroy(suppliers.forget(paper.row, actor="visitor"))
    suppliers.destroy(suppliers.forget(paper.row, actor="visitor"))
    assert found(workspace, PAPER) is None
    hit = found(workspace, WIND)
    assert hit is not None
    assert hit.id == wind.id
    assert before.isdisjoint(SupplierIndex.objects.values_list("value", flat=True))
    assert index.key_of(workspace) != old_key
    assert keystore().keys([paper.row.ref]) == {}
    assert len(keystore().refs_of(f"register-{workspace.id}")) == 1
    left = {each.id: each.details for each in entries(workspace)}
    assert left == {wind.id: WIND, paper.id: Details(name="")}
    with pytest.raises(DetailsError, match="SUP-003"):
        suppliers.unblock(suppliers.by_id(workspace, paper.id), actor="visitor")


def test_the_workspaces_own_company_is_no_supplier(workspace: Workspace) -> None:
    suppliers.register(workspace.id, [PAPER], actor="visitor", state=suppliers.OWN)
    assert found(workspace, PAPER) is None


def test_an_edited_envelope_of_the_register_leads_to_nobody(workspace: Workspace) -> None:
    (paper,) = registered(workspace, PAPER)
    row = Envelope.objects.get(workspace=workspace, run="log", n=paper.row.sealed_n)
    edited = bytes(row.bytes).replace(b'"visitor"', b'"nobody"')
    assert edited != bytes(row.bytes)
    table = "UPDATE pipeline_envelope SET bytes = %s WHERE seq = %s AND workspace_id = %s"
    sql((table, [edited, row.seq, key(workspace.id)]))
    with pytest.raises(VerificationError, match="PII-002"):
        found(workspace, PAPER)


@pytest.mark.parametrize("kind", ["", "alert", "supplier", "an agent's"])
def test_only_a_suppliers_envelope_of_the_own_log_says_what_a_row_holds(
    workspace: Workspace, kind: str
) -> None:
    """A holder of the row's key exchanged its details, and seals an envelope that names them."""
    (paper,) = registered(workspace, PAPER)
    row, other = paper.row, replace(PAPER, iban=WIND.iban).to_bytes()
    key, r = keystore().keys([row.ref])[row.ref], bytes(R_BYTES)
    bound_to = f"{workspace.origin}\0{row.ref}"
    forged = seal_value(key, bytes(NONCE_BYTES), r, other, bound_to=bound_to)
    said = {"ref": row.ref, "c": commit(r, row.ref, other)}
    body = {"state": {"to": row.state}, "in": {"suppliers": {paper.id: row.ref}}, "secrets": [said]}
    place = row.sealed_n
    if kind:
        log = chains.create().id if kind == "supplier" else workspace.id
        owner, kind = ("agent:x", "supplier") if "agent" in kind else ("log", kind)
        for _ in range(2):  # the other log has its genesis before, the agent nothing
            place = chains.seal(log, kind, body, actor="attacker", owner=owner)
    Supplier.objects.filter(id=row.id).update(ciphertext=forged, sealed_n=place)
    with pytest.raises(VerificationError, match="PII-002"):
        found(workspace, PAPER)
