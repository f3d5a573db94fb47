"""The torture table: what condition engines answer to texts that are easily misread.

``python -m bench.torture`` asks every engine and prints who misread what; ``--write`` stores the
answers and the page that shows them; ``--page`` writes the page again from the stored answers.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

from bench.kit.torture_peers import PEERS, Answer
from nanovm_core.conditions import parse
from nanovm_core.conditions.errors import WHY
from nanovm_core.errors import ConditionError

TRAPS = Path(__file__).with_name("torture_traps.toml")
STORED = Path(__file__).with_name("torture.json")
PAGE = Path(__file__).resolve().parent.parent / "docs" / "conditions.md"
VERSION = "nanovm-torture/1"

Document = Mapping[str, Any]


def ours(condition: str, context: str) -> Answer:
    """What nanovm answers now; a refusal with its code, and when it comes."""
    when = "loading"
    try:
        parsed = parse(condition)
        when = "evaluation"
        shown = str(parsed.holds(json.loads(context))).lower()
    except ConditionError as error:
        return {"answer": "refused", "shown": f"{error.code} at {when}"}
    return {"answer": shown, "shown": shown}


def asked() -> Document:
    """Every trap put to nanovm and to every peer, with the peers' versions.

    Raises:
        PackageNotFoundError: where a peer is not installed: a table with a gap is none.
    """
    return {
        "v": VERSION,
        "peers": {peer.name: f"{peer.distribution} {peer.version()}" for peer in PEERS},
        "rows": [_row(trap) for trap in read_traps()["trap"]],
    }


def _row(trap: Mapping[str, Any]) -> dict[str, Any]:
    context = json.loads(trap["context"])
    kept = {key: trap[key] for key in ("id", "trap", "reader", "right", "condition", "context")}
    return {
        **kept,
        "nanovm": ours(trap["condition"], trap["context"]),
        "peers": {peer.name: peer.answer(trap, context) for peer in PEERS},
    }


def misread(row: Mapping[str, Any], answer: Answer | None) -> bool:
    """Whether the answer is another than a careful reader's; to refuse is never to misread."""
    return answer is not None and answer["answer"] not in ("refused", *row["right"])


def page(document: Document, text: str) -> str:
    """``text`` with its generated parts made again: the table, its counts, and the codes."""
    for name, lines in (
        ("table", _table(document)),
        ("counts", _counts(document)),
        ("codes", _codes()),
    ):
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        if (text.count(begin), text.count(end)) != (1, 1):
            raise ValueError(f"the page has no one place for its {name}: {begin.strip()} … {end}")
        before, rest = text.split(begin)
        text = "\n".join([f"{before}{begin}", *lines, "", f"{end}{rest.split(end)[1]}"])
    return text


def _table(document: Document) -> list[str]:
    names = ["nanovm", *document["peers"]]
    lines = [f"| trap | {' | '.join(names)} |", "| --- " * (len(names) + 1) + "|"]
    for row in document["rows"]:
        said = " ".join(
            f"{row['trap']}: {_code(row['condition'])} over {_code(row['context'])}".split()
        )
        answers = [row["nanovm"], *(row["peers"][name] for name in document["peers"])]
        cells = [_cell(row, answer) for answer in answers]
        lines.append(f"| {said}. *{_sentence(row['reader'])}* | {' | '.join(cells)} |")
    return lines


def _cell(row: Mapping[str, Any], answer: Answer | None) -> str:
    if answer is None:
        return "–"
    said = "" if answer["shown"] == answer["answer"] else f" ({_visible(answer['shown'])})"
    shown = f"{answer['answer']}{said}"
    if misread(row, answer):
        return f"**{shown}**"
    return shown if answer["answer"] in row["right"] else f"*{shown}*"


def _counts(document: Document) -> list[str]:
    lines = ["| engine | misread | refused what is sound | of |", "| --- | --- | --- | --- |"]
    for name in ("nanovm", *document["peers"]):
        rows, wrong, shy = 0, 0, 0
        for row in document["rows"]:
            answer = row["nanovm"] if name == "nanovm" else row["peers"][name]
            rows += answer is not None
            wrong += misread(row, answer)
            shy += answer is not None and answer["answer"] not in row["right"]
        version = document["peers"].get(name, "this one")
        lines.append(f"| {name} ({version}) | {wrong} | {shy - wrong} | {rows} |")
    return lines


def _codes() -> list[str]:
    lines = ["| code | why | an example that trips it |", "| --- | --- | --- |"]
    for code in read_traps()["code"]:
        beside = ""
        if "context" in code:
            beside = f" over {_code(code['context'])}"
        if "types" in code:
            declared = ", ".join(f"`{name}` is {kind}" for name, kind in code["types"].items())
            beside = f", where {declared}"
        why = WHY[code["number"]].replace("|", "\\|")
        lines.append(f"| CON-{code['number']:03} | {why} | {_code(code['condition'])}{beside} |")
    return lines


def read_traps() -> Document:
    """The traps and the examples of the codes, as they are written."""
    return tomllib.loads(TRAPS.read_text(encoding="utf-8"))


def _code(text: str) -> str:
    return f"`{_visible(text)}`" if text else "an empty text"


def _visible(text: str) -> str:
    """ASCII alone, so that a look-alike looks like none; no cell ends early."""
    plain = text.encode("ascii", "backslashreplace").decode("ascii")
    return plain.replace("|", "\\|")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table's verdicts; write what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the answers and the page")
    parser.add_argument("--page", action="store_true", help="only the page, from what is stored")
    given = parser.parse_args(arguments)
    try:
        document = json.loads(STORED.read_text(encoding="utf-8")) if given.page else asked()
    except PackageNotFoundError as missing:
        sys.exit(f"{missing.name} is not installed: install what bench/requirements.txt names.")
    if given.write:
        STORED.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if given.write or given.page:
        PAGE.write_text(page(document, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    for row in document["rows"]:
        wrong = [name for name, answer in row["peers"].items() if misread(row, answer)]
        print(f"{row['id']}: {row['nanovm']['shown']}; misread by {', '.join(wrong) or 'none'}")
    print("\n".join(_counts(document)))


if __name__ == "__main__":
    main()
