"""Remove every guard once, each in a process of its own, and list those that no test misses."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from mutations.patching import LISTS, Mutation, MutationError, load
from mutations.pytest_runs import SECONDS_MAX, PytestOutcome, PytestRun, run, run_all

STATUS_MAX = 100  # an exit status is one byte, and 256 survivors are not success


class Result(NamedTuple):
    """How the tests of a mutation ended without its guard. ``killed`` is how it should be."""

    mutation: Mutation
    killed: bool
    ran: PytestOutcome


def try_out(mutation: Mutation, *, seconds_max: float = SECONDS_MAX) -> Result:
    """Run a mutation's tests without its guard; it is killed if it dies as its entry says."""
    ran = run(PytestRun(mutation.tests, mutation, seconds_max))
    return Result(mutation, ran.end == mutation.dies, ran)


def survey(mutations: Iterable[Mutation]) -> Iterator[Result]:
    """Try each mutation, and yield each result as it ends.

    A test that fails with every guard in place decides nothing: its mutations count as
    survivors.
    """
    chosen = tuple(mutations)
    tests = sorted({test for mutation in chosen for test in mutation.tests})
    whole = {trial.tests[0]: ran for trial, ran in run_all(PytestRun((test,)) for test in tests)}
    sound = []
    for mutation in chosen:
        failing = [test for test in mutation.tests if whole[test].end != "passed"]
        if failing:
            ran = whole[failing[0]]
            text = f"with every guard in place it ends as {ran.end}: {ran.text}"
            yield Result(mutation, False, PytestOutcome("unjudged", failing[0], text))
        else:
            sound.append(PytestRun(mutation.tests, mutation))
    for trial, ran in run_all(sound):
        if trial.mutation is not None:
            yield Result(trial.mutation, ran.end == trial.mutation.dies, ran)


def line(result: Result) -> str:
    """A result as a line of the table."""
    mutation, ran = result.mutation, result.ran
    mark = "killed" if result.killed else "SURVIVED"
    by = ran.test.removeprefix("tests/") or ran.end
    said = "" if result.killed else f"  [{ran.end}] {ran.text}"
    return f"{mark:<9} {ran.seconds:5.1f} s  {mutation.id:<52} {by}{said}"


def main(arguments: list[str]) -> int:
    """Survey the list, or the entries whose ids or files are named; the number of survivors."""
    parser = argparse.ArgumentParser(prog="python -m mutations.survey", description=__doc__)
    parser.add_argument("--lists", type=Path, default=LISTS, help="the folder of the lists")
    parser.add_argument("only", nargs="*", help="ids or files; all without")
    given = parser.parse_args(arguments)
    chosen = [m for m in load(given.lists) if not given.only or {m.id, m.file} & {*given.only}]
    if not chosen:
        raise MutationError(f"No mutation is called {' or '.join(given.only)}.")
    survivors = 0
    for result in survey(chosen):
        survivors += not result.killed
        print(line(result), flush=True)
    print(f"{len(chosen)} guards removed, one at a time; {survivors} not missed.")
    return min(survivors, STATUS_MAX)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except MutationError as error:
        sys.exit(f"mutations: {error}")
