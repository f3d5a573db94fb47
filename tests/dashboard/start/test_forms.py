"""Making runs: what the form takes, what it refuses, and that it does everything once."""

import html
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from pytest_django.fixtures import Settings

import samples
from dashboard.start.forms import FILES_MAX
from engine.models import Run, Secret
from engine.queries.runs import RunHead
from engine.vault import secret_store
from nanovm_core.core import lifecycle as life
from samples import fresh
from samples.facturx import cross_industry_invoice
from samples.invented import EN16931
from tests.dashboard.visitor import FORM, TRANSFER, Visitor, by_code, seen, words
from tests.kit.clock import DAY_MS, leaping
from tests.kit.house import invoice

pytestmark = pytest.mark.usefixtures("db")

KEY = "0123456789abcdef0123456789abcdef"
MADE_OF = ("document", "file_name", "planted")
HOSTILE = "<img src=x onerror=alert(1)>.pdf"


def opened(run: RunHead, slot: str) -> bytes | None:
    ref = str(run.slots[slot])
    return secret_store.read_bytes([ref])[ref]


def test_samples_are_paid_in_any_year(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    leaping(monkeypatch)(5 * 365 * DAY_MS)
    run = visitor.make("en16931")
    code = visitor.post(f"/runs/{run.code}/again/", {})["Location"].split("/")[2]
    assert (run.label, visitor.driven(code).label) == ("SUCCESS", "SUCCESS")
    assert visitor.post("/attack/gallery/changed_bank_details/").status_code == 303  # it pays one


def test_run_again_is_a_new_run_of_the_same_sample_and_choices(visitor: Visitor) -> None:
    chosen: dict[str, Any] = {"model": "compromised", "proposal": TRANSFER, "pace": "step"}
    first = visitor.make("injected", payment_method="pm_card_chargeDeclined", **chosen)
    form = {"Idempotency-Key": KEY}
    response = visitor.post(f"/runs/{first.code}/again/", form)
    assert visitor.post(f"/runs/{first.code}/again/", form)["Location"] == response["Location"]
    second = visitor.driven(response["Location"].split("/")[2])
    assert first.code != second.code
    assert (second.model, second.stepping, second.label) == ("compromised", True, "PAUSED")
    read = [[opened(run, slot) for slot in MADE_OF] for run in (first, second)]
    drawn = [each.pop(0) or b"" for each in read]
    assert [fresh.name_of(each) for each in drawn] == ["injected", "injected"]
    assert drawn[0] != drawn[1]
    assert read[0] == read[1]
    assert None not in read[0]
    methods = {run.slots["payment_method"] for run in (first, second)}
    assert methods == {"pm_card_chargeDeclined"}


def test_an_advisor_is_chosen_and_a_run_without_one_has_seven_steps(
    visitor: Visitor, settings: Settings
) -> None:
    names = ["none", "heuristic", "asleep", "babbling", "bribed"]
    offered = re.compile(r'name="advisor" value="(\w+)"( checked)?')
    found = offered.findall(visitor.read("/runs/new/"))
    assert found == [(name, " checked" * (name == "none")) for name in names]
    stranger = {**FORM, "sample": "plain", "advisor": "endpoint"}
    assert "endpoint is not one of the available choices" in visitor.refused("/runs/", stranger)
    settings.NANOVM_ADVISOR = {"url": "http://127.0.0.1:1/v1", "name": "tiny", "key": ""}
    assert offered.findall(visitor.read("/runs/new/"))[-1] == ("endpoint", "")
    plain, advised = visitor.make(), visitor.make(advisor="bribed")
    assert ("advise" in plain.steps, "advise" in advised.steps) == (False, True)
    assert (plain.steps_count, advised.steps_count) == (7, 8)
    assert "Step 8 of 8: seal" in words(visitor.read(f"/runs/{advised.code}/steps/8/"))
    visitor.read(f"/runs/{plain.code}/steps/8/", 404)
    assert "Advice:" not in words(visitor.read(f"/runs/{plain.code}/"))
    again = visitor.post(f"/runs/{advised.code}/again/", {})["Location"].split("/")[2]
    assert by_code(again).slots["advisor"] == "bribed"


@pytest.mark.parametrize(
    "sample", ["en16931", pytest.param("multi_page_gbp", marks=pytest.mark.soak)]
)
def test_a_sample_is_paid_at_each_start_and_an_upload_once(visitor: Visitor, sample: str) -> None:
    run = visitor.make(sample)
    for _ in range(2):
        code = visitor.post(f"/runs/{run.code}/again/", {})["Location"].split("/")[2]
        assert visitor.driven(code).label == "SUCCESS"
    paid = visitor.upload("own.pdf", samples.path(sample).read_bytes())
    assert paid.label == "SUCCESS"
    code = visitor.post(f"/runs/{paid.code}/again/", {})["Location"].split("/")[2]
    held = visitor.driven(code)
    assert (held.label, held.held_by) == ("SUSPENDED", "duplicate")
    page = visitor.read(f"/runs/{held.code}/")
    said = "which was paid: the same file Open the earlier run"
    assert said in words(page)
    assert page.count(f'href="/runs/{paid.code}/"') == 1
    assert " once more" in words(page)
    visitor.post(f"/runs/{held.code}/approve/", seen(held))
    assert visitor.driven(held.code).label == "SUCCESS"
    assert said not in words(visitor.read(f"/runs/{held.code}/"))


def test_what_was_erased_cannot_be_run_again(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    assert f'action="/runs/{run.code}/again/"' in visitor.read(f"/runs/{run.code}/")
    visitor.erase(run)
    said = words(visitor.refused(f"/runs/{run.code}/again/"))
    assert f"The document of {run.code} can no longer be read" in said


def test_a_damaged_run_is_run_again_and_one_without_its_document_is_not(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    visitor.fire(run, "corrupt_hash")
    visitor.fire(run, "corrupt_hash")
    assert visitor.post(f"/runs/{run.code}/again/", {}).status_code == 303
    (secret_store.media() / Secret.objects.exclude(file="").get(run_id=run.id).file).unlink()
    assert visitor.post(f"/runs/{run.code}/again/", {}).status_code == 422


def test_a_form_in_another_encoding_is_refused_in_words(owner: Visitor) -> None:
    for charset, status in (("utf-16", 400), ("latin-1", 400), ('"UTF-7"', 400), ("UTF-8", 303)):
        kind = f"application/x-www-form-urlencoded; charset={charset}"
        response = owner.post("/runs/plain/", b"a=b", content_type=kind)
        assert (response.status_code, b"in UTF-8" in response.content) == (status, status == 400)


def test_a_double_click_on_a_command_submits_it_once(owner: Visitor, ready: RunHead) -> None:
    key = {"Idempotency-Key": f"start-{ready.id}-{ready.length}"}
    owner.command(ready, "start", **key)
    length = by_code(ready.code).length
    owner.command(ready, "start", **key)
    assert by_code(ready.code).length == length


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"sample": "../../etc/passwd"}, "Choose a sample or upload a PDF"),
        ({"model": "honest"}, "Select a valid choice"),
        ({"model": "compromised", "proposal": " "}, "Type what the compromised model proposes"),
        ({"model": "compromised", "proposal": "x" * 20_000}, "may have up to 16,384 bytes"),
        ({"model": "compromised", "proposal": "{}\0"}, "Null characters are not allowed"),
        ({"payment_method": "pm_mine"}, "Select a valid choice"),
    ],
)
def test_a_wrong_form_comes_back_with_its_errors(
    visitor: Visitor, form: dict[str, str], says: str
) -> None:
    before = Run.objects.count()
    page = visitor.refused("/runs/", {**FORM, "sample": "plain", **form})
    assert says in words(page)
    assert page.count('<p class="error"') <= 1  # one fault is one sentence
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len({*ids})
    assert Run.objects.count() == before


def test_a_hostile_file_name_is_text(owner: Visitor) -> None:
    run = owner.upload(HOSTILE, b"not a pdf")
    for path in (f"/runs/{run.code}/", "/runs/", "/", f"/privacy/{run.code}/"):
        page = owner.read(path)
        assert "<img" not in page
        assert "onerror=alert" in page  # it is shown, as text


def test_a_hostile_proposal_is_text(owner: Visitor) -> None:
    proposal = TRANSFER.replace("wire_transfer", "<img src=x onerror=alert(1)>")
    run = owner.make("plain", model="compromised", proposal=proposal)
    page = owner.read(f"/runs/{run.code}/")
    assert "<img" not in page
    assert "&lt;img src=x" in page
    assert "<img" not in owner.read(owner.fire(run, "tool_injection", proposal=proposal))


def test_a_key_of_nonsense_is_no_key(visitor: Visitor) -> None:
    before = Run.objects.count()
    for key in ("x" * 500, "\x00", "ü"):
        visitor.make(hold=True, **{"Idempotency-Key": key})
    assert Run.objects.count() == before + 3


def test_a_click_on_a_page_from_before_the_hold_lifts_nothing(
    owner: Visitor, held: RunHead
) -> None:
    shown = re.search(r'name="hold" value="([0-9a-f]{64})" form="act"', owner.read(page_of(held)))
    assert shown
    assert shown[1] == held.hold
    for stale in ("", "0" * 64):
        for name in ("approve", "decline"):
            response = owner.command(held, name, hold=stale)
            assert response["Location"] == f"{page_of(held)}?refused=FSM-016"
            assert "A decision applies only to the hold that was shown" in html.unescape(
                owner.read(response["Location"])
            )
    assert by_code(held.code).label == "SUSPENDED"
    owner.command(held, "approve")
    assert owner.command(held, "approve")["Location"] == f"{page_of(held)}?refused=FSM-002"


def page_of(run: RunHead) -> str:
    return f"/runs/{run.code}/"


def several(*contents: bytes) -> list[SimpleUploadedFile]:
    return [SimpleUploadedFile(f"{n}.pdf", content) for n, content in enumerate(contents)]


def test_each_file_of_a_form_becomes_a_run(visitor: Visitor) -> None:
    xml = cross_industry_invoice(EN16931)
    form = {**FORM, "sample": "", "document": several(invoice(), xml, b"no invoice")}
    response = visitor.post("/runs/", {**form, "Idempotency-Key": KEY})
    assert response["Location"] == "/runs/"
    repeated = {**form, "document": several(b"again"), "Idempotency-Key": KEY}
    assert visitor.post("/runs/", repeated)["Location"] == "/runs/"
    page = visitor.read("/runs/")
    found = {*re.findall(r"/runs/(\w{4}-\w{2})/", page)}
    ended = sorted((visitor.driven(code).reason or ("",))[0] for code in found)
    assert (len(ended), ended[0]) == (3, "DOC-003")
    assert all(f"{n}.pdf" in page for n in range(3))


def test_files_beyond_the_limit_start_nothing(visitor: Visitor) -> None:
    form = {**FORM, "sample": "", "document": several(*[invoice()] * (FILES_MAX + 1))}
    before = Run.objects.count()
    assert f"up to {FILES_MAX} files" in words(visitor.refused("/runs/", form))
    assert Run.objects.count() == before


def test_each_file_counts_as_a_run(visitor: Visitor, settings: Settings) -> None:
    settings.NANOVM_QUOTA_FACTOR = 1
    visitor.make("plain", hold=True)  # from then on it has a workspace, with a quota of its own
    before = Run.objects.count()
    for status in (303, 429):
        form = {**FORM, "sample": "", "document": several(*[b"no invoice"] * FILES_MAX)}
        assert visitor.post("/runs/", form).status_code == status
        assert Run.objects.count() - before == FILES_MAX


def test_a_form_from_before_a_change_says_what_changed_and_decides_nothing(
    owner: Visitor, held: RunHead
) -> None:
    shown = re.search(r'name="terms" value="([^"]+)" form="act"', owner.read(page_of(held)))
    assert shown
    yesterday = shown[1].replace("supplier=", "supplier=0")
    for terms, names in (("", "document.policy.program.supplier"), (yesterday, "supplier")):
        response = owner.command(held, "approve", terms=terms)
        assert response["Location"] == f"{page_of(held)}?refused=POL-025.{names}"
        page = words(owner.read(response["Location"]))
        assert "the supplier's entry in the register." in page.partition("Not done: Changed: ")[2]
        assert "Look at the run again, then approve or decline it anew." in page
    assert by_code(held.code).label == "SUSPENDED"
    assert owner.command(held, "approve", terms=shown[1])["Location"] == page_of(held)
    assert owner.driven(held.code).label == "SUCCESS"


def test_a_late_approval_asks_again_and_the_new_page_can_be_approved(
    owner: Visitor, held: RunHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = seen(held)
    leaping(monkeypatch)(8 * DAY_MS)
    response = owner.post(f"{page_of(held)}approve/", form)
    assert response["Location"] == f"{page_of(held)}?refused=POL-024"
    assert "Not done: The approval came too late." in words(owner.read(response["Location"]))
    assert owner.post(f"{page_of(held)}approve/", form)["Location"].endswith("?refused=FSM-016")
    again = by_code(held.code)
    assert (again.label, again.hold == held.hold) == ("SUSPENDED", False)
    assert owner.command(again, "approve")["Location"] == page_of(held)


def test_a_declined_run_is_no_failure_on_any_page(owner: Visitor, held: RunHead) -> None:
    owner.command(held, "decline")
    run = by_code(held.code)
    assert (run.label, run.state) == ("DECLINED", life.FAILED)
    for page in (page_of(run), "/", "/runs/", f"{page_of(run)}audit/"):
        text = owner.read(page)
        assert "DECLINED" in text or page.endswith("audit/"), page
        marks = ("FAILED</span>", 'data-tone="failed"', 'data-status="failed"', "is-failed")
        assert [each for each in marks if each in text] == [], page
