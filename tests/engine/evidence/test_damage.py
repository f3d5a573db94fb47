"""Damage behind the application's back: found, named, contained; other runs go on."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from engine.evidence import bundles, signer
from engine.evidence.fsck.audit import audit
from engine.models import Run, Terms
from engine.queries import evidence, runs
from engine.runtime import api, chains
from nanovm_core import verify
from nanovm_core.core import lifecycle as life
from nanovm_core.core.canonical import encode
from nanovm_core.core.envelope import (
    ZERO,
    canonical_hash,
    decode_snapshot,
    encode_snapshot,
    snapshot_hash,
)
from pipeline.application import INVOICES
from pipeline.reports import report
from tests import postgres
from tests.kit.house import House, bodies, invoice, kinds, payments, reason, sql, succeeded

Statement = tuple[str, Sequence[object]]
CHANGED = b'{"v":"nanovm-envelope/2"}'


def envelope(run: Run, change: str, *values: object, n: int = 2) -> Statement:
    return f"UPDATE pipeline_envelope {change} WHERE run = %s AND n = %s", (*values, str(run.id), n)


def row(run: Run, column: str, value: object) -> Statement:
    return f"UPDATE pipeline_run SET {column} = %s WHERE id = %s", (value, run.id.hex)


BESIDE = "WHERE digest = (SELECT terms_id FROM pipeline_run WHERE id = %s)"


def terms(run: Run, column: str, value: object) -> Statement:
    """A change of what lies beside the run, and all that began like it."""
    return f"UPDATE pipeline_terms SET {column} = %s {BESIDE}", (value, run.id.hex)


def drop(run: Run, first: int, last: int) -> Statement:
    where = "WHERE run = %s AND n BETWEEN %s AND %s"
    return f"DELETE FROM pipeline_envelope {where}", (str(run.id), first, last)


def rehashed(run: Run) -> Statement:
    """Other bytes, with the hash that they have."""
    return envelope(run, "SET bytes = %s, hash = %s", CHANGED, canonical_hash(CHANGED))


DAMAGE: dict[str, tuple[Callable[[Run], Statement], str]] = {
    "bytes": (lambda run: envelope(run, "SET bytes = %s", CHANGED), "LOG-001"),
    "hash": (lambda run: envelope(run, "SET hash = %s", "0" * 64), "LOG-001"),
    "bytes and hash": (rehashed, "LOG-002"),
    "removed": (lambda run: drop(run, 2, 2), "LOG-002"),
    "tail": (lambda run: drop(run, run.length - 1, run.length), "LOG-002"),
    "all": (lambda run: drop(run, 0, run.length), "LOG-002"),
    "snapshot": (lambda run: row(run, "snapshot", b"{}"), "LOG-003"),
    "state": (lambda run: row(run, "state", life.COMPLETED), "LOG-003"),
    "step": (lambda run: row(run, "step", "seal"), "LOG-003"),
    "policy": (lambda run: row(run, "policy_hash", "0" * 64), "LOG-003"),
    "program": (lambda run: row(run, "program_hash", "0" * 64), "LOG-003"),
    "text for bytes": (lambda run: envelope(run, "SET bytes = 'x'"), "LOG-001"),
    "text for a snapshot": (lambda run: row(run, "snapshot", "{}"), "LOG-003"),
    "head": (lambda run: row(run, "head", "0" * 64), "LOG-004"),
    "length up": (lambda run: row(run, "length", 99), "LOG-002"),
    "length down": (lambda run: row(run, "length", 1), "LOG-002"),
}
if not postgres.WANTED:  # whose columns have types: it refuses these
    DAMAGE |= {
        "bytes for text": (lambda run: envelope(run, "SET hash = x'00'"), "LOG-001"),
        "text for a length": (lambda run: row(run, "length", "many"), "LOG-002"),
    }


def live(house: House) -> Run:
    """A run that is paused before its payment."""
    return house.once(House.paused)


def two_paused(house: House) -> tuple[Run, Run]:
    """Two runs of one log that are paused before their payments."""
    run = house.paused()
    return run, house.paused(workspace=run.workspace)


@pytest.mark.parametrize("name", DAMAGE)
def test_live_run_fails_at_its_next_transition_and_others_go_on(house: House, name: str) -> None:
    damage, code = DAMAGE[name]
    run, other = house.once(two_paused)
    sql(damage(run))
    house.resumed(run)
    assert (run.state, reason(run), run.quarantined) == (life.FAILED, code, True)
    assert run.shown_head == ZERO
    assert report(run, "x")["head"] == ZERO
    assert kinds(run)[-2:] == ["integrity", "terminal"]
    integrity = bodies(run)[-2]
    assert (integrity["prev"], integrity["rule"]) == (ZERO, code)
    assert payments(run) == []
    assert house.resumed(other).state == life.COMPLETED
    assert len(succeeded(other)) == 1
    assert api.check(str(other.id)) is None
    assert api.check(str(run.id)) is None


@pytest.mark.parametrize("name", ["bytes", "removed", "snapshot", "head"])
def test_ended_run_keeps_its_state_and_is_quarantined_by_a_check(house: House, name: str) -> None:
    damage, code = DAMAGE[name]
    run = house.once(House.run)
    signer.checkpoint(run.workspace_id)
    sql(damage(run))
    assert audit().exit_status == 1
    assert api.check(str(run.id)) is not None
    run.refresh_from_db()
    assert (run.state, run.quarantined) == (life.COMPLETED, True)
    assert kinds(run)[-1] == "integrity"
    assert bodies(run)[-1]["rule"] == code
    assert api.check(str(run.id)) is None
    assert audit().exit_status == 3
    signer.checkpoint(run.workspace_id)
    assert audit().exit_status == 3


@pytest.mark.postgres
def test_size_of_the_log_is_counted_and_not_believed(house: House) -> None:
    run = live(house)
    sql(("UPDATE pipeline_workspace SET size = 1", ()))
    assert house.resumed(run).state == life.COMPLETED


SHORTER = INVOICES.source().replace(b"proposals_max = 3", b"proposals_max = 9")


@pytest.mark.parametrize("source", [b"", b"not a program", SHORTER, None])
def test_foreign_program_is_refused_and_the_true_copy_put_back(
    house: House, source: bytes | None
) -> None:
    run = live(house)
    gone = (f"DELETE FROM pipeline_terms {BESIDE}", (run.id.hex,))
    sql(gone if source is None else terms(run, "program", source))
    house.resumed(run)
    assert rules(run) == ["PRG-011"]
    assert (run.program_source, run.state) == (INVOICES.source(), life.COMPLETED)


@pytest.mark.postgres
def test_a_program_that_runs_share_is_refused_by_each_until_one_puts_it_back(house: House) -> None:
    first, second = two_paused(house)
    sql(terms(first, "program", SHORTER))
    made = house.paused(workspace=first.workspace)  # stores nothing over what is there
    assert [rules(each) for each in (first, second, made)] == [[], [], ["PRG-011"]]
    assert Terms.objects.get().program == INVOICES.source()
    sql(terms(first, "program", SHORTER), row(second, "terms_id", ZERO))
    for each in (first, second):
        assert house.resumed(each).state == life.COMPLETED
        assert rules(each) == ["PRG-011"]
    assert {bytes(each.program) for each in Terms.objects.all()} == {INVOICES.source()}


def rules(run: Run) -> list[object]:
    """The rules by which something was refused to a run."""
    return [body["rule"] for body in bodies(run) if body["kind"] == "refused"]


def test_a_changed_word_on_what_is_owed_moves_no_other_money(house: House) -> None:
    run = live(house)
    api.resume(str(run.id), "visitor")
    sql(("UPDATE pipeline_run SET owed_key = 'f', owed_tool = 'wire_transfer', begun_ms = 1", ()))
    house.drive(run)
    assert succeeded(run) == [(12_000, "eur")]


def test_changed_ciphertext_fails_the_step_that_needs_it(house: House) -> None:
    run = live(house)
    sql(("UPDATE pipeline_secret SET ciphertext = %s WHERE slot = 'advice_body'", (b"x" * 80,)))
    house.resumed(run)
    assert reason(run) in ("", "PII-002")
    report_ = audit()
    assert ([each.code for each in report_.damage], report_.exit_status) == (["PII-002"], 1)


def forged_last(run: Run, body: dict[str, object]) -> Statement:
    """Other bytes in the last envelope, with the hash that they have."""
    data = encode(body)
    change = "SET bytes = %s, hash = %s"
    return envelope(run, change, data, canonical_hash(data), n=run.length - 1)


MALFORMED = [
    {"kind": "result", "state": {}, "step": "x"},
    {"kind": "result", "secrets": [{}], "n": "three"},
    {"kind": "erasure_done", "in": {"refs": 7}},
    {"kind": "integrity", "at": "here", "state": [], "secrets": {"ref": 1}},
]


@pytest.mark.parametrize("body", MALFORMED, ids=str)
def test_bytes_of_any_shape_are_damage_and_never_an_accident(
    house: House, body: dict[str, object]
) -> None:
    run, other = house.once(two_paused)
    sql(forged_last(run, body))
    assert audit().exit_status == 1
    api.check(str(run.id))
    run.refresh_from_db()
    assert (run.state, run.quarantined) == (life.FAILED, True)
    assert audit().exit_status == 3
    assert house.resumed(other).state == life.COMPLETED


def test_live_run_is_not_made_paid_by_a_forged_last_envelope(house: House) -> None:
    run = live(house)
    forged = decode_snapshot(bytes(run.snapshot))._replace(
        state=life.COMPLETED,
        owed=None,
        slots={"payment_status": "succeeded", "amount_minor": 12_345, "currency": "EUR"},
    )
    data = encode_snapshot(forged)
    body = {**bodies(run)[-1], "snapshot": snapshot_hash(data)}
    sql(
        envelope(run, "SET bytes = %s", encode(body), n=run.length - 1),
        row(run, "snapshot", data),
        row(run, "state", life.COMPLETED),
    )
    api.check(str(run.id))
    run.refresh_from_db()
    assert (run.state, report(run, "x")["decision"]) == (life.FAILED, "rejected")


@pytest.mark.postgres
def test_row_far_beyond_the_log_stops_no_other_run(house: House) -> None:
    run, foreign = live(house), str(house.new(workspace=chains.create()).id)
    moved = f"{run.name[:7]}-{run.name[7]}{run.name[9:]}"  # no chain has this name
    columns = "workspace_id, seq, run, n, bytes, hash, kind"
    insert = f"INSERT INTO pipeline_envelope ({columns}) VALUES (%s, %s, %s, 0, %s, '', 'x')"
    rows = {"x": 2**63 - 1, "y": -1, "agent:Payer": 2**53 - 1, foreign: 2**53 - 2, moved: 2**53 - 3}
    sql(*((insert, (run.workspace_id.hex, seq, name, b"{}")) for name, seq in rows.items()))
    assert house.resumed(run).state == life.COMPLETED
    strays = {each.run for each in audit().damage if "does not exist" in each.text}
    assert strays - {"x", "y"} == {"agent:Payer", foreign, moved}


def test_exchanged_policy_and_mark_of_quarantine_are_damage(house: House) -> None:
    run = house.once(House.run)
    sql(terms(run, "policy", b"v = 1"))
    assert audit().exit_status == 1
    sql(terms(run, "policy", run.policy_source), row(run, "quarantined", True))
    assert audit().exit_status == 1
    sql(row(run, "quarantined", False), row(run, "terms_id", ZERO))
    assert {each.code for each in audit().damage} == {"PRG-011"}


SPREAD = ("all", "tail")  # of which nothing is left to damage
CHANGES = ("bytes = x'7b7d'", f"hash = '{ZERO}'", "kind = 'terminal'", "bytes = x'00'")


def places(run: Run) -> list[Statement]:
    """Changes of what is stored of a run, each in another place."""
    of_run = [damage(run) for name, (damage, _) in DAMAGE.items() if name not in SPREAD]
    each_one = [envelope(run, f"SET {CHANGES[n % 4]}", n=n) for n in range(12)]
    leaf = "SELECT seq FROM pipeline_envelope WHERE run = %s AND n = 5"
    node = f"UPDATE pipeline_node SET hash = x'00' WHERE level = 0 AND \"index\" = ({leaf})"
    return [*of_run, *each_one, row(run, "terms_id", ZERO), drop(run, 12, 12), (node, (run.name,))]


def test_twenty_damaged_places_of_one_run_stop_no_other(house: House, tmp_path: Path) -> None:
    bad = house.once(House.paused)
    log, before = bad.workspace, house.run(invoice("Total  EUR 80.00"), workspace=bad.workspace)
    other = house.paused("charge", invoice("Total  EUR 95.00"), workspace=log)
    signer.checkpoint(log.id)
    damage = places(bad)
    assert len(damage) > 20
    for each in damage:
        sql(each)
        api.check(str(bad.id))  # found and contained again and again
    assert house.resumed(bad).quarantined
    assert (bad.state in life.TERMINAL, bad.shown_head, succeeded(bad)) == (True, ZERO, [])
    assert house.resumed(other).state == life.COMPLETED
    after = house.run(invoice("Total  EUR 70.00"), workspace=log)
    signer.checkpoint(log.id)
    for run, amount in ((before, 8_000), (other, 9_500), (after, 7_000)):
        assert succeeded(run) == [(amount, "eur")]
        assert (api.check(str(run.id)), reason(run)) == (None, "")
        holds(run, tmp_path)
    assert audit().exit_status != 0
    assert {each.run for each in audit().damage if not each.explained} <= {str(bad.id), "log"}


def holds(run: Run, folder: Path) -> None:
    """Page, bundle and receipt of a run hold, for whoever kept the key."""
    key = signer.verifiers(run.workspace.origin)[0].vkey
    proved = evidence.proved(runs.by_id(str(run.id)), key)
    assert (proved.grade, dict(proved.faults), proved.unsigned) == ("SIGNED", {}, frozenset())
    checkpoint = bundles.newest(run.workspace)
    assert checkpoint is not None
    bundles.write_bundle(run.workspace, run, folder / "bundle.zip", checkpoint)
    assert verify.main([str(folder / "bundle.zip"), "--key", key]) == 0
    (folder / "receipt.json").write_text(
        json.dumps(bundles.receipt(run.workspace, run.name, run.length - 1))
    )
    assert verify.main([str(folder / "receipt.json"), "--key", key]) == 0
