"""A document that a law keeps: its erasure is refused until a date, and sealed once a request."""

import pytest
from django.conf import settings

from engine.errors import ErasureRefusedError
from engine.evidence.fsck.audit import audit
from engine.models import Run, Secret
from engine.privacy import erasure, retention
from engine.runtime import api
from engine.vault import secret_store
from nanovm_core.core import lifecycle as life
from samples import path
from tests.engine.privacy.test_erasure import CANARIES, paid, sightings
from tests.kit.house import House, bodies, kinds

DAYS = 3_650


@pytest.fixture
def kept(house: House, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A paid run, where documents are kept for ten years."""
    monkeypatch.setattr(settings, "NANOVM_RETENTION", DAYS)
    return paid(house)


def later(monkeypatch: pytest.MonkeyPatch, at_ms: int) -> None:
    """Let it be this time."""
    monkeypatch.setattr(erasure, "now_ms", lambda: at_ms)
    monkeypatch.setattr(retention, "now_ms", lambda: at_ms)


def refused(run: Run, reason: str = "art17-1-a") -> ErasureRefusedError:
    """The refusal of an erasure of the whole run."""
    with pytest.raises(ErasureRefusedError) as raised:
        erasure.erase_run(str(run.id), reason, "visitor")
    return raised.value


def test_refusal_names_the_date_and_is_sealed_once_a_request(house: House, kept: Run) -> None:
    error = refused(kept)
    until_ms = kept.created_ms + DAYS * 86_400_000
    found = retention.of(str(kept.id))
    assert found is not None
    assert (found.until_ms, found.days) == (until_ms, DAYS)
    assert error.code == "PII-012"
    assert found.until in error.text
    assert "Art. 17(3)(b)" in error.text
    assert refused(kept).text == error.text
    assert kinds(kept)[-1] == "erasure_refused"
    assert kinds(kept).count("erasure_refused") == 1
    refused(kept, "art17-1-b")
    assert kinds(kept).count("erasure_refused") == 2
    sealed = bodies(kept)[-1]
    assert (sealed["rule"], sealed["in"]["reason"]) == ("PII-012", "art17-1-b")
    assert sealed["out"] == {"ground": "art17-3-b", "until_ms": until_ms}
    assert "erasure_requested" not in kinds(kept)
    seller = Secret.objects.get(run=kept, slot="seller")
    assert secret_store.text(seller.ref) == CANARIES["seller"]
    assert audit().damage == ()
    Run.objects.filter(id=kept.id).update(created_ms=1)  # the row's date moves nothing
    done = house.command("erase", "--run", kept.code, "--reason", "art17-1-a")
    assert (done.returncode, done.stdout) == (3, "")
    assert error.text in done.stderr


def test_other_values_of_the_run_may_go(house: House, kept: Run) -> None:
    seller = Secret.objects.get(run=kept, slot="seller").ref
    assert erasure.erase_ref(seller, "art17-1-a", "visitor").state == "done"
    document = Secret.objects.get(run=kept, slot="document").ref
    with pytest.raises(ErasureRefusedError, match="PII-012"):
        erasure.erase_ref(document, "art17-1-a", "visitor")


def test_a_run_that_waits_is_not_stopped_for_a_refused_erasure(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "NANOVM_RETENTION", DAYS)
    held = house.run(path("over_limit").read_bytes())
    refused(held)
    held.refresh_from_db()
    assert held.state == life.APPROVAL
    api.approve(str(held.id), "operator")
    assert house.drive(held).state == life.COMPLETED


def test_at_the_last_millisecond_it_is_kept_and_at_the_next_it_goes(
    house: House, kept: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    until_ms = kept.created_ms + DAYS * 86_400_000
    later(monkeypatch, until_ms - 1)
    refused(kept)
    later(monkeypatch, until_ms)
    assert retention.of(str(kept.id)) is None
    done = erasure.erase_run(str(kept.id), "art17-1-a", "visitor")
    assert (done.state, sightings(house)) == ("done", [])
    later(monkeypatch, until_ms - 1)  # what is erased stays erased
    assert erasure.erase_run(str(kept.id), "art17-1-a", "visitor").to_json() == done.to_json()
