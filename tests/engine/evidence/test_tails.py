"""Tails cut off a log in many ways: each is found, and none is followed by a second payment."""

import sqlite3
from contextlib import closing
from typing import Any, NamedTuple

import pytest
from django.conf import settings

from engine.evidence import restore, signer
from engine.evidence.fsck.audit import audit
from engine.evidence.published import unsigned_logs
from engine.evidence.signer import keys
from engine.models import AdapterCall, Run, Workspace
from engine.runtime import api
from engine.signals import run_changed
from nanovm_core.core import lifecycle as life
from nanovm_core.errors import VerificationError
from pipeline.models import Found, Listed
from pipeline.register import found
from samples import path
from tests.kit.clock import HOUR_MS, Leap
from tests.kit.house import House, reason, refusal, snapshot, sql, succeeded
from tests.kit.trees import drop_nodes, grown

Rows = tuple[Any, Any]  # of the run and of its log
HELD, PAUSED, ALL = 28, 31, 39  # the log's size: the run waits for a person, for a step, has ended


def driven(house: House, run: Run, size: int) -> dict[int, Rows]:
    """A run that stops before each step, up to a size of its log; the rows after each commit."""
    kept: dict[int, Rows] = {}

    def keep(run_id: str) -> None:
        row = Run.objects.filter(id=run_id).values().get()
        log = Workspace.objects.filter(id=row["workspace_id"]).values().get()
        kept[log["size"]] = (row, log)

    run_changed.connect(keep)
    while max(kept, default=0) < size:
        house.drive(run)
        signer.checkpoint(run.workspace_id)
        if max(kept, default=0) < size:
            (api.approve if snapshot(run).held_by else api.step)(str(run.id), "visitor")
    run_changed.disconnect(keep)
    return kept


def paid(house: House) -> tuple[Run, dict[int, Rows]]:
    run = house.started(path("over_limit").read_bytes(), stepping=True)
    return run, driven(house, run, ALL)


class Cut(NamedTuple):
    """What somebody does to the database, and to the signer's state file beside it."""

    size: int = HELD  # of the log, after it
    nodes: str = "kept"  # kept, gone, no leaves (the other nodes are kept)
    checkpoints: bool = True  # the later ones are kept
    state: str = "kept"  # the signer's state file: kept, gone, of then
    rows: str = "run and log"  # that are put back
    others: int = 0  # envelopes behind the run's, which are kept
    later: int = 0  # envelopes that are sealed after the cut
    records: bool = True  # the adapters' record is kept


def cut(run: Run, kept: dict[int, Rows], how: Cut) -> None:
    log, place = run.workspace, (run.workspace_id.hex, how.size)
    if how.others:
        grown(log, how.others)
        signer.checkpoint(log.id)
    behind = "WHERE workspace_id = %s AND seq >= %s" + (" AND run <> 'log'" if how.others else "")
    sql((f"DELETE FROM pipeline_envelope {behind}", place))
    sql(("DELETE FROM pipeline_tally WHERE workspace_id = %s AND seq >= %s", place))
    if not how.checkpoints:
        sql(("DELETE FROM pipeline_checkpoint WHERE workspace_id = %s AND size > %s", place))
    if how.nodes != "kept":
        which = " AND level = 0" if how.nodes == "no leaves" else ""
        drop_nodes(log, f'("index" + 1) * (1 << level) > %s{which}', (how.size,))
    for file in keys.logs().glob("*.note") if how.state != "kept" else ():
        file.unlink()
    if how.state == "of then":
        signer.remember(log.id)
    if not how.records:
        AdapterCall.objects.all().delete()
    if "run" in how.rows:
        Run.objects.filter(id=run.id).update(**kept[how.size][0])
        Listed.objects.filter(run=run).delete()
        Found.objects.filter(run=run).delete()
        found.record(then := Run.objects.get(id=run.id), None, snapshot(then))
    if "log" in how.rows:
        Workspace.objects.filter(id=log.id).update(**kept[how.size][1])
    grown(log, how.later)


WAYS: dict[str, Cut] = {
    **{f"back to {size}": Cut(size) for size in (10, 12, 17, 21, 26, HELD, PAUSED, 33, 35, 37)},
    **{f"{size}, no nodes": Cut(size, nodes="gone") for size in (10, 26, HELD, PAUSED, 35)},
    "no records": Cut(records=False),
    "paused, no records": Cut(PAUSED, records=False),
    "leaves gone": Cut(nodes="no leaves"),
    "no checkpoints": Cut(checkpoints=False),
    "no checkpoints, no nodes": Cut(checkpoints=False, nodes="gone"),
    "no state file": Cut(state="gone"),
    "no state file, no nodes": Cut(state="gone", nodes="gone"),
    "no state file, no checkpoints": Cut(state="gone", checkpoints=False),
    "old state file": Cut(state="of then", checkpoints=False),
    "run's row alone": Cut(rows="run"),
    "run's row alone, no nodes": Cut(rows="run", nodes="gone"),
    "log's row alone": Cut(rows="log"),
    "neither row": Cut(rows=""),
    "others behind it": Cut(rows="run", others=3),
    "others behind it, no nodes": Cut(rows="run", others=3, nodes="gone"),
    "grown": Cut(later=15),
    "grown, no nodes": Cut(later=15, nodes="gone"),
    "grown, nothing signed": Cut(later=15, state="gone", checkpoints=False),
    "grown, old state file": Cut(later=15, state="of then", checkpoints=False),
    "paused, grown": Cut(PAUSED, later=4),
}


def refuses(rounds: signer.Rounds, log: Workspace) -> bool:
    """Whether the signer refuses the log by itself, with its code where pages find it."""
    rounds.round(2_000_000_000_000)
    return [(each.origin, each.code) for each in unsigned_logs()] == [(log.origin, "LOG-006")]


def again(house: House, run: Run, leap: Leap) -> None:
    """What visitors and workers do a day later, when the far side has forgotten the key."""
    leap(25 * HOUR_MS)
    with closing(sqlite3.connect(next(house.counterpart.folder.glob("*.sqlite3")))) as far, far:
        account = f"acct_{settings.STRIPE['key'][-4:]}"
        far.execute("DELETE FROM idempotent_answer WHERE account = ?", (account,))
    for ask in (api.wake, api.approve, api.resume, api.step, api.step, api.approve, api.step):
        ask(str(run.id), "visitor")
        house.drive(run)


ON_BOTH = {"grown", "others behind it"}
WAYS_ON_BOTH = [pytest.param(each, marks=pytest.mark.postgres) for each in sorted(ON_BOTH)]


@pytest.mark.parametrize("name", [*WAYS_ON_BOTH, *sorted({*WAYS} - ON_BOTH)])
def test_a_tail_that_was_cut_off_is_found_and_pays_nothing_again(
    house: House, leap: Leap, name: str
) -> None:
    (run, kept), how = house.once(paid), WAYS[name]
    before, rounds = succeeded(run), signer.Rounds()  # copies of the scene share their account
    rounds.round(1_900_000_000_000)  # later it looks at what changed
    cut(run, kept, how)
    assert audit().exit_status == 1
    if not how.others and not how.later and how.state != "gone":
        assert restore.is_needed() or how.state == "of then"
        assert refuses(rounds, run.workspace) or how.state == "of then"
    if not how.others:  # damage below what was signed stops no checkpoint
        with pytest.raises(VerificationError, match=r"LOG-00[678]"):
            signer.checkpoint(run.workspace_id)
    again(house, run, leap)
    assert succeeded(run) == before
    assert (run.state, reason(run), run.quarantined) == (life.FAILED, "LOG-006", True)
    assert audit().exit_status == 1


@pytest.mark.postgres
@pytest.mark.parametrize("how", [Cut(), Cut(state="gone", checkpoints=False)])
def test_each_leaf_is_named_and_an_approval_of_the_same_day_pays_nothing(
    house: House, how: Cut
) -> None:
    run, kept = house.once(paid)
    cut(run, kept, how)
    named = {("LOG-002", leaf) for leaf in range(HELD, ALL)}
    signed = {("LOG-006", HELD)} if how.checkpoints else {("LOG-007", 0)}  # earlier ones are kept
    assert {(each.code, each.at) for each in audit().damage} == named | signed
    api.approve(str(run.id), "visitor")
    assert (reason(run), run.state) == ("LOG-006", life.FAILED)


def test_a_log_that_was_cut_off_under_its_tree_is_closed_by_a_restore(house: House) -> None:
    run, kept = house.once(paid)
    cut(run, kept, Cut())
    (goes_on,) = restore.restore("operator").logs
    assert (goes_on.signed, goes_on.found) == (ALL, HELD)
    assert refusal(api.approve(str(run.id), "visitor")) == "LOG-009"
    assert audit().exit_status == 1  # no backup leaves such a tree


def test_what_is_gone_everywhere_is_an_old_backup_and_seen_by_nobody(
    house: House, leap: Leap
) -> None:
    run, kept = house.once(paid)
    before = len(succeeded(run))
    cut(run, kept, Cut(nodes="gone", checkpoints=False, state="of then"))
    assert (audit().exit_status, refuses(signer.Rounds(), run.workspace)) == (0, False)
    again(house, run, leap)
    assert len(succeeded(run)) == before + 1


@pytest.mark.parametrize("size", [HELD, PAUSED])
@pytest.mark.postgres
def test_a_run_that_waited_longer_than_a_key_lives_is_paid_once(
    house: House, leap: Leap, size: int
) -> None:
    run = house.started(path("over_limit").read_bytes(), stepping=True)
    driven(house, run, size)
    other = house.run(workspace=run.workspace)
    again(house, run, leap)
    assert (run.state, len(succeeded(run))) == (life.COMPLETED, 1)
    assert (len(succeeded(other)), audit().damage) == (1, ())
