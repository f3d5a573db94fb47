"""Remove each hand-written guard once, each in a process of its own, and list the survivors.

A mutation is killed by a test that fails without it. Exit status: 1 if one survives.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mutations.patching import LISTS, Mutation, MutationError, load
from mutations.pytest_runs import PytestOutcome, PytestRun, run_all

Rounds = Sequence[tuple[str, ...]]  # tests, those that run first first


def tried(chosen: Mapping[Mutation, Rounds]) -> Iterator[tuple[Mutation, PytestOutcome]]:
    """Try each change, round after round until a test fails; each comes once it is decided.

    Raises:
        MutationError: where tests fail without any change, and so judge nothing.
    """
    last = sorted({test for rounds in chosen.values() for test in rounds[-1]})
    whole = run_all(PytestRun((test,)) for test in last)
    if failing := [trial.tests[0] for trial, ran in whole if ran.end != "passed"]:
        raise MutationError(f"{', '.join(failing)} fail without any change, and judge nothing.")
    todo = {PytestRun(rounds[0], change): rounds[1:] for change, rounds in chosen.items()}
    while todo:
        later = {}
        for trial, ran in run_all(todo):
            left = todo[trial]
            if ran.end == "passed" and left:
                later[trial._replace(tests=left[0])] = left[1:]
            elif trial.mutation is not None:
                yield trial.mutation, ran
        todo = later


def survivors(chosen: Mapping[Mutation, Rounds], *, only_tests: bool) -> int:
    """Print how each change ended, and return how many no test noticed.

    ``only_tests``: a change that ends otherwise than by a failing test is not even Python any
    more, and proves nothing.
    """
    count = 0
    for change, ran in tried(chosen):
        killed = ran.end == "test" if only_tests else ran.end != "passed"
        count += not killed
        mark = "killed" if killed else "SURVIVED"
        by = ran.test.removeprefix("tests/") or f"[{ran.end}]"
        said = f"  {change.guard}  [{ran.end}] {ran.text}" if not killed else ""
        print(f"{mark:<9} {ran.seconds:5.1f} s  {change.id:<52} {by}{said}", flush=True)
    print(f"{len(chosen)} changes, one at a time; {count} not noticed.", flush=True)
    return count


def main(arguments: list[str]) -> int:
    """Try all entries, or those whose ids or files are named."""
    parser = argparse.ArgumentParser(prog="python -m mutations.survey", description=__doc__)
    parser.add_argument("--lists", type=Path, default=LISTS, help="the folder of the lists")
    parser.add_argument("only", nargs="*", help="ids or files; all without")
    given = parser.parse_args(arguments)
    chosen = [m for m in load(given.lists) if not given.only or {m.id, m.file} & {*given.only}]
    if not chosen:
        raise MutationError(f"No mutation is called {' or '.join(given.only)}.")
    return int(survivors({each: [each.tests] for each in chosen}, only_tests=True) > 0)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except MutationError as error:
        sys.exit(f"mutations: {error}")
