"""What a visitor sees after a restore, and while a law keeps a document."""

import pytest
from django.conf import settings

from engine.models import Run, Workspace
from engine.queries.runs import RunHead
from pipeline.register import sample_register
from tests.dashboard.visitor import PAGES, Visitor, by_code, words


@pytest.fixture
def run(visitor: Visitor) -> RunHead:
    """A held run, whose log a restore closed."""
    made = visitor.make("over_limit")
    goes_on = sample_register.new_workspace()
    Workspace.objects.filter(id=made.workspace).update(successor=goes_on)
    return made


def test_the_old_run_can_be_read_and_does_not_go_on(visitor: Visitor, run: RunHead) -> None:
    for path in PAGES:
        visitor.read(path.format(code=run.code))
    answer = visitor.command(run, "approve")
    assert "LOG-009" in answer["Location"]
    page = visitor.read(answer["Location"])
    assert "A restore closed" in words(page) or "closed by a restore" in words(page)
    assert by_code(run.code) == run


def test_a_new_run_begins_in_the_log_that_goes_on(visitor: Visitor, run: RunHead) -> None:
    later = visitor.make(hold=True)
    successor = Workspace.objects.get(id=run.workspace).successor_id
    assert later.workspace == str(successor)
    listed = visitor.read("/runs/")
    assert (run.code in listed, later.code in listed) == (True, True)
    visitor.read(f"/runs/{run.code}/")
    stranger = Visitor()
    stranger.make(hold=True)
    stranger.read(f"/runs/{run.code}/", 404)
    assert run.code not in stranger.read("/runs/")


def test_the_old_run_is_erased_in_the_log_that_goes_on(visitor: Visitor, run: RunHead) -> None:
    assert "recorded in the log that continues it" in words(visitor.read(f"/privacy/{run.code}/"))
    assert visitor.erase(run)["Location"] == f"/privacy/certificates/{run.code}/"
    page = words(visitor.read(f"/privacy/certificates/{run.code}/"))
    successor = Workspace.objects.get(id=run.workspace).successor
    assert successor is not None
    assert f"the log {successor.origin}" in page
    assert "which continues after a restore" in page
    assert Run.objects.get(id=run.id).erased_ms
    assert by_code(run.code).state == run.state


def test_the_page_says_until_when_a_law_keeps_the_document_and_why(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = visitor.make(hold=True)
    monkeypatch.setattr(settings, "NANOVM_RETENTION", 3_650)
    said = words(visitor.read(f"/privacy/{run.code}/"))
    assert "must be kept by law until 203" in said
    assert "3650 days from its receipt (GDPR, Art. 17(3)(b))" in said
    answer = visitor.erase(run)
    assert answer.status_code == 409
    assert "PII-012" in words(answer.content.decode())
    assert Run.objects.get(id=run.id).erased_ms is None
