"""Break a sample of the shell's statements by generic operators, and list what no test misses.

``python -m mutations.generic [--seed 1] [--size 40] [FILE…]``: conditions are negated, comparisons
moved by one, calls and raises dropped. The tests of a file are those of its room. Some changes
alter nothing that can be seen, so the bar is a share: 1 where tests miss fewer than KILLED_MIN.
"""

import argparse
import ast
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from mutations.patching import ROOT, Mutation, MutationError
from mutations.pytest_runs import PytestRun, run_all

PACKAGES = ("pipeline", "sabotage", "dashboard")
APART = {"migrations", "management", "models.py", "apps.py", "__init__.py"}
KILLED_MIN = 0.7
SIZE = 40
SECONDS_MAX = 900.0  # the slowest room takes a tenth of it; longer is a loop without an end
SWAPPED = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}
SWAPPED |= {" in ": " not in ", " not in ": " in ", " is not ": " is ", " is ": " is not "}


def candidates(file: str) -> Iterator[Mutation]:
    """Every change of a file that an operator makes."""
    source = (ROOT / file).read_text(encoding="utf-8")
    tests = (room(file),)
    for start, end, text, operator in changes(source):
        line = source.count("\n", 0, start) + 1
        yield Mutation(
            id=f"{file}:{line}:{operator}",
            file=file,
            guard=source[start:end].splitlines()[0],
            code="",
            find=source[:end],  # it begins the file, so it occurs once
            replace=source[:start] + text,
            tests=tests,
        )


def changes(source: str) -> Iterator[tuple[int, int, str, str]]:
    """Where each operator applies: start, end, the text in its place, and its name."""
    lengths = [len(line.encode()) for line in source.splitlines(keepends=True)]
    begins = [sum(lengths[:i]) for i in range(len(lengths))]
    encoded = source.encode()

    def place(node: ast.expr | ast.stmt) -> tuple[int, int]:
        ends = begins[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        start = begins[node.lineno - 1] + node.col_offset
        return len(encoded[:start].decode()), len(encoded[:ends].decode())

    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                start, end = place(test)
                yield start, end, f"(not ({source[start:end]}))", "negated"
            case ast.Raise() | ast.Expr(value=ast.Call()):
                yield *place(node), "pass", "dropped"
            case ast.Compare(left=left, comparators=[right]):
                start, end = place(left)[1], place(right)[0]
                if swapped := SWAPPED.get(source[start:end]) or SWAPPED.get(
                    source[start:end].strip()
                ):
                    yield start, end, f" {swapped.strip()} ", "swapped"


def room(file: str) -> str:
    """The nearest folder of tests that mirrors a file's."""
    for folder in Path(file).parents:
        if folder.name and (ROOT / "tests" / folder).is_dir():
            return f"tests/{folder}"
    raise MutationError(f"{file} has no tests of its room.")


def sample(files: Sequence[str], seed: int, size: int) -> list[Mutation]:
    """So many changes, drawn from all of these files."""
    every = [each for file in files for each in candidates(file)]
    return random.Random(seed).sample(every, min(size, len(every)))  # noqa: S311 - not a secret


def shell() -> list[str]:
    """The files that the operators may change."""
    paths = (path.relative_to(ROOT) for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    return sorted(str(path) for path in paths if not APART & {*path.parts})


def main(arguments: list[str]) -> int:
    """Try a sample, print how each ended, and the share that tests miss."""
    parser = argparse.ArgumentParser(prog="python -m mutations.generic", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("files", nargs="*", help="files; those of the shell without")
    given = parser.parse_args(arguments)
    killed, chosen = 0, sample(given.files or shell(), given.seed, given.size)
    whole = run_all(PytestRun(tests, None, SECONDS_MAX) for tests in {m.tests for m in chosen})
    if failing := [trial.tests[0] for trial, ran in whole if ran.end != "passed"]:
        raise MutationError(f"{', '.join(failing)} fail without any change, and judge nothing.")
    for trial, ran in run_all(PytestRun(each.tests, each, SECONDS_MAX) for each in chosen):
        if trial.mutation is not None:
            killed += ran.end != "passed"
            mark = "SURVIVED" if ran.end == "passed" else "killed"
            told = f"{trial.mutation.id}  {trial.mutation.guard}"
            print(f"{mark:<9}{ran.seconds:6.1f} s  {told}", flush=True)
    print(f"seed {given.seed}: {killed} of {len(chosen)} changes make a test fail.")
    return int(killed < KILLED_MIN * len(chosen))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except MutationError as error:
        sys.exit(f"mutations: {error}")
