"""Rows of totals: windows are exact, and no change of a row makes one count less."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from types import MappingProxyType

import pytest
from django.db import transaction

from engine.evidence.fsck.audit import audit
from engine.models import Run, Tally, Workspace
from engine.runtime.group_commit import Job, committed
from engine.runtime.transaction import Commit
from engine.store import ledgers, records, tallies
from nanovm_core.core.messages import Counts, Decision, Draft
from nanovm_core.core.program import Program
from tests.core.kit.window_histories import AGENTS, PAY, PROGRAM, Happened, drawn, expected
from tests.core.values.test_windows import BILLED
from tests.kit.clock import Leap
from tests.kit.house import House, sql

TALLY = "pipeline_tally"
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 2))]


def seal(run: Run, happened: Sequence[Happened], program: Program = PROGRAM) -> list[Counts]:
    """Seal in one commit what happened to a run; what it would count after each, for that agent."""
    found = []

    def work(commit: Commit) -> None:
        locked = commit.runs[run.name]
        now = records.value_of(locked.run, locked.chain, locked.workspace.origin)
        for at_ms, agent, kind, body in happened:
            of = now._replace(agent=agent)
            draft = Draft(kind, at_ms, "runtime", of, MappingProxyType(dict(body)))
            commit.record(locked, Decision(of, (draft,)), program)
            found.append(commit.ledgers.counts(locked.workspace, program, agent, at_ms))

    committed(Job(work, runs=(run.name,)))
    return found


def counted(run: Run, agent: str, at_ms: int, program: Program = PROGRAM) -> Counts:
    """What the runtime tells the kernel under its locks."""
    with transaction.atomic():
        commit = Commit([run.name])
        log = commit.runs[run.name].workspace
        return commit.ledgers.counts(log, program, agent, at_ms)


def latest_ms(run: Run) -> int:
    found = ledgers.stored(Workspace.objects.get(id=run.workspace_id))
    assert found is not None
    return found.at_ms


def history(run: Run, dice: Random, commits: int) -> list[Happened]:
    """What happens in some commits, each of which holds several decisions."""
    past: list[Happened] = []
    for _ in range(commits):
        last_ms, more = latest_ms(run), []
        for _ in range(dice.randint(1, 4)):
            more.append(drawn(dice, last_ms))
            last_ms = more[-1].at_ms
        seal(run, more)
        past += more
    return past


@pytest.mark.postgres
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_sealed_is_counted_as_by_the_definition(house: House, seed: int) -> None:
    dice, run = Random(seed), house.new()  # noqa: S311  # it chooses examples
    past = history(run, dice, 25)
    log = Workspace.objects.get(id=run.workspace_id)
    for later_ms in (0, 1, 7, 8, 40, 41, 1_000, 1_001):
        for agent in AGENTS:
            at_ms = latest_ms(run) + later_ms
            assert counted(run, agent, at_ms) == expected(past, agent, at_ms)
            assert tallies.counts_of(log, PROGRAM, agent, at_ms) == expected(past, agent, at_ms)
    assert audit().damage == ()
    assert ledgers.fold_of(log).value == ledgers.stored(log)


def test_a_commit_counts_what_it_is_about_to_store(house: House) -> None:
    run = house.new()
    at_ms = latest_ms(run) + 1
    calls = [Happened(at_ms + age, "ann", "intent", {"tool": PAY}) for age in (0, 1, 90, 101, 102)]
    found = [(each["calls"], each[f"rate/{PAY}"]) for each in seal(run, calls, BILLED)]
    assert found == [(1, 1), (2, 2), (3, 1), (3, 2), (3, 3)]
    plain = replace(PROGRAM, windows=(), grants={})  # it counts nothing itself, others its calls
    seal(run, [Happened(at_ms + 103, "ann", "intent", {"tool": PAY})], plain)
    assert counted(run, "ann", at_ms + 104, BILLED)["calls"] == 4


def test_where_the_clock_is_set_back_no_call_is_counted_before_an_earlier_one(
    house: House, leap: Leap
) -> None:
    first = house.started()
    house.drive(first)
    leap(-60_000)
    house.drive(house.started(workspace=first.workspace))
    rows = Tally.objects.filter(workspace=first.workspace_id, scope="payer", what="calls")
    times = [*rows.order_by("seq").values_list("at_ms", flat=True)]
    assert (len(times), times) == (4, sorted(times))


CHANGES = (
    f"DELETE FROM {TALLY}",
    f"DELETE FROM {TALLY} WHERE seq %% 3 = 0",
    f"UPDATE {TALLY} SET total = total + 1",
    f"UPDATE {TALLY} SET total = 1000000",
    f"UPDATE {TALLY} SET total = 'many' WHERE seq %% 2 = 0",
    f"UPDATE {TALLY} SET at_ms = at_ms - 500",
    f"UPDATE {TALLY} SET at_ms = at_ms + 500",
    f"UPDATE {TALLY} SET seq = seq + 100000",
    f"UPDATE {TALLY} SET what = 'calls' WHERE what = 'failures'",
    f"UPDATE {TALLY} SET scope = 'bob' WHERE scope = 'ann' AND what = 'spent/EUR'",
    f"INSERT INTO {TALLY} (workspace_id, scope, what, at_ms, seq, total)"
    f" SELECT workspace_id, scope, what, at_ms, seq + 100000, 99 FROM {TALLY}",
    f"UPDATE {TALLY} SET workspace_id = %s",
)


def counted_in_two_logs(house: House) -> list[tuple[Run, Sequence[Happened]]]:
    """Two runs in logs of their own, and what happened to each; the other log has no rows."""
    run, other = house.new(), house.new()
    past = history(run, Random(7), 12)  # noqa: S311  # it chooses examples
    theirs = [Happened(latest_ms(run), "ann", "intent", {"tool": PAY})] * 9
    seal(other, theirs)
    Tally.objects.filter(workspace=other.workspace_id).delete()
    return [(run, past), (other, theirs)]


@pytest.mark.parametrize("change", CHANGES)
def test_no_change_of_rows_makes_a_window_count_less(house: House, change: str) -> None:
    both = house.once(counted_in_two_logs)
    given = (both[1][0].workspace_id.hex,) if "workspace_id = %s" in change else ()
    sql((change, given))
    assert any(each.code == "LOG-011" for each in audit().damage)
    latest = latest_ms(both[0][0])
    for at_ms in (latest, latest + 1, latest + 8, latest + 41, latest + 1_001):
        for run, happened in both:
            true, found = expected(happened, "ann", at_ms), counted(run, "ann", at_ms)
            assert all(found[name] >= count for name, count in true.items())
