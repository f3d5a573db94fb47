"""One invoice in five layouts, submitted many times at once: paid once, held ever after."""

from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from django.db import connection, connections

from engine.models import Run, Workspace
from engine.runtime import api, chains
from engine.worker.drive import drive_patiently
from nanovm_core.core import lifecycle as life
from pipeline.models import Bill
from pipeline.register import suppliers
from pipeline.register.details import Details
from samples.generated.layouts import LAYOUTS
from samples.generated.pen import A4, Pen
from samples.generated.sheet import Sheet, sheet
from tests.kit.house import House, payments, snapshot, succeeded
from tests.kit.reading import read_here

SHOWN = ("columns", "stacked", "grid", "box_left", "letter")
SEED = 12  # of the texts: an English invoice in euros
AT_ONCE = 8  # threads, each as a worker


def drawn(layout: str, made: Sheet) -> bytes:
    pen = Pen(A4, "Helvetica", "whole")
    LAYOUTS[layout](pen, made, Random(SEED))  # noqa: S311
    return pen.done()


def driven(run: Run) -> None:
    try:
        drive_patiently(str(run.id))
    finally:
        connections.close_all()


@pytest.mark.parametrize("count", [15, pytest.param(200, marks=pytest.mark.soak)])
def test_one_invoice_in_five_layouts_at_once_is_paid_once(house: House, count: int) -> None:
    made = sheet(Random(SEED), False, "", False)  # noqa: S311
    documents = [drawn(layout, made) for layout in SHOWN]
    assert {read_here(each).fields.invoice_number for each in documents} == {made.number}
    log: Workspace = chains.create()
    known = Details(name=made.seller.name, iban=made.iban)
    suppliers.register(log.id, [known], actor="visitor")
    runs = [
        house.new(documents[place % len(documents)], workspace=log, knows=False)
        for place in range(count)
    ]
    for run in runs:
        api.start(str(run.id), "visitor")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(driven, run) for run in runs]:
            done.result()
    ended = [snapshot(run) for run in runs]
    (paid,) = [now.run for now in ended if now.state == life.COMPLETED]
    held = [now for now in ended if now.held_by == "duplicate"]
    assert len(held) == count - 1
    assert {str(now.slots["duplicate_of"]) for now in held} == {paid}
    assert {now.slots["duplicate_by"] for now in held} == {"document", "number"}
    assert sum(len(payments(run)) for run in runs) == 1
    assert len(succeeded(Run.objects.get(id=paid))) == 1
    assert Bill.objects.filter(duplicate_of=None).count() == 1
    assert connection.vendor in ("sqlite", "postgresql")
