"""A workspace that nobody uses is erased like any other, sealed, and no run under way with it."""

from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings

from engine.evidence.fsck.audit import audit
from engine.management import schema
from engine.models import Run
from engine.privacy import expiry
from engine.runtime import chains
from pipeline.models import Supplier
from pipeline.register import suppliers
from pipeline.register.details import Details
from samples import path
from tests.kit.clock import Leap
from tests.kit.house import House, bodies, kinds

DAYS = 90


class Later:
    """The time as expiry sees it, counted from the last change of a workspace."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch = patch

    def __call__(self, run: Run, days: int, ms: int = 0) -> None:
        last = expiry.of(run.workspace_id)
        assert last is not None
        at_ms = last.at_ms + (days - DAYS) * expiry.DAY_MS + ms
        self.patch.setattr(expiry, "now_ms", lambda: at_ms)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Lets days pass, where a workspace expires after ninety."""
    monkeypatch.setattr(settings, "NANOVM_EXPIRE_DAYS", DAYS)
    return Later(monkeypatch)


def is_erased(run: Run) -> bool:
    run.refresh_from_db()
    return run.erased_ms is not None


def by_expiry(run: Run) -> list[Any]:
    return [each["kind"] for each in bodies(run) if each["actor"] == expiry.ACTOR]


def test_what_is_over_is_erased_and_sealed_and_a_run_under_way_is_not(
    house: House, later: Later
) -> None:
    paid = house.run()
    here: dict[str, Any] = {"workspace": paid.workspace}
    held = house.run(path("over_limit").read_bytes(), **here)
    running = house.started(**here)
    [own] = suppliers.register(paid.workspace_id, [Details(name="Somebody")], actor="visitor")
    later(paid, DAYS, -1)
    assert expiry.erase_unused() == 0
    later(paid, DAYS)
    assert expiry.erase_unused() >= 3
    assert [is_erased(each) for each in (paid, held, running)] == [True, True, False]
    assert kinds(held)[-3:] == ["terminal", "erasure_requested", "erasure_done"]
    assert by_expiry(paid) == ["erasure_requested", "erasure_done"]
    assert kinds(running)[-1] not in ("terminal", "erasure_requested")
    assert Supplier.objects.get(id=own.row.id).state == "erased"
    assert audit().damage == ()
    assert expiry.erase_unused() == 0


def test_so_many_are_erased_at_once_and_the_rest_waits_no_longer(
    house: House, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "ERASED_MAX", 1)
    held = house.run(path("over_limit").read_bytes())
    paid = house.run(workspace=held.workspace)
    Supplier.objects.filter(workspace=paid.workspace_id).update(is_sample=True)
    later(paid, DAYS)
    assert expiry.erase_unused() == 1
    assert [is_erased(each) for each in (held, paid)] == [True, False]
    assert expiry.erase_unused() == 1  # its own erasures are no use of the workspace
    assert is_erased(paid)


def test_an_upgrade_is_no_use_of_a_workspace(
    house: House, later: Later, leap: Leap, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = chains.create()
    schema.migrate()
    before = expiry.of(workspace.id)
    monkeypatch.setattr(schema, "SCHEMA", schema.SCHEMA + 1)
    leap(expiry.DAY_MS)
    schema.migrate()
    assert [each["kind"] for each in bodies("log")][-1] == "upgraded"
    assert expiry.of(workspace.id) == before


def test_a_change_keeps_a_workspace_and_a_law_its_documents(
    house: House, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.run()
    Supplier.objects.filter(workspace=run.workspace_id).update(is_sample=True)
    later(run, DAYS)
    again = house.new(workspace=run.workspace)  # some milliseconds later
    assert expiry.erase_unused() == 0
    assert not by_expiry(run)
    Run.objects.filter(id=again.id).update(erased_ms=1)
    monkeypatch.setattr(settings, "NANOVM_RETENTION", 10 * DAYS)
    later(again, DAYS)
    assert expiry.erase_unused() == 0
    assert by_expiry(run) == ["erasure_refused"]


def test_the_end_is_announced_a_week_before(house: House, later: Later) -> None:
    run = house.new()
    for ms, near in ((-1, False), (0, True)):
        later(run, DAYS - 7, ms)
        found = expiry.of(run.workspace_id)
        assert found is not None
        assert (found.is_near, found.days) == (near, DAYS)
        assert not replace(found, days=13).is_near  # of which half is shorter than a week


def test_nothing_expires_where_the_setting_says_never(
    house: House, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.run()
    later(run, 10 * DAYS)
    monkeypatch.setattr(settings, "NANOVM_EXPIRE_DAYS", 0)
    assert (expiry.erase_unused(), expiry.of(run.workspace_id)) == (0, None)
