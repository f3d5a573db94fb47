"""Damage is contained: the run alone, whatever was damaged, as often as one likes."""

import pytest
from django.db import Error, connection, transaction

from nanovm_core.core import lifecycle as life
from nanovm_core.core.envelope import ZERO
from pipeline.models import Envelope, Run
from pipeline.reports import displayed_head
from pipeline.runtime import api
from pipeline.store import records, workspaces
from sabotage.doors import tamper_db
from sabotage.injectors.corrupt_hash import INJECTOR, MOVED
from sabotage.kit.evidence import gather, observe
from sabotage.kit.injector import Fired, InjectionError
from tests.sabotage.runs import at, let_go, now, rows_hash, shoot

pytestmark = pytest.mark.usefixtures("runtime_here")

WHAT = ("bytes", "hash", "snapshot")


@pytest.mark.parametrize("times", [3, pytest.param(20, marks=pytest.mark.soak)])
def test_only_the_damaged_run_fails_however_often(times: int) -> None:
    elsewhere = at("propose").workspace
    shoot(let_go(at("ready", elsewhere)), "tool_injection")
    untouched = rows_hash(elsewhere)
    workspace = workspaces.create()
    for turn in range(times):
        a, b = at("extract", workspace), at("ready", workspace)
        aimed = turn % a.length
        attack = shoot(a, "corrupt_hash", what=WHAT[turn % 3], envelope=str(aimed))
        named = a.length - 1 if WHAT[turn % 3] == "snapshot" else aimed
        assert (attack.verdict, attack.evidence["position"]) == ("DETECTED", named)
        assert now(a).state == life.FAILED
        assert displayed_head(now(a)) == ZERO
        assert let_go(b).state == life.COMPLETED
        assert api.check(str(b.id)) is None
        assert records.verified(now(b)).snapshot.slots["payment_status"] == "succeeded"
        assert attack.evidence["other_runs_quarantined_since"] == 0
    assert rows_hash(elsewhere) == untouched
    assert Run.objects.filter(workspace=workspace, quarantined=True).count() == times


def test_a_driven_run_fails_at_its_next_transition() -> None:
    run = at("running")
    tamper_db.change_envelope(run, 1, "hash", "0" * 64)
    ended = let_go(run)
    assert (ended.state, ended.quarantined) == (life.FAILED, True)
    kinds = Envelope.objects.filter(run=str(run.id)).order_by("n").values_list("kind", flat=True)
    assert list(kinds)[-2:] == ["integrity", "terminal"]


def test_the_triggers_stand_again_after_the_attack() -> None:
    run = at("succeeded")
    attack = shoot(run, "corrupt_hash")
    assert attack.evidence["triggers_dropped_and_restored"] == [
        "pipeline_envelope_no_update",
        "pipeline_envelope_no_delete",
    ]
    change = f"UPDATE {Envelope._meta.db_table} SET kind = 'x' WHERE run = %s"
    with (
        pytest.raises(Error, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(change, [str(run.id)])


def test_a_quarantined_run_is_hit_where_it_is_still_checked() -> None:
    run = at("succeeded")
    first = shoot(run, "corrupt_hash", envelope="2")
    length = now(run).length
    second = shoot(run, "corrupt_hash", envelope="2")
    assert (first.evidence["hit"], second.evidence["hit"]) == (2, length - 1)
    assert "note" not in first.evidence
    assert second.evidence["note"] == MOVED
    assert second.verdict == "DETECTED"
    assert now(run).state == life.COMPLETED


def test_an_envelope_that_is_not_there_is_said_so() -> None:
    run = at("ready")
    before = rows_hash(run.workspace)
    with pytest.raises(InjectionError, match="has the envelopes 0 to 0"):
        shoot(run, "corrupt_hash", envelope="1")
    assert rows_hash(run.workspace) == before


@pytest.mark.parametrize("what", ["bytes", "hash"])
def test_fired_again_and_again_each_damage_is_named_where_it_is(what: str) -> None:
    run = at("extract")
    places = []
    for _ in range(4):
        attack = shoot(now(run), "corrupt_hash", what=what)
        assert (attack.verdict, attack.evidence["position"]) == ("DETECTED", attack.evidence["hit"])
        places.append(attack.evidence["hit"])
    assert len({*places}) == 4  # also where the envelope that names older damage was hit
    assert now(run).state == life.FAILED


def test_damage_that_is_sealed_of_another_place_is_no_detection() -> None:
    run = at("extract")
    before = observe(str(run.id))
    shoot(run, "corrupt_hash", envelope="1")
    found = gather(str(run.id), before)
    facts = {"what": "bytes", "others_quarantined_before": 0}
    verdicts = [
        INJECTOR.assess(found, Fired(facts={**facts, "hit": hit})).verdict for hit in (0, 1, 2)
    ]
    assert verdicts == ["ACCEPTED", "DETECTED", "ACCEPTED"]
