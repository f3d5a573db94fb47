"""The counts of a decision: what windows take in a log of few calls and of many.

``python -m bench.windows [ROUNDS]`` prints the table. Half of the calls are older than the windows.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from bench import seven
from bench.kit import report
from bench.kit.report import Bar, Table
from bench.kit.rounds import ROUNDS, Contestant, compare
from nanovm_core.core.authority.capabilities import Grant
from nanovm_core.core.authority.windows import Window
from nanovm_core.core.messages import Decision, Draft
from nanovm_core.core.program import Program
from nanovm_core.loading import load_program

FEW, MIDDLE, MANY = 100, 1_000, 10_000
TOOL, AGENT, AT_ONCE = "t0", "bench", 100  # calls in one commit
BAR = Bar("≤", 1.3)
COUNTED = "counts(log, program, agent, at_ms)"


def program() -> Program:
    """Seven steps, of which one tool is granted and counted by two windows."""
    whole = load_program(seven.program())
    calls = Window(name="calls", counts="calls", within_ms=1)
    return replace(
        whole,
        grants={TOOL: Grant(tool=TOOL)},
        windows=(calls, replace(calls, name="own", scope="agent", tool=TOOL)),
    )


def called(run: Any, rules: Program, calls: int) -> int:
    """Seal so many calls in a run's log, a millisecond apart; when the last one was."""
    from engine.clock import now_ms
    from engine.runtime.group_commit import Job, committed
    from engine.store import records

    began_ms = now_ms()

    def work(commit: Any, first: int) -> None:
        locked = commit.runs[run.name]
        now = records.value_of(locked.run, locked.chain, locked.workspace.origin)
        body = MappingProxyType({"tool": TOOL})
        drafts = [Draft("intent", began_ms + first + n, "bench", now, body) for n in range(AT_ONCE)]
        commit.record(locked, Decision(now, tuple(drafts)), rules)

    for first in range(0, calls, AT_ONCE):
        committed(Job(lambda commit, first=first: work(commit, first), runs=(run.name,)))  # type: ignore[misc]
    return began_ms + calls - 1


def contestant(calls: int) -> Contestant:
    """A log of so many calls, under its lock as a decision has it, with half of them in windows."""
    from bench.kit import fill
    from engine.runtime import chains
    from engine.runtime.transaction import UnitOfWork

    run, rules = fill.made(chains.create()).run, program()
    last_ms = called(run, rules, calls)
    within_ms = calls // 2
    rules = replace(rules, windows=tuple(replace(w, within_ms=within_ms) for w in rules.windows))
    commit = UnitOfWork([run.name])
    log = commit.runs[run.name].workspace
    found = commit.ledgers.counts(log, rules, AGENT, last_ms)
    if set(found.values()) != {within_ms + 1}:
        raise AssertionError(f"{calls} calls are counted as {dict(found)}")
    names = {"counts": commit.ledgers.counts, "log": log, "program": rules, "agent": AGENT}
    return Contestant(f"{calls:,} calls", COUNTED, {**names, "at_ms": last_ms})


def table(rounds: int) -> Table:
    """The bars, measured in a database of its own."""
    with tempfile.TemporaryDirectory() as folder:
        given = {"NANOVM_DATA": folder, "DJANGO_SETTINGS_MODULE": "config.settings"}
        os.environ.update(given, DATABASE_URL="", REDIS_URL="")
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connection, transaction

        call_command("migrate", verbosity=0, interactive=False)
        with transaction.atomic():
            made = [contestant(calls) for calls in (FEW, MIDDLE, MANY)]
            found = compare(made, rounds=rounds)
        connection.close()
    few = made[0].name
    return Table(
        title="The counts of a decision",
        says=f"Two windows, in units of the same in a log of {FEW} calls; on SQLite.",
        rows=[report.row(found, each.name, few, BAR) for each in made[1:]],
    )


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 3 where a bar is not reached."""
    found = table(int(arguments[0]) if arguments else ROUNDS)
    sys.stdout.write(report.markdown(found))
    return report.status(each.verdict in ("", "PASS") for each in found.rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
