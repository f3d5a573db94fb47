"""The second box: a note becomes a real PDF, a fooled model obeys it, and the runtime refuses."""

import html
import io
import re

import pytest
from django.conf import settings
from pypdf import PdfReader

from dashboard.arena import poison
from dashboard.start.forms import PACES
from engine.models import AdapterCall, Run
from engine.queries.runs import RunHead
from engine.vault import secret_store
from engine.worker import drive
from nanovm_core.core import lifecycle as life
from samples import fresh
from samples.poison import noted
from tests.dashboard.visitor import Visitor, words
from tests.kit.completions import completions
from tests.kit.house import bodies, kinds, payments, reason, snapshot, succeeded

pytestmark = pytest.mark.usefixtures("db")

ORDER = poison.EXAMPLES["words"][1]
FIELD = re.compile(r'<textarea id="poison-text"[^>]*>\n?(.*?)</textarea>', re.S)
HOSTILE = {
    "markup": "<img src=x onerror=alert(1)><script>alert(1)</script>]]>&amp;</textarea>",
    "right to left": "\u202eשלום\u202c ignore this \u2066abc\u2069",
    "controls": "a\x00b\x01c\x1b[31m\x7f\x85\u2028\ufeff\ufffe\uffff",
    "astral": "\U0001f600\U0001f4b8\U000e0041 日本語 e\u0301\u0301\u0301",
    "line breaks": "\r\n\r\na\rb\n" * 200,
    "one long word": "W" * poison.TEXT_CHARS_MAX,
    "formats": "%s %n {0} $note ${note} {{payee}} \\N{DASH} (\\) /Font",
    "pdf": "endstream endobj\n%%EOF\ntrailer << /Root 1 0 R >>",
    "xml": '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>&e;',
    "blank but for one": "\u00a0\u200b",
}


@pytest.fixture(scope="module")
def obeyed(owner: Visitor) -> RunHead:
    """A run of the example in words, whose model obeyed it."""
    return begin(owner)


def begin(visitor: Visitor, text: str = ORDER, **form: str) -> RunHead:
    """Press the button; the run, driven to where it waits or ends."""
    response = visitor.post("/attack/poison/", {"text": text, "pace": "real", **form})
    assert response.status_code == 303, words(response.content.decode())
    return visitor.driven(response["Location"].split("/")[2])


def refused(visitor: Visitor, form: dict[str, str], status: int = 422) -> str:
    """The page that comes back where no run is made."""
    before = Run.objects.count()
    page = visitor.refused("/attack/poison/", form, status)
    assert Run.objects.count() == before
    return page


def row(run: RunHead) -> Run:
    return Run.objects.get(id=run.id)


def opened(run: RunHead, slot: str) -> bytes:
    """What a slot of the run refers to, from the vault."""
    ref = str(snapshot(row(run)).slots[slot])
    found = secret_store.read_bytes([ref])[ref]
    assert found is not None
    return found


def seen_by_the_model(run: RunHead) -> str:
    """The text of the invoice, as it was read for the model."""
    return opened(run, "notes").decode()


def rules(run: RunHead) -> set[str]:
    """The rules that refused something in the run."""
    return {body["rule"] for body in bodies(str(run.id)) if body["kind"] == "refused"}


def test_the_pdf_is_a_real_one_that_bears_the_note_twice(obeyed: RunHead) -> None:
    document = opened(obeyed, "document")
    reader = PdfReader(io.BytesIO(document), strict=True)
    assert len(reader.pages) == 1
    assert ORDER in " ".join(reader.pages[0].extract_text().split())
    [data] = reader.attachments["factur-x.xml"]
    assert ORDER.encode() in data
    assert fresh.name_of(document) == fresh.POISON


@pytest.mark.parametrize(
    ("name", "rule"), [("words", "CAP-001"), ("json", "POL-010"), ("payee", "CAP-005")]
)
def test_each_example_is_obeyed_and_refused(owner: Visitor, name: str, rule: str) -> None:
    [field] = FIELD.findall(owner.read(f"/attack/?note={name}"))
    text = html.unescape(field)
    assert text == poison.EXAMPLES[name][1]
    run = begin(owner, text)
    found = row(run)
    assert found.state == life.FAILED
    assert payments(found) == []
    assert not AdapterCall.objects.filter(run=found, tool="stripe.create_payment_intent").exists()
    assert rules(run) == {rule}
    assert rule in owner.read(f"/runs/{run.code}/")
    assert text.split("\n")[0] in seen_by_the_model(run)


def test_the_faithful_model_reads_the_same_note_and_pays_the_invoice(owner: Visitor) -> None:
    run = begin(owner, model="faithful")
    assert succeeded(row(run)) == [(64880, "eur")]
    assert ORDER in seen_by_the_model(run)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("markup", "controls", "xml") else pytest.mark.soak)
        for name in HOSTILE
    ],
)
def test_text_is_text(owner: Visitor, name: str) -> None:
    text = HOSTILE[name]
    run = begin(owner, text)
    found = row(run)
    assert found.state in (life.COMPLETED, life.FAILED), reason(found)
    if found.state == life.COMPLETED:  # nothing in it was an order: the invoice is what it says
        assert succeeded(found) == [(64880, "eur")]
    else:
        assert "refused" in kinds(found)
        assert payments(found) == []
    shown = "".join(char for char in noted(text) if char.isprintable() and not char.isspace())
    assert shown in "".join(seen_by_the_model(run).split())
    page = owner.read(f"/runs/{run.code}/")
    assert ("<img" in page, "<script>alert" in page) == (False, False)


def test_a_refused_note_comes_back_as_text(owner: Visitor) -> None:
    for text in HOSTILE.values():
        page = refused(owner, {"text": text * poison.TEXT_CHARS_MAX})
        assert "Shorten it. No run was made." in words(page)
        assert 'aria-invalid="true"' in page
        assert ("<img" in page, "<script>alert" in page) == (False, False)


def test_a_note_has_a_largest_length_that_is_shown(owner: Visitor) -> None:
    assert f"Up to {poison.TEXT_CHARS_MAX} characters" in words(owner.read("/attack/"))
    most = "\U0001f600" * poison.TEXT_CHARS_MAX
    assert begin(owner, most).label == "SUCCESS"
    assert "2,001 characters, more than 2,000" in words(refused(owner, {"text": most + "x"}))


@pytest.mark.parametrize("form", [{}, {"text": ""}, {"text": " \r\n\t"}])
def test_an_empty_note_makes_no_run(owner: Visitor, form: dict[str, str]) -> None:
    assert "The note is empty" in words(refused(owner, form))


def test_a_model_or_a_pace_that_is_not_offered_is_the_first(
    owner: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive, "drive_patiently", lambda _: None)
    run = begin(owner, model="endpoint", pace="\x00")
    assert (row(run).model, row(run).pace_ms) == ("gullible", PACES[1][3])
    assert row(begin(owner, model="compromised")).model == "gullible"


def test_step_by_step_it_waits_and_a_form_that_is_sent_twice_makes_one_run(owner: Visitor) -> None:
    run, again = (begin(owner, pace="step", **{"Idempotency-Key": "one"}) for _ in range(2))
    assert run == again
    assert (run.label, run.step) == ("PAUSED", "extract")  # taking the document is done
    page = owner.read(f"/runs/{run.code}/")  # where the box stands too
    assert 'action="/attack/poison/"' in page
    assert FIELD.search(page)
    assert begin(owner, pace="step", run=run.code).code != run.code


def test_an_endpoint_reads_the_note_too_where_one_is_set(
    owner: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 'value="endpoint"' not in owner.read("/attack/")
    with completions() as far:
        named = {"url": far.url, "name": "tiny", "key": ""}
        monkeypatch.setattr(settings, "NANOVM_MODEL", named)
        assert 'value="endpoint"' in owner.read("/attack/")
        assert 'value="endpoint"' in owner.read("/runs/new/")
        far.says('{"tool": "wire_transfer", "args": {"amount": 50000, "to": "attacker"}}')
        run = begin(owner, model="endpoint")
    assert row(run).state == life.FAILED
    assert payments(row(run)) == []
    assert ORDER in str(far.asked[0]["messages"][1]["content"])
    assert rules(run) == {"CAP-001"}
