"""One run damaged in twenty places: every other run goes on, pays, verifies and is exported."""

import json
from collections.abc import Sequence
from pathlib import Path

from nanovm_core import verify
from nanovm_core.core import lifecycle as life
from nanovm_core.core.envelope import ZERO
from pipeline.evidence import bundles, signer
from pipeline.evidence.fsck.audit import audit
from pipeline.models import Run
from pipeline.queries import evidence, runs
from pipeline.reports import displayed_head
from pipeline.runtime import api
from tests.pipeline.house import House, invoice, reason, sql, succeeded

PLACES = 20


def places(run: Run) -> list[tuple[str, Sequence[object]]]:
    """Twenty changes of what is stored of a run, each in another place."""
    of_run = "UPDATE pipeline_run SET {} WHERE id = %s"
    columns: dict[str, object] = {
        "snapshot": b"{}",
        "state": life.COMPLETED,
        "step": "seal",
        "head": "0" * 64,
        "length": 3,
    }
    damage: list[tuple[str, Sequence[object]]] = [
        (of_run.format(f"{name} = %s"), (value, run.id.hex)) for name, value in columns.items()
    ]
    damage.append(("UPDATE pipeline_terms SET policy = x'78' WHERE run_id = %s", (run.id.hex,)))
    changes = ("bytes = x'7b7d'", f"hash = '{ZERO}'", "kind = 'terminal'", "bytes = x'00'")
    for n in range(12):
        change = f"UPDATE pipeline_envelope SET {changes[n % 4]} WHERE run = %s AND n = %s"
        damage.append((change, (str(run.id), n)))
    damage.append(("DELETE FROM pipeline_envelope WHERE run = %s AND n = 12", (str(run.id),)))
    leaf = "SELECT seq FROM pipeline_envelope WHERE run = %s AND n = 5"
    node = f"UPDATE pipeline_node SET hash = x'00' WHERE level = 0 AND \"index\" = ({leaf})"
    return [*damage, (node, (str(run.id),))]


def test_twenty_damaged_places_of_one_run_stop_no_other(house: House, tmp_path: Path) -> None:
    bad = house.once(House.paused)
    log, before = bad.workspace, house.run(invoice("Total  EUR 80.00"), workspace=bad.workspace)
    other = house.paused("charge", invoice("Total  EUR 95.00"), workspace=log)
    signer.checkpoint(log.id)
    damage = places(bad)
    assert len(damage) == PLACES
    for each in damage:
        sql(each)
        api.check(str(bad.id))  # found and contained again and again
    assert house.resumed(bad).quarantined
    assert (bad.state in life.TERMINAL, displayed_head(bad), succeeded(bad)) == (True, ZERO, [])
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
    (folder / "receipt.json").write_text(json.dumps(bundles.receipt(run, run.length - 1)))
    assert verify.main([str(folder / "receipt.json"), "--key", key]) == 0
