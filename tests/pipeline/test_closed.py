"""A run of a log that a restore closed: whatever is asked of it is refused, and nothing is done."""

from collections.abc import Callable

import pytest

from nanovm_core.errors import RefusedError
from nanovm_core.messages import Decision
from pipeline import intake, runtime, tasks, workspaces
from pipeline.drive import drive, drive_patiently
from pipeline.models import Absorbed, Envelope, Outbox, Run, Workspace
from samples import path
from tests.pipeline.house import House, invoice, kinds, payments

ASKED: dict[str, Callable[[str], Decision]] = {
    "start": lambda run: runtime.start(run, "visitor"),
    "pause": lambda run: runtime.pause(run, "visitor"),
    "resume": lambda run: runtime.resume(run, "visitor"),
    "step": lambda run: runtime.step(run, "visitor"),
    "approve": lambda run: runtime.approve(run, "visitor"),
    "decline": lambda run: runtime.decline(run, "visitor"),
    "wake": lambda run: runtime.wake(run, "visitor"),
    "kill": lambda run: runtime.kill(run, "visitor"),
    "propose": lambda run: runtime.propose(run, b"{}"),
}


def closed(run: Run) -> Run:
    """The run, whose log another one goes on for."""
    goes_on = workspaces.create()
    Workspace.objects.filter(id=run.workspace_id).update(successor=goes_on)
    run.refresh_from_db()
    return run


@pytest.fixture(params=["running", "held"])
def run(house: House, request: pytest.FixtureRequest) -> Run:
    """A run that owes its first effect, and one that waits for a person."""
    if request.param == "held":
        return closed(house.run(path("over_limit").read_bytes()))
    begun = house.new()
    runtime.start(str(begun.id), "visitor")
    return closed(begun)


@pytest.mark.parametrize("name", sorted(ASKED))
def test_every_request_is_refused_and_seals_nothing(run: Run, name: str) -> None:
    before = (kinds(run), run.head, Envelope.objects.count())
    refusal = ASKED[name](str(run.id)).refusal
    assert refusal is not None
    assert refusal.code == "LOG-009"
    run.refresh_from_db()
    assert (kinds(run), run.head, Envelope.objects.count()) == before
    assert name == "wake" or Absorbed.objects.filter(run=run).exists()


def test_nobody_drives_it(run: Run) -> None:
    before = kinds(run)
    Outbox.objects.update(intent_ms=1)
    Run.objects.update(deadline_ms=1)
    assert str(run.id) not in tasks.stranded()
    tasks.sweep()
    tasks.deliver(str(run.id), run.program_hash)
    assert drive(str(run.id))
    drive_patiently(str(run.id))
    assert runtime.begin_effect(str(run.id)) is None
    assert kinds(run) == before
    assert payments(run) == []


def test_no_run_begins_in_its_log(run: Run) -> None:
    with pytest.raises(RefusedError, match="LOG-009"):
        intake.create_run(run.workspace, invoice(), "invoice.pdf")
    with pytest.raises(RefusedError, match="LOG-009"):
        workspaces.seal(Workspace.objects.get(id=run.workspace_id), "budget", {}, actor="operator")
