"""Where in the source a rule is decided: read from the code that runs, not written down."""

import dis
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nanovm_core.core import capabilities, envelope, fsm
from nanovm_core.core.fsm import drafts, results, terminal
from nanovm_core.core.messages import Decision
from pipeline.store import leases, records

DECIDERS: Mapping[str, Callable[..., Any]] = {
    "CAP-001": capabilities.resolve,
    "FSM-001": results._owed,
    "FSM-002": drafts.expect,
    "FSM-003": terminal.absorbed,
    "FSM-008": leases.is_held,
    "FSM-011": fsm._delivered,
    "FSM-012": results._owed,
    "LOG-001": envelope._check,
    "LOG-002": envelope._check,
    "LOG-003": records._sealed_snapshot,
    "LOG-004": records._check_head,
    "PRG-010": drafts.expect_program,
    "PRG-011": fsm._exchanged,
}


# Where the deciding line does not name the rule, this is what it names.
MARKS: Mapping[str, str] = {"FSM-008": "absorbed", "FSM-011": "DeliveryReceived"}

ROOT = Path(__file__).resolve().parents[2]
CONSTANTS = frozenset({"LOAD_CONST", "RETURN_CONST", "KW_NAMES"})


def where(rule: str, *decisions: Decision) -> str:
    """``file.py:line function`` of what decided.

    A refusal that was decided in this process says it itself; else it is the line of the
    deciding function that names the rule, or that function's first line.
    """
    for decision in decisions:
        if decision.refusal is not None and decision.refusal.code == rule:
            return decision.refusal.where
    function = DECIDERS.get(rule)
    return place(function, MARKS.get(rule, rule)) if function is not None else ""


def place(function: Callable[..., Any], mark: str) -> str:
    """Where this function names ``mark``; its first line, where it does not."""
    code = function.__code__
    file = Path(code.co_filename).relative_to(ROOT).as_posix()
    return f"{file}:{_line(function, mark)} {code.co_name}"


def _line(function: Callable[..., Any], mark: str) -> int:
    first: int = function.__code__.co_firstlineno
    lines = (
        each.positions.lineno
        for each in dis.get_instructions(function)
        if each.opname in CONSTANTS and _names(each.argval, mark) and each.positions is not None
    )
    return next((line for line in lines if line is not None), first)


def _names(value: object, mark: str) -> bool:
    return value == mark or (isinstance(value, tuple) and mark in value)
