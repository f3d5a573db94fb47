"""Attacks of the gallery on copies that lack the guards they are aimed at: they get through.

A part of them that a seed draws; ``make sabotage`` and the soak make all of them.
"""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from django.conf import settings

from pipeline.models import Run
from pipeline.store import workspaces
from sabotage.ablation import copies
from sabotage.ablation.copy_process import run_copy
from sabotage.ablation.guards import Claim, claims
from sabotage.fire_scenario import fire_scenario
from sabotage.gallery import SCENARIOS

SEED = "nanovm"
SIZE = 3
SLOW = ("restored_snapshot",)  # several commands, a process each
OURS = tuple(each for each in claims() if each.injector in SCENARIOS)


def sample() -> list[Claim]:
    """Claims on different attacks: the same ones as long as the list is the same."""
    quick = [each for each in OURS if each.injector not in SLOW]
    drawn = sorted(quick, key=lambda each: sha256(f"{SEED}:{each.shows}".encode()).digest())
    first = {each.injector: each for each in reversed(drawn)}
    return [each for each in drawn if first[each.injector] is each][:SIZE]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder in which copies are made."""
    monkeypatch.setattr(settings, "NANOVM_DATA", tmp_path)
    yield tmp_path
    assert not [each for each in (tmp_path / "copies").iterdir() if each.is_dir()]


def test_every_attack_of_the_gallery_names_its_guards() -> None:
    assert {each.injector for each in OURS} == set(SCENARIOS)
    assert len({each.injector for each in sample()}) == SIZE


@pytest.mark.usefixtures("runtime_here", "data", "queued")
def test_a_shot_with_runs_of_its_own_is_made_on_a_copy_as_it_was_fired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner = workspaces.create()
    with monkeypatch.context() as driven_here:
        driven_here.setattr(settings, "REDIS_URL", None)
        shot = fire_scenario(owner, "split_limit", {"agents": "2", "amount_minor": "600000"}, "")
    runs = Run.objects.count()
    copies.ask(shot)
    copies.carry_out(str(shot.id))
    shot.refresh_from_db()
    outcome = shot.unguarded["outcome"]
    assert (shot.integrity, outcome["integrity"], outcome["got_through"]) == (
        "HELD",
        "BREACHED",
        True,
    )
    assert [each["amount_minor"] for each in outcome["evidence"]["paid"]] == [600_000] * 2
    assert (Run.objects.count(), Run.objects.filter(workspace=owner).count()) == (runs, 0)


@pytest.mark.soak
@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("claim", sample(), ids=lambda each: each.injector)
def test_without_its_guards_the_attack_gets_through(claim: Claim) -> None:
    told = run_copy(claim, claim.each[0])
    assert (told["verdict"], told["integrity"]) == ("ACCEPTED", "BREACHED")
    assert told["evidence"]["breaches"]
    assert [each["id"] for each in told["without"]] == list(claim.without)
