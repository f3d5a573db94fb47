"""The size of each part of the repository: a total may fall, and rises only on purpose."""

import io
import subprocess
import tokenize
import tomllib
from ast import ClassDef, FunctionDef, Module, get_docstring, walk
from collections.abc import Iterator, Mapping
from functools import cache

from tests.house.repository import ROOT, files, name_of, source_of, tree_of

BUDGET = "tests/house/sizes.toml"
SLACK_LINES_MAX = 100  # a part that fell by more gets a lower limit
HISTORY_MAX = 20  # so many of the last changes of the budget are looked at
RAISES_WITH = (BUDGET, "docs/adr/")

Sizes = Mapping[str, Mapping[str, int]]


def test_no_part_is_larger_than_its_budget() -> None:
    assert [*over(budget(source_of(ROOT / BUDGET)), measured())] == []


def test_every_folder_with_code_has_a_budget() -> None:
    folders = {name_of(path).split("/")[0] for path in files(".py") if "/" in name_of(path)}
    limits = budget(source_of(ROOT / BUDGET))
    assert folders - {*limits["lines"], *limits["all_lines"]} == set()


def test_a_limit_was_raised_by_no_commit_that_needed_it() -> None:
    found = {commit: broken(commit) for commit in git("log", "--format=%H", "--", BUDGET)}
    assert [f"{commit}: {why}" for commit, why in found.items() if why] == []


def over(limits: Sizes, sizes: Sizes) -> Iterator[str]:
    """The parts that are larger than their limit, or so much smaller that it has to fall."""
    for unit, parts in limits.items():
        for part, limit in parts.items():
            size, word = sizes[unit][part], unit.replace("_", " ")
            if size > limit:
                yield (
                    f"{part} has {size} {word} of at most {limit}: take something away, or raise "
                    f"the limit before, in a commit of {' and '.join(RAISES_WITH)} alone; its ADR "
                    "says what for, what was taken away instead, and why that was not enough"
                )
            elif unit.endswith("lines") and size < limit - SLACK_LINES_MAX:
                yield f"{part} has {size} {word}: write {size} for its {limit} in {BUDGET}"


def broken(commit: str) -> str:
    """What is wrong with a commit that changed the budget; empty where nothing is."""
    parents = git("rev-list", "--parents", "-n", "1", commit)[0].split()[1:]
    if len(parents) != 1 or not git("ls-tree", parents[0], BUDGET):
        return ""  # a merge, the first commit that is here, or the one that made the budget
    before, after = (budget("\n".join(git("show", f"{at}:{BUDGET}"))) for at in (*parents, commit))
    return wrong_rise(before, after, git("diff", "--name-only", parents[0], commit))


def wrong_rise(before: Sizes, after: Sizes, changed: list[str]) -> str:
    """Why a commit may not raise a limit as it does; empty where it raises none or may."""
    risen = [
        part
        for unit, parts in before.items()
        for part, limit in parts.items()
        if after.get(unit, {}).get(part, 0) > limit
    ]
    beside = [name for name in changed if not name.startswith(RAISES_WITH)]
    return f"it raises {risen[0]} beside a change of {beside[0]}" if risen and beside else ""


def budget(text: str) -> Sizes:
    """The limits that a text of the budget sets: unit, part, number."""
    return tomllib.loads(text)


def git(*command: str) -> list[str]:
    """The lines that git answers, HISTORY_MAX at the most of a log."""
    bound = [f"--max-count={HISTORY_MAX}"] if command[0] == "log" else []
    ran = subprocess.run(
        ["git", command[0], *bound, *command[1:]], cwd=ROOT, capture_output=True, check=True
    )
    return ran.stdout.decode().splitlines()


@cache
def measured() -> Sizes:
    """How large each part is."""
    limits = budget(source_of(ROOT / BUDGET))
    return {
        "lines": {part: lines(part, ".py") for part in limits["lines"]},
        "all_lines": {part: lines(part) for part in limits["all_lines"]},
        "code_lines": {part: sum(map(code_lines, texts(part))) for part in limits["code_lines"]},
        "words": {part: sum(len(text.split()) for text in texts(part)) for part in limits["words"]},
    }


def lines(part: str, *suffixes: str) -> int:
    """The physical lines of a folder's files."""
    names = {name_of(path): path for path in files(*suffixes)}
    inside = [path for name, path in names.items() if name.startswith(f"{part}/")]
    return sum(path.read_bytes().count(b"\n") for path in inside if "vendor" not in path.parts)


def texts(part: str) -> list[str]:
    """The Python sources of a folder."""
    return [source_of(path) for path in files(".py") if name_of(path).startswith(f"{part}/")]


def code_lines(source: str) -> int:
    """The lines of a module that hold code: no blank, comment or docstring."""
    quiet = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in {*quiet, tokenize.ENDMARKER}:
            found |= {*range(token.start[0], token.end[0] + 1)}
    for node in walk(tree_of(source)):
        if isinstance(node, Module | ClassDef | FunctionDef) and get_docstring(node) is not None:
            text = node.body[0]
            found -= {*range(text.lineno, (text.end_lineno or text.lineno) + 1)}
    return len(found)
