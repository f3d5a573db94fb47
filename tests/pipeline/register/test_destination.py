"""Whose account is paid: the one that the sealed intent names, while the register has it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import stripe
from django.conf import settings

from engine.models import Envelope, Run, Secret
from engine.privacy import erasure
from engine.queries.record import record_of
from engine.queries.runs import head_of
from engine.runtime import api
from engine.store import outbox
from engine.vault.key_store import keystore
from engine.worker import drive
from nanovm_core.core import lifecycle as life
from nanovm_core.core.vault import PREFIX
from pipeline.application import INVOICES
from pipeline.models import Supplier
from pipeline.ops.stripe_counterpart import stripe_counterpart
from pipeline.queries import money
from pipeline.register import suppliers, versions
from pipeline.register.details import Details, DetailsError
from pipeline.register.erasure import erase_supplier
from pipeline.register.versions import Entry
from pipeline.steps.charge import gateway
from tests.kit.clock import Leap
from tests.kit.house import (
    House,
    bodies,
    connected_accounts,
    crash,
    invoice,
    payments,
    reason,
    snapshot,
    sql,
)
from tests.pipeline.register.test_register_holds import OTHER_IBAN, approved, bill, driven, entry_of

ACME = "Acme Tools Ltd"
A_DAY_MS = gateway.KEY_LIFE_MS


def received(account: str) -> dict[str, int]:
    """What an account has by the far side's own record: available and pending, by currency."""
    found: Any = gateway.configured().v1.balance.retrieve(options={"stripe_account": account})
    sums = [*found.available, *found.pending]
    return {each.currency: each.amount for each in sums if each.amount}


def account_of(run: Run, name: str = ACME) -> str:
    details = entry_of(run, name).details
    assert details is not None
    return details.account


def test_the_money_goes_to_the_suppliers_own_account(house: House) -> None:
    first = driven(house, bill())
    second = driven(house, invoice("Total  EUR 30.00"), first)
    (account,) = connected_accounts()
    assert account.id == account_of(first)
    assert received(account.id) == {"eur": 15_000}
    assert account.metadata.to_dict().keys() == {"supplier", "workspace", "key"}
    assert [each["state"]["event"] for each in bodies("log") if each["kind"] == "supplier"] == [
        "registered",
        "account_created",
    ]
    for run in (first, second):
        assert run.state == life.COMPLETED
        assert snapshot(run).slots["payee_confirmed"] is True
        intent = next(
            each for each in bodies(run) if each["kind"] == "intent" and "warrant" in each
        )
        assert intent["in"]["destination"] == snapshot(run).slots["destination"]
        assert account.id.encode() not in b"".join(
            bytes(each.bytes) for each in Envelope.objects.all()
        )


def test_another_bank_account_is_another_account_at_stripe(house: House) -> None:
    run = driven(house, bill())
    before, subject = account_of(run), versions.subject(entry_of(run, ACME).id)
    old = {ref for ref in keystore().refs_of(subject) if ref.startswith(PREFIX)}
    assert old
    changed = driven(house, bill(number="C-0917", iban=OTHER_IBAN), run)
    assert approved(changed, entry_of(run, ACME).row.code).state == life.COMPLETED
    after = account_of(run)
    assert old.isdisjoint(keystore().refs_of(subject))
    assert (received(before), received(after)) == ({"eur": 12_000}, {"eur": 12_000})
    assert before != after


def test_a_crash_before_the_envelope_makes_no_second_account(
    house: House, leap: Leap, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.started(bill())
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(suppliers, "connect", crash)
            with pytest.raises(KeyboardInterrupt):
                house.drive(run)
        leap(60_000)  # the lease runs out
        assert account_of(run) == ""
        assert len(connected_accounts()) == 1

    def no_post(*_: object, **__: object) -> None:
        raise AssertionError("the list was not read")

    monkeypatch.setattr(stripe.AccountService, "create", no_post)
    leap(A_DAY_MS)  # the key may be forgotten
    assert driven(house, bill(), run).state == life.COMPLETED
    assert [each.id for each in connected_accounts()] == [account_of(run)]


def test_an_account_is_put_down_once_and_for_the_details_that_it_was_made_for(house: House) -> None:
    run = house.owing("charge")
    now = entry_of(run, ACME)
    sealed = run.workspace.size
    assert suppliers.connect(now, now.details.account).row.sealed_n == now.row.sealed_n
    run.workspace.refresh_from_db()
    assert run.workspace.size == sealed
    suppliers.change(now, replace(now.details, iban=OTHER_IBAN), actor="visitor")
    with pytest.raises(DetailsError, match="SUP-005"):
        suppliers.connect(now, "acct_late")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (stripe.APIConnectionError("gone"), "STR-007"),  # type: ignore[no-untyped-call]
        (stripe.InvalidRequestError("no", None, http_status=400), "STR-009"),  # type: ignore[no-untyped-call]
    ],
)
def test_without_an_answer_about_the_account_nothing_is_paid(
    house: House, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(stripe.AccountService, "create", refuse)
    monkeypatch.setattr(drive, "TRIES_MAX", 1)
    run = house.run(bill())
    assert (run.state, reason(run)) == (life.FAILED, code)
    assert payments(run) == []


@pytest.fixture
def no_connect(house: House, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Stripe account that has not signed up for Connect."""
    with stripe_counterpart(house.folder, "--no-connect") as url:
        monkeypatch.setitem(settings.STRIPE, "api_base", url)
        monkeypatch.setitem(settings.STRIPE, "key", "sk_test_nanovm_demo")
        yield


@pytest.mark.usefixtures("no_connect")
def test_without_connect_it_is_a_plain_charge_and_the_result_says_so(house: House) -> None:
    run = driven(house, bill())
    assert run.state == life.COMPLETED
    assert [each.transfer_data for each in payments(run)] == [None]
    assert snapshot(run).slots["payee_confirmed"] is False
    result = next(
        each for each in bodies(run) if each["kind"] == "result" and each["step"] == "charge"
    )
    assert result["out"]["payee_confirmed"] is False
    assert (account_of(run), connected_accounts()) == ("", [])
    paid = money.payment_of(record_of(head_of(run)), {})
    assert (paid.paid, paid.confirmed) == (True, False)
    kept = erasure.erase_run(str(run.id), "art17-1-a", "visitor").kept
    assert kept[-1] == "the payment record at Stripe, which does not know the payee"


def _blocked(entry: Entry) -> None:
    suppliers.block(entry, actor="visitor")


def _changed(entry: Entry, **texts: str) -> None:
    suppliers.change(entry, Details.of(entry.details.texts() | texts), actor="visitor")


def _edited_row(entry: Entry) -> None:
    other = Supplier.objects.exclude(id=entry.row.id).first()
    assert other is not None
    values = [other.ref, other.commitment, bytes(other.ciphertext or b""), other.sealed_n]
    columns = "ref = %s, commitment = %s, ciphertext = %s, sealed_n = %s"
    sql((f"UPDATE pipeline_supplier SET {columns} WHERE id = %s", [*values, entry.row.id.hex]))


def _edited_state(entry: Entry) -> None:
    _blocked(entry)
    sql(("UPDATE pipeline_supplier SET state = 'active' WHERE id = %s", [entry.row.id.hex]))


def _deleted_row(entry: Entry) -> None:
    sql(
        ("DELETE FROM pipeline_bill WHERE supplier_id = %s", [entry.row.id.hex]),
        ("DELETE FROM pipeline_supplierindex WHERE supplier_id = %s", [entry.row.id.hex]),
        ("DELETE FROM pipeline_supplier WHERE id = %s", [entry.row.id.hex]),
    )


CHANGES: dict[str, tuple[Callable[[Entry], object], str]] = {
    "blocked": (_blocked, "STR-008"),
    "erased": (lambda it: erase_supplier(it.row, "art17-1-a", "visitor"), "STR-008"),
    "other bank account": (lambda it: _changed(it, iban=OTHER_IBAN), "STR-008"),
    "other account": (lambda it: _changed(it, account="acct_mallory"), "STR-008"),
    "row edited": (_edited_row, "PII-002"),
    "state edited": (_edited_state, "PII-002"),
    "row deleted": (_deleted_row, "STR-008"),
}


@pytest.mark.parametrize(("change", "code"), CHANGES.values(), ids=CHANGES)
def test_a_supplier_that_changed_since_is_not_paid(
    house: House, change: Callable[[Entry], object], code: str
) -> None:
    run = house.owing("charge")
    change(entry_of(run, ACME))
    house.drive(run)
    assert (run.state, reason(run)) == (life.FAILED, code)
    assert payments(run) == []
    assert [received(each.id) for each in connected_accounts()] == [{}]


def test_an_edited_index_moves_no_authorized_payment(house: House) -> None:
    run = house.owing("charge")
    account = account_of(run)
    other = entry_of(run, "Quartz Software GmbH").row
    sql(("UPDATE pipeline_supplierindex SET supplier_id = %s", [other.id.hex]))
    assert house.drive(run).state == life.COMPLETED
    assert received(account) == {"eur": 12_000}


@pytest.mark.parametrize("what", ["destination", "payee"])
def test_an_edited_destination_pays_nobody(house: House, what: str) -> None:
    """Another run's sealed account, or another value of the run's own, in its row's place."""
    other = house.owing("charge")
    suppliers.register(
        other.workspace_id, [Details(name="Mallory Ltd", iban=OTHER_IBAN)], actor="m"
    )
    theirs = driven(house, bill("Mallory Ltd", iban=OTHER_IBAN), other)
    assert theirs.state == life.COMPLETED
    source = theirs if what == "destination" else other
    row = Secret.objects.get(run=source, slot=what)
    mine = Secret.objects.get(run=other, slot="destination")
    values = [bytes(row.ciphertext or b""), row.commitment, mine.ref]
    sql(("UPDATE pipeline_secret SET ciphertext = %s, commitment = %s WHERE ref = %s", values))
    house.drive(other)
    assert (other.state, reason(other)[:3]) == (life.FAILED, "PII")
    assert payments(other) == []


def test_after_a_try_of_unknown_outcome_a_person_decides(house: House) -> None:
    run = house.owing("charge")
    begun = api.take(str(run.id))
    assert begun[1] is not None
    _blocked(entry_of(run, ACME))
    outbox.postpone(run.id, begun[1].effect.key, 0)
    Run.objects.filter(id=run.id).update(holder="", until_ms=0)
    house.drive(run)
    assert (run.state, reason(run)) == (life.APPROVAL, "STR-008")
    assert payments(run) == []


WIRE = b'{"tool": "wire_transfer", "args": {"amount": 500, "currency": "EUR", "to": "attacker"}}'
GRANTED = (
    (
        '[tools."wire_transfer".args]',
        '[tools.wire_transfer]\nfree = ["amount", "currency", "to"]\n\n[tools.wire_transfer.args]',
    ),
    ("# Hard rules: they", '[[grants]]\ntool = "wire_transfer"\n\n# Hard rules: they'),
    (
        'accepts = ["stripe.create_payment_intent"]',
        'accepts = ["stripe.create_payment_intent", "wire_transfer"]',
    ),
)
ANY = """
v = "nanovm-policy/1"
name = "any_wire"

[[rules]]
id = "any"
at = "authorize"
outcome = "allow"
when = "true"
why = "Any call."
"""


def test_a_wire_that_is_granted_leaves_the_balance(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = INVOICES.source().decode()
    for old, new in GRANTED:
        assert source.count(old) == 1
        source = source.replace(old, new)
    monkeypatch.setattr(INVOICES, "source", source.encode)
    monkeypatch.setattr(INVOICES, "policy_source", lambda *_: ANY.encode())
    fund: Any = {
        "amount": 60_000,
        "currency": "eur",
        "confirm": True,
        "payment_method": "pm_card_bypassPending",
        "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
    }
    gateway.configured().v1.payment_intents.create(fund)
    run = house.run(bill(), model="compromised", proposal=WIRE)
    payouts: list[Any] = [*gateway.configured().v1.payouts.list().auto_paging_iter()]
    assert run.state == life.COMPLETED
    assert [(each.amount, each.currency) for each in payouts] == [(50_000, "eur")]
    assert snapshot(run).slots["payment_status"] == "pending"
