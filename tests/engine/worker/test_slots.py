"""Slots: how many documents are read at once, of one address, of one workspace, and of all."""

from collections.abc import Sequence

import pytest

from engine.models import Workspace
from engine.runtime import api
from engine.runtime.decide import BegunEffect
from engine.store import leases, turns
from nanovm_core.core.events import EffectDone
from tests.engine.worker.test_turns import named, taken
from tests.kit.clock import Leap, stopped
from tests.kit.house import House, known_workspace


@pytest.fixture
def tick(monkeypatch: pytest.MonkeyPatch, house: House) -> Leap:
    """The house, in which time stands still until a test moves it on."""
    return stopped(monkeypatch)


def answered_as_received(work: BegunEffect) -> BegunEffect | None:
    """The effect that follows the first step of an invoice, where it may begin."""
    event = EffectDone(key=work.effect.key, out={"size_bytes": 1_000})
    return api.answer(work, event, (), "").work


def placed(place: int) -> Workspace:
    """A workspace whose last form came from there."""
    workspace = known_workspace()
    turns.comes_from(workspace.id, place)
    return workspace


@pytest.mark.postgres
@pytest.mark.parametrize("places", [(7,) * 4, (None,) * 4])
def test_workspaces_of_one_address_share_the_slots_of_one_visitor(
    house: House, tick: Leap, places: Sequence[int | None]
) -> None:
    """Each has one until a run of it has ended; commands of this machine count as one visitor."""
    several = [known_workspace() if each is None else placed(each) for each in places]
    runs = [house.started(workspace=each) for each in several]
    work = [taken(tick) for _ in several[:3]]
    reading = [answered_as_received(each) for each in work]
    assert [each is not None for each in reading] == [True, True, False]
    other = house.started(workspace=placed(8))
    lone = next(each for _ in runs if (each := taken(tick)).run.id == other.id)
    assert answered_as_received(lone) is not None
    begun = reading[0]
    assert begun is not None
    leases.release(str(begun.run.id), begun.holder)
    assert api.take_turn(0).run is not None


@pytest.mark.postgres
def test_a_workspace_that_finished_no_document_has_one_slot(house: House, tick: Leap) -> None:
    workspace = placed(7)
    runs = [house.started(workspace=workspace) for _ in range(2)]
    work = [taken(tick) for _ in runs]
    reading = [answered_as_received(each) for each in work]
    assert [each is not None for each in reading] == [True, False]
    assert turns.next_run() is None
    api.kill(str(house.started(workspace=workspace).id), "operator")  # one has ended
    assert turns.next_run() == str(work[1].run.id)


def test_documents_are_read_in_slots_of_which_one_is_left_to_the_others(
    house: House, tick: Leap
) -> None:
    workspace = placed(1)
    api.kill(str(house.started(workspace=workspace).id), "operator")  # one that has ended
    runs = [house.started(workspace=workspace) for _ in range(3)]
    work = [taken(tick) for _ in runs]
    reading = [answered_as_received(each) for each in work]
    assert [each is not None for each in reading] == [True, True, False]
    assert api.take_turn(0).run is None  # its next document waits for a slot
    other = house.started(workspace=placed(2))
    lone = taken(tick)
    assert named([lone]) == [str(other.id)]
    assert answered_as_received(lone) is not None
    third = house.started(workspace=placed(3))
    assert answered_as_received(taken(tick)) is None  # all slots are taken
    begun = reading[0]
    assert begun is not None
    leases.release(str(begun.run.id), begun.holder)
    assert api.take_turn(0).run in {third.name, runs[2].name}
