"""A run of a log that a restore closed: whatever is asked of it is refused, and nothing is done."""

from collections.abc import Callable

import pytest

from engine.models import Absorbed, Envelope, Run, Workspace
from engine.runtime import api, chains
from engine.worker import tasks
from engine.worker.drive import drive, drive_patiently
from nanovm_core.core.messages import Decision
from nanovm_core.errors import RefusedError
from samples import path
from tests.kit.house import House, accepted_run, invoice, kinds, payments, refusal

ASKED: dict[str, Callable[[str], Decision]] = {
    "start": lambda run: api.start(run, "visitor"),
    "pause": lambda run: api.pause(run, "visitor"),
    "resume": lambda run: api.resume(run, "visitor"),
    "step": lambda run: api.step(run, "visitor"),
    "approve": lambda run: api.approve(run, "visitor"),
    "decline": lambda run: api.decline(run, "visitor"),
    "wake": lambda run: api.wake(run, "visitor"),
    "kill": lambda run: api.kill(run, "visitor"),
    "propose": lambda run: api.propose(run, b"{}"),
}


def closed(run: Run) -> Run:
    """The run, whose log another one goes on for."""
    goes_on = chains.create()
    Workspace.objects.filter(id=run.workspace_id).update(successor=goes_on)
    run.refresh_from_db()
    return run


@pytest.fixture(params=["running", "held"])
def run(house: House, request: pytest.FixtureRequest) -> Run:
    """A run that owes its first effect, and one that waits for a person."""
    if request.param == "held":
        return closed(house.run(path("over_limit").read_bytes()))
    return closed(house.started())


def test_every_request_is_refused_and_seals_nothing(run: Run) -> None:
    before = (kinds(run), run.head, Envelope.objects.count())
    for name, ask in ASKED.items():
        counted = sum(Absorbed.objects.filter(run=run).values_list("count", flat=True))
        assert refusal(ask(str(run.id))) == "LOG-009", name
        now = sum(Absorbed.objects.filter(run=run).values_list("count", flat=True))
        assert name == "wake" or now == counted + 1, name
    run.refresh_from_db()
    assert (kinds(run), run.head, Envelope.objects.count()) == before


def test_nobody_drives_it(run: Run) -> None:
    before = kinds(run)
    Run.objects.update(owed_ms=1, deadline_ms=1)
    assert str(run.id) not in tasks.stranded()
    tasks.sweep()
    tasks.deliver(str(run.id), run.program_hash)
    assert drive(str(run.id))
    drive_patiently(str(run.id))
    assert api.begin_effect(str(run.id)) is None
    assert kinds(run) == before
    assert payments(run) == []


def test_no_run_begins_in_its_log(run: Run) -> None:
    with pytest.raises(RefusedError, match="LOG-009"):
        accepted_run(run.workspace, invoice(), "invoice.pdf")
    with pytest.raises(RefusedError, match="LOG-009"):
        chains.seal(run.workspace_id, "budget", {}, actor="operator")
