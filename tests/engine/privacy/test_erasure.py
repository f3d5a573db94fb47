"""Erasure: unique values are planted, paid for, erased, and looked for in raw bytes."""

import base64
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from celery import current_app
from django.conf import settings

from engine.errors import ErasureRefusedError
from engine.evidence.fsck.audit import audit
from engine.models import AdapterCall, Envelope, Run, Secret
from engine.privacy import crypto_shred, erasure
from engine.runtime import api, queue
from engine.vault import secret_store
from engine.vault.secret_store import TOMBSTONE
from nanovm_core.core import lifecycle as life
from nanovm_core.core.envelope import Stored, check_chain
from pipeline.reports import report
from pipeline.steps import seal
from samples import path
from samples.drawing import Bill
from samples.facturx import cross_industry_invoice
from samples.invented import EN16931
from tests.kit.databases import on_sqlite_alone
from tests.kit.house import House, bodies, crash, kinds, sql
from tests.kit.pdf_builder import text_pdf, with_files

IBAN = "GB33BUKB20201555555555"
CANARIES = {
    "seller": "Quokkabeam Papyrus GmbH",
    "address": "Zwergspinnenweg 4711",
    "buyer": "Axolotlfjord Analytics",
    "iban": IBAN,
    "e-mail": "kanarie@quokkabeam.example",
    "number": "ZQ-9083-XKCD",
    "file": "wombat-dossier-7731.pdf",
}
BILL = replace(
    EN16931,
    number=CANARIES["number"],
    seller=(CANARIES["seller"], CANARIES["address"], *EN16931.seller[2:]),
    email=CANARIES["e-mail"],
    buyer=(CANARIES["buyer"], *EN16931.buyer[1:]),
    iban=IBAN,
)


def canary_invoice(bill: Bill = BILL) -> bytes:
    """An invoice whose every personal value occurs nowhere else in the world."""
    page = [
        CANARIES["seller"],
        CANARIES["address"],
        f"Invoice {bill.number} for {CANARIES['buyer']}",
        f"IBAN {IBAN}  {CANARIES['e-mail']}",
        *("Deposit paid  EUR -100.00", "Amount due  EUR 648.80"),
    ]
    return with_files(text_pdf(page), {"factur-x.xml": cross_industry_invoice(bill)})


def spellings(text: str) -> Iterator[bytes]:
    """A value as it may lie in a file: UTF-8, UTF-16, base64 at each of its three offsets."""
    yield text.encode()
    yield text.encode("utf-16-le")
    yield text.encode("utf-16-be")
    for skip in range(3):
        coded = base64.b64encode(b"\x00" * skip + text.encode())
        yield coded[4 : len(coded) // 4 * 4 - 4]


def found(name: str, data: bytes) -> list[str]:
    """The canaries that occur in these bytes."""
    return [
        f"{name}: {what}"
        for what, text in CANARIES.items()
        if any(spelling in data for spelling in spellings(text))
    ]


def sightings(house: House, *, besides: str = "") -> list[str]:
    """The canaries in the raw bytes of every file of the data folder."""
    return [
        seen
        for file, data in house.files()
        if not besides or besides not in file.parts
        for seen in found(str(file), data)
    ]


def canary_run(house: House) -> Run:
    return house.run(canary_invoice(), file_name=CANARIES["file"])


def paid(house: House) -> Run:
    """A paid run over the canary invoice."""
    run = house.once(canary_run)
    assert run.state == life.COMPLETED
    assert report(run, "x")["invoice"] == {
        "invoice_number": CANARIES["number"],
        "seller": CANARIES["seller"],
        "currency": "EUR",
        "total_due": "648.80",
        "due_date": "2026-04-10",
        "iban": IBAN,
    }
    return run


def chain(run: Run) -> list[Stored]:
    """The run's envelopes as they lie there."""
    rows = Envelope.objects.filter(run=str(run.id)).order_by("n")
    return [Stored(n=row.n, data=bytes(row.bytes), hash=row.hash) for row in rows]


def test_no_value_lies_in_the_clear_before_the_erasure_but_in_the_advice(house: House) -> None:
    run = paid(house)
    assert sightings(house, besides="mail") == []
    assert len(sightings(house)) >= 3
    assert found("far side", house.far_side()) == []
    rows = [bytes(row.bytes) for row in Envelope.objects.all()]
    rows += [str(vars(row)).encode() for row in Run.objects.all()]
    rows += [str(vars(row)).encode() for row in AdapterCall.objects.all()]
    rows += [bytes(run.snapshot)]
    assert found("rows", b"\n".join(rows)) == []


def test_queue_messages_hold_ids_only_and_log_lines_no_value(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = paid(house)
    sent: list[object] = []
    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setattr(current_app, "send_task", lambda *args, **more: sent.append((args, more)))
    queue.wake(str(run.id))
    run.refresh_from_db()
    named = [str(run.id), run.program_hash, run.length]
    message = {"args": named, "countdown": 0, "retry": False, "queue": "celery"}
    assert sent == [(("pipeline.worker.tasks.drive",), message)]
    caplog.set_level("DEBUG")
    erasure.erase_run(str(run.id), "art17-1-a", "visitor")
    assert found("log", caplog.text.encode()) == []


@pytest.mark.postgres
def test_erasure_leaves_no_value_no_key_and_every_hash(house: House) -> None:
    run = paid(house)
    before, refs = chain(run), [secret.ref for secret in Secret.objects.filter(run=run)]
    wrapped = house.wrapped_keys()
    done = erasure.erase_run(str(run.id), "art17-1-b", "visitor")
    assert done.state == "done"
    assert sightings(house) == []
    assert house.wrapped_keys() == {}
    keys = house.key_store()
    assert not [ref for ref in refs if ref.encode() in keys]
    assert not [ref for ref, key in wrapped.items() if key in keys]
    assert not list((house.folder / "media").iterdir())
    assert not list((house.folder / "mail").iterdir())
    assert not Secret.objects.filter(run=run).exclude(ciphertext=None).exists()
    assert chain(run)[: len(before)] == before
    check_chain(chain(run), run=str(run.id))
    assert kinds(run)[-2:] == ["erasure_requested", "erasure_done"]
    assert set(secret_store.read_all(refs).values()) == {TOMBSTONE}
    invoice = report(run, "x")["invoice"]
    assert isinstance(invoice, dict)
    assert invoice["seller"] == invoice["iban"] == invoice["invoice_number"] == TOMBSTONE
    assert invoice["total_due"] == "648.80"
    assert audit().damage == ()
    run.refresh_from_db()
    assert run.erased_ms is not None
    assert api.check(str(run.id)) is None


def test_certificate_names_what_was_done_and_stays_the_same(house: House) -> None:
    run = paid(house)
    other = house.run(workspace=run.workspace)
    before = chain(other)
    head = run.head
    living = Secret.objects.filter(run=run, erased_ms=None)
    refs = {secret.ref for secret in living}
    done = erasure.erase_run(str(run.id), "art17-1-c", "operator")
    assert done.refs == tuple(sorted(refs))
    files = {"media files": 1, "mail files": 1}
    assert done.places == {"keys": len(refs), "ciphertexts": len(refs) - 1, **files}
    words = done.to_json()
    assert (done.orderer, words["ground"]) == (
        "operator",
        "Art. 17(1)(c) GDPR: objection to the processing",
    )
    labels = {label for label, _ in done.values}
    assert labels >= {"Seller", "IBAN", "Uploaded document", "Invoice number"}
    assert {ref for _, ref in done.values} == refs
    assert "Its application gives no reason." not in done.kept_because.values()
    assert (done.head_before, done.code, done.reason) == (head, run.code, "art17-1-c")
    last = Envelope.objects.get(run=str(run.id), kind="erasure_done")
    sealed = (last.hash, last.seq, last.n, last.hash)
    assert (done.hash, done.seq, done.n, done.head_after) == sealed
    assert found("certificate", str(done.to_json()).encode()) == []
    late = house.folder / "mail" / f"{run.id}.eml"
    late.write_text(CANARIES["seller"])  # by a worker that slept over the erasure
    again = erasure.erase_run(str(run.id), "art17-1-a", "visitor")
    assert again.to_json() == done.to_json() == erasure.newest(str(run.id)).to_json()  # type: ignore[union-attr]
    assert (kinds(run).count("erasure_done"), late.exists()) == (1, False)
    assert chain(other) == before
    theirs = Secret.objects.filter(run=other, erased_ms=None).values_list("ref", flat=True)
    assert TOMBSTONE not in secret_store.read_all([*theirs]).values()


def test_secret_reads_as_erased_from_the_request_on(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = paid(house)
    seller = Secret.objects.get(run=run, slot="seller").ref
    monkeypatch.setattr(crypto_shred, "destroy", crash)
    with pytest.raises(KeyboardInterrupt):
        erasure.erase_run(str(run.id), "art17-1-a", "visitor")
    assert seller in house.wrapped_keys()
    assert secret_store.text(seller) == TOMBSTONE


def fail_once(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The first removal of a file of this folder fails."""
    real, left = Path.unlink, [1]

    def unlink(self: Path, missing_ok: bool = False) -> None:
        if self.parent.name == name and left:
            left.pop()
            raise PermissionError(13, "not permitted")
        real(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)


@pytest.mark.parametrize("folder", ["media", "mail"])
def test_file_that_will_not_go_leaves_the_erasure_incomplete_until_it_does(
    house: House, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    run = paid(house)
    fail_once(monkeypatch, folder)
    first = erasure.erase_run(str(run.id), "art17-1-a", "visitor")
    assert first.state == "incomplete"
    assert "not permitted" in str(first.places[f"{folder} files"])
    assert first.progress == "3 of 4 places"
    assert kinds(run)[-1] == "erasure_requested"
    again = erasure.erase_run(str(run.id), "art17-1-a", "visitor")
    assert (again.state, again.refs) == ("done", first.refs)
    assert kinds(run)[-2:] == ["erasure_requested", "erasure_done"]
    assert sightings(house) == []


@pytest.mark.parametrize("name", ["../outside.txt", "outside.txt"])
def test_row_that_names_another_file_erases_none_but_its_own(house: House, name: str) -> None:
    run = paid(house)
    document = Secret.objects.get(run=run, slot="document")
    outside = secret_store.media() / name
    outside.write_text("kept")
    Secret.objects.filter(ref=document.ref).update(file=name)
    first = erasure.erase_run(str(run.id), "art17-1-a", "visitor")
    assert (first.state, outside.read_text()) == ("incomplete", "kept")
    assert "run fsck" in str(first.places["media files"])
    Secret.objects.filter(ref=document.ref).update(file=document.file)
    assert erasure.erase_run(str(run.id), "art17-1-a", "visitor").state == "done"
    assert not (secret_store.media() / document.file).exists()


@on_sqlite_alone
def test_reader_that_holds_the_write_ahead_log_leaves_the_erasure_incomplete(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crypto_shred, "WAL_TRIES", 2)
    run = paid(house)
    with closing(sqlite3.connect(house.folder / "app.sqlite3")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM pipeline_envelope").fetchone()
        first = erasure.erase_run(str(run.id), "art17-1-a", "visitor")
        assert (first.state, kinds(run)[-1]) == ("incomplete", "erasure_requested")
        assert "busy" in str(first.places["write-ahead log"])
        reader.execute("ROLLBACK")
    assert erasure.erase_run(str(run.id), "art17-1-a", "visitor").state == "done"


def test_interrupted_erasure_of_one_secret_does_not_stand_for_the_rest(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = paid(house)
    seller = Secret.objects.get(run=run, slot="seller").ref
    fail_once(monkeypatch, "mail")
    assert erasure.erase_ref(seller, "art17-1-a", "visitor").state == "incomplete"
    done = erasure.erase_run(str(run.id), "art17-1-b", "visitor")
    assert (done.state, done.reason) == ("done", "art17-1-b")
    assert seller not in done.refs
    assert kinds(run).count("erasure_done") == 2
    assert sightings(house) == []
    assert audit().damage == ()


def test_one_secret_is_erased_and_the_others_stay(house: House) -> None:
    run = paid(house)
    email = Secret.objects.get(run=run, slot="advice_to").ref
    seller = Secret.objects.get(run=run, slot="seller").ref
    first = erasure.erase_ref(email, "art17-1-a", "visitor")
    assert email not in house.wrapped_keys()
    assert seller in house.wrapped_keys()
    assert (secret_store.text(email), secret_store.text(seller)) == (TOMBSTONE, CANARIES["seller"])
    assert not list((house.folder / "mail").iterdir())
    second = erasure.erase_ref(seller, "art17-1-a", "visitor")
    assert erasure.erase_ref(email, "art17-1-a", "visitor").to_json() == first.to_json()
    assert erasure.erase_ref(seller, "art17-1-a", "visitor").to_json() == second.to_json()
    assert audit().damage == ()


def test_run_under_way_is_refused_and_a_waiting_one_is_stopped_first(house: House) -> None:
    running = house.started()
    with pytest.raises(ErasureRefusedError, match="stop it first"):
        erasure.erase_run(str(running.id), "art17-1-a", "visitor")
    assert "erasure_requested" not in kinds(running)
    held = house.run(path("over_limit").read_bytes())
    assert erasure.erase_run(str(held.id), "art17-1-a", "visitor").state == "done"
    assert kinds(held)[-3:] == ["terminal", "erasure_requested", "erasure_done"]
    assert bodies(held)[-3]["outcome"] == "killed"


def test_reason_must_be_a_ground_of_the_article(house: House) -> None:
    run = house.new()
    for reason in ("", "art17-1-g", "because", "art17-1-a "):
        with pytest.raises(ErasureRefusedError, match="PII-010"):
            erasure.erase_run(str(run.id), reason, "visitor")


def test_damaged_run_can_be_erased_too(house: House) -> None:
    run = paid(house)
    sql(("UPDATE pipeline_run SET head = 'x' WHERE id = %s", (run.id.hex,)))
    assert erasure.erase_run(str(run.id), "art17-1-a", "visitor").state == "done"
    assert kinds(run)[-3:] == ["integrity", "erasure_requested", "erasure_done"]
    assert sightings(house) == []


def test_advice_that_a_worker_writes_late_goes(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.started(canary_invoice(), file_name=CANARIES["file"])
    real = seal.advice_file
    slept: list[str] = []

    def asleep(run_id: str) -> object:
        if not slept:
            slept.append(run_id)
            Run.objects.filter(id=run.id).update(until_ms=1)
            house.drive(run)
            assert run.state == life.COMPLETED
            assert erasure.erase_run(run_id, "art17-1-a", "visitor").state == "done"
        return real(run_id)

    monkeypatch.setattr(seal, "advice_file", asleep)
    house.drive(run)
    assert slept == [str(run.id)]
    assert not real(str(run.id)).exists()
    assert sightings(house) == []
