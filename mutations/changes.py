"""Prints as JSON how a copy differs from the product: ``python -m mutations.changes ID…``.

The lines are computed by difflib from the two sources: the product's file, and what the copy
compiles in its place. Nothing is started and nothing is changed.
"""

import difflib
import json
import re
import sys
from collections.abc import Iterator, Sequence

from mutations.patching import ROOT, Mutation, MutationError, apply_all, by_file, line_of, load

CONTEXT = 3  # unchanged lines shown around a change
HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def changes(ids: Sequence[str]) -> dict[str, object]:
    """The guards that these ids remove, and the changed lines of each file.

    Raises:
        MutationError: an id is unknown, or does not fit the source any more.
    """
    listed = {each.id: each for each in load()}
    unknown = [each for each in ids if each not in listed]
    if unknown:
        raise MutationError(f"No mutation is called {unknown[0]!r}.")
    chosen = [listed[each] for each in ids]
    files = [_changed(file, here) for file, here in by_file(chosen).items()]
    return {"guards": [_told(each) for each in chosen], "files": files}


def _told(mutation: Mutation) -> dict[str, str]:
    """A guard in words, with file and line."""
    where = f"{mutation.file}:{line_of(mutation)}"
    return {"id": mutation.id, "guard": mutation.guard, "where": where}


def _changed(file: str, chosen: Sequence[Mutation]) -> dict[str, object]:
    source = (ROOT / file).read_text(encoding="utf-8")
    lines = [*_lines(source, apply_all(source, chosen))]
    signs = [line["sign"] for line in lines]
    first = next(line["number"] for line in lines if line["sign"] == "-")
    return {
        "where": f"{file}:{first}",
        "lines": lines,
        "removed": signs.count("-"),
        "added": signs.count("+"),
    }


def _lines(before: str, after: str) -> Iterator[dict[str, object]]:
    """The lines of the unified diff, each with its sign and its number in its own source."""
    found = difflib.unified_diff(before.splitlines(), after.splitlines(), n=CONTEXT, lineterm="")
    old = new = 0
    for text in list(found)[2:]:  # behind the two lines that name the files
        hunk = HUNK.match(text)
        if hunk:
            old, new = int(hunk[1]), int(hunk[2])
            yield {"sign": "@", "number": old, "text": text}
            continue
        sign = text[0]
        yield {"sign": sign, "number": new if sign == "+" else old, "text": text[1:]}
        old, new = old + (sign != "+"), new + (sign != "-")


if __name__ == "__main__":
    try:
        print(json.dumps(changes(sys.argv[1:])))
    except MutationError as error:
        sys.exit(f"mutations: {error}")
