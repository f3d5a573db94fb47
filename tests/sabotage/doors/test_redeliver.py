"""A queue message names the program that its sender believes the run has."""

import pytest

from nanovm_core.core import lifecycle as life
from pipeline.models import AdapterCall, Envelope
from pipeline.worker import tasks
from sabotage.kit.evidence import fields_of
from tests.sabotage.runs import now, owing

pytestmark = pytest.mark.usefixtures("runtime_here")


def test_a_message_of_another_program_drives_no_run_that_owes_a_payment() -> None:
    run = owing("charge")
    length, calls = now(run).length, AdapterCall.objects.filter(run=run).count()
    tasks.deliver(str(run.id), "0" * 64)
    assert (now(run).step, now(run).state) == ("charge", life.ACTIVE)
    assert AdapterCall.objects.filter(run=run).count() == calls
    since = Envelope.objects.filter(run=str(run.id), n__gte=length).order_by("n")
    bodies = [fields_of(bytes(row.bytes)) for row in since]
    assert [(body["kind"], body["rule"]) for body in bodies] == [("refused", "PRG-010")]
    tasks.deliver(str(run.id), run.program_hash)
    assert now(run).state == life.COMPLETED
