"""Damage, stored or on its way, is found or refused, and contained in its run."""

import pytest
from django.db import Error, connection, transaction

from engine.evidence import signer
from engine.models import Envelope
from engine.runtime import api
from nanovm_core.core import lifecycle as life
from nanovm_core.core.fsm import moves
from sabotage.injectors.corrupt_hash import INJECTOR, MISSED, MOVED, QUEUE, REWRITTEN
from sabotage.kit.evidence import gather, observe
from sabotage.kit.injector import Fired, InjectionError
from tests.sabotage.runs import at, now, rows_hash, run_hash, shoot

pytestmark = pytest.mark.usefixtures("runtime_here")


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


def test_a_rewritten_record_is_missed_by_its_chain_and_found_under_a_checkpoint() -> None:
    run = at("succeeded")
    early = shoot(run, "corrupt_hash", what=REWRITTEN, envelope="3")
    assert (early.verdict, early.evidence["carrier"]) == ("ACCEPTED", "export")
    assert early.evidence["note"] == MISSED
    signer.checkpoint(run.workspace_id)
    before = run_hash(run)
    for what in (REWRITTEN, "record in flight"):
        late = shoot(run, "corrupt_hash", what=what, envelope="3")
        assert (late.verdict, late.evidence["carrier"]) == ("DETECTED", "bundle")
        assert late.evidence["verifier"].startswith("INVALID")
        assert not late.evidence["verifier_on_the_honest_one"].startswith("INVALID")
        assert late.evidence["expected"] != late.evidence["found"]
        assert late.where.startswith("nanovm_core/verify.py:")
    assert run_hash(run) == before


def test_the_chosen_byte_is_the_one_that_is_altered() -> None:
    run = at("succeeded")
    for envelope, byte in (("0", "1"), ("5", "40"), ("5", "200")):
        attack = shoot(run, "corrupt_hash", what="record in flight", envelope=envelope, byte=byte)
        assert (attack.verdict, attack.evidence["byte"]) == ("DETECTED", int(byte))
    assert api.check(str(run.id)) is None
    attack = shoot(run, "corrupt_hash", what="hash", envelope="2", byte="64")
    assert (attack.verdict, attack.rule, attack.evidence["byte"]) == ("DETECTED", "LOG-001", 64)
    assert attack.evidence["expected"][:63] == attack.evidence["found"][:63]


def test_an_envelope_or_a_byte_that_is_not_there_is_said_so() -> None:
    run = at("ready")
    before = rows_hash(run.workspace)
    with pytest.raises(InjectionError, match="number from 0 to 0"):
        shoot(run, "corrupt_hash", envelope="1")
    for what in ("bytes", "hash", "snapshot", "record in flight", QUEUE):
        with pytest.raises(InjectionError, match="Enter a byte from 1 to"):
            shoot(run, "corrupt_hash", what=what, byte="2000000000")
    assert rows_hash(run.workspace) == before


def test_without_the_hash_in_the_message_an_altered_one_is_taken_for_a_wake_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(moves, "expect_program", lambda now, named: None)
    attack = shoot(at("charge"), "corrupt_hash", what=QUEUE)
    assert (attack.verdict, attack.rule) == ("IGNORED", "FSM-011")
