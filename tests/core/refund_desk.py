"""The refund desk of ``examples/``, its files changed in places, for tests of what is in memory."""

import json

from examples.refund_desk.desk import FOLDER, ORDERS
from nanovm_core.loading import load_policy, load_program
from nanovm_core.messages import Scalar
from nanovm_core.program import Program

PROGRAM = (FOLDER / "program.toml").read_text(encoding="utf-8")
POLICY = (FOLDER / "policy.toml").read_text(encoding="utf-8")
TOOL = "refund.issue"


def desk_with(*edits: tuple[str, str], more: str = "", policy: str = POLICY) -> Program:
    """The desk with these texts exchanged, in its program or in its policy, and more rules."""
    program, rules = PROGRAM, policy + more
    for old, new in edits:
        assert program.count(old) + rules.count(old) == 1, f"{old!r} is not there once"
        program, rules = program.replace(old, new), rules.replace(old, new)
    loaded = load_program(program.encode())
    return loaded.under(load_policy(rules.encode(), loaded))


def slots_of(order: str = "A-1", **changes: Scalar) -> dict[str, Scalar]:
    """What the desk's own steps produce for an order."""
    return {"order": order, **ORDERS[order], **changes}


def args_of(order: str = "A-1", **changes: object) -> dict[str, object]:
    """The faithful arguments for an order; None leaves one out."""
    known = ORDERS[order]
    good = {"order": order, "amount_minor": known["paid_minor"], "currency": known["currency"]}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def call_of(order: str = "A-1", tool: str = TOOL, **changes: object) -> bytes:
    """What a model says that proposes this."""
    return json.dumps({"tool": tool, "args": args_of(order, **changes)}).encode()
