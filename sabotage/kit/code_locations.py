"""Where in the source a rule is decided: an index of the installed code's syntax trees."""

import ast
import functools
import inspect
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import nanovm_core
import pipeline
from engine.store import leases, ledgers, records
from nanovm_core.core import envelope, fsm
from nanovm_core.core.authority import budget, capabilities
from nanovm_core.core.authority.advice import Advice
from nanovm_core.core.fsm import advance, moves, results, terminal
from nanovm_core.core.gate.tool_guard import ToolGuard
from nanovm_core.core.messages import Decision
from nanovm_core.errors import NanovmError

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = frozenset({"reasons.py"})  # they name the codes and decide nothing
WEIGHT_MIN = 12  # fixed characters of a text that is told from others without its code

# Which function decides a rule whose refusal another process wrote: its envelope has the code
# and no text.
DECIDERS: Mapping[str, Callable[..., Any]] = {
    "BUD-001": budget.over,
    "BUD-002": budget.over,
    "BUD-003": budget.over,
    "BUD-004": budget.over,
    "CAP-001": capabilities.ungranted,
    "CAP-005": ToolGuard._filled,
    "FSM-001": results._owed,
    "FSM-002": moves.expect,
    "FSM-003": terminal.absorbed,
    "FSM-008": leases.is_held,
    "FSM-011": fsm._delivered,
    "FSM-012": results._owed,
    "LOG-001": envelope._check,
    "LOG-002": envelope._check,
    "LOG-003": records._sealed_snapshot,
    "LOG-004": records._check_head,
    "LOG-011": ledgers.judged,
    "POL-004": advance.halting,
    "POL-010": ToolGuard._provenance,
    "POL-020": advance._held,
    "PRG-007": Advice.faults,
    "PRG-010": moves.expect_program,
    "PRG-011": fsm._exchanged,
}
# CPython 3.11 counts the depth of its syntax trees for all threads together (gh-106905): two that
# parse at once fail with a SystemError.
_PARSING = threading.Lock()
# What the deciding line names where it does not name the rule.
MARKS: Mapping[str, str] = {
    "FSM-008": "absorbed",
    "FSM-011": "DeliveryReceived",
    "LOG-011": "NOT_SEALED",
    "PRG-007": "ALLOW",
}


class Mention(NamedTuple):
    """A text in a function: a name or rule that it uses, or a sentence that it may write."""

    file: str
    function: str
    line: int
    value: str
    sentence: re.Pattern[str] | None = None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line} {self.function}"


def where(rule: str, *decisions: Decision, text: str = "") -> str:
    """``file.py:line function`` of what decided; empty for a rule that the index does not know.

    ``text`` is the refusal's; without it that of the decision that refused under this rule.
    Without any text, the line of the rule's deciding function that names it.
    """
    refusals = (each.refusal for each in decisions if each.refusal is not None)
    said = text or next((each.text for each in refusals if each.code == rule), "")
    found = written(rule, said) if said else ""
    function = DECIDERS.get(rule)
    return found or (place(function, MARKS.get(rule, rule)) if function is not None else "")


def decided_in(error: NanovmError) -> str:
    """``file.py:line function`` of the refusal that an error is, or that it repeats."""
    cause = error.__cause__
    if isinstance(cause, NanovmError) and cause.code == error.code:
        error = cause
    return where(error.code, text=error.text)


@functools.cache
def written(rule: str, text: str) -> str:
    """The place of the sentence in the source that wrote this text; empty where there is none."""
    coded = {each[:2] for each in _all() if rule and each.value == rule}
    found = [
        (each[:2] in coded, len(each.value), each.place)
        for each in _all()
        if each.sentence is not None and each.sentence.fullmatch(text)
    ]
    known, weight, at = max(found, default=(False, 0, ""))
    return at if known or weight >= WEIGHT_MIN else ""


def place(function: Callable[..., Any], mark: str) -> str:
    """Where this function names ``mark``; its first line, where it does not."""
    code = inspect.unwrap(function).__code__
    file = _shown(Path(code.co_filename))
    return named_in(file, code.co_name, mark) or f"{file}:{code.co_firstlineno} {code.co_name}"


def named_in(file: str, function: str, mark: str) -> str:
    """Where a function of this file names ``mark``; empty where it does not."""
    found = (each for each in _in_file(ROOT / file) if each[1:2] == (function,))
    return next((each.place for each in found if each.value == mark), "")


@functools.cache
def places(code: str) -> tuple[str, ...]:
    """Every ``file.py:line function`` in kernel and pipeline that names this rule."""
    return tuple(sorted({each.place for each in _all() if each.value == code}))


@functools.cache
def _all() -> tuple[Mention, ...]:
    roots = [Path(str(package.__file__)).parent for package in (nanovm_core, pipeline)]
    files = (path for root in roots for path in sorted(root.rglob("*.py")))
    return tuple(
        found for path in files if SKIPPED.isdisjoint(path.parts) for found in _in_file(path)
    )


def _in_file(path: Path) -> tuple[Mention, ...]:
    with _PARSING:
        return _mentions(path)


@functools.cache
def _mentions(path: Path) -> tuple[Mention, ...]:
    file, tree = _shown(path), ast.parse(path.read_text(encoding="utf-8"))
    named = dict(_named(tree))
    found = [Mention(file, name, line, value) for name, (value, line) in named.items()]
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                for value, sentence in _said(node, named):
                    line = getattr(node, "lineno", function.lineno)
                    found.append(Mention(file, function.name, line, value, sentence))
    return tuple(found)


def _said(
    node: ast.AST, named: Mapping[str, tuple[str, int]]
) -> Iterator[tuple[str, re.Pattern[str] | None]]:
    """The texts that one node stands for."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value, re.compile(re.escape(node.value))
    elif isinstance(node, ast.JoinedStr):
        parts = [each.value if isinstance(each, ast.Constant) else None for each in node.values]
        pattern = "".join(".*" if part is None else re.escape(str(part)) for part in parts)
        yield "".join(str(part) for part in parts if part is not None), re.compile(pattern, re.S)
    elif isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        yield name, None
        if name in named:
            yield named[name][0], None


def _named(tree: ast.Module) -> Iterator[tuple[str, tuple[str, int]]]:
    """A module's string constants, with line numbers."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name = target.id if isinstance(target, ast.Name) else ""
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                yield name, (node.value.value, node.lineno)
            for part in ast.walk(node.value):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield f"{name}[{part.value}]", (part.value, part.lineno)


def _shown(path: Path) -> str:
    """A file as it is named from the project's root."""
    return path.relative_to(ROOT).as_posix()
