"""A worker that slept over the erasure of its run leaves nothing of it in the clear."""

import pytest

from nanovm_core.core import lifecycle as life
from pipeline.models import Lease
from pipeline.privacy import erasure
from pipeline.steps import seal
from tests.pipeline.house import House
from tests.pipeline.privacy.test_erasure import CANARIES, canary_invoice, sightings


def test_advice_written_after_the_erasure_goes(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.started(canary_invoice(), file_name=CANARIES["file"])
    real = seal.advice_file
    slept: list[str] = []

    def asleep(run_id: str) -> object:
        if not slept:
            slept.append(run_id)
            Lease.objects.filter(run=run).update(until_ms=1)
            house.drive(run)
            assert run.state == life.COMPLETED
            assert erasure.erase_run(run_id, "art17-1-a", "visitor").state == "done"
        return real(run_id)

    monkeypatch.setattr(seal, "advice_file", asleep)
    house.drive(run)
    assert slept == [str(run.id)]
    assert not real(str(run.id)).exists()
    assert sightings(house) == []
