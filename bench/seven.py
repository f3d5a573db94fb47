"""Seven trivial effects in a row: what durable runs are measured on."""

from collections.abc import Mapping
from typing import Any

STEPS = 7
ENVELOPES = 2 * STEPS + 2  # genesis, intent and result of each, terminal
HEAD = """
v = "nanovm-program/1"
name = "seven_steps"
first = "s0"
agent = "bench"

[limits]
steps_max = 100

[slots]
invoice = { type = "string" }
amount = { type = "integer" }
currency = { type = "string" }
customer = { type = "string" }
tier = { type = "string" }
country = { type = "string" }
note = { type = "string" }
result = { type = "string" }

[[budgets]]
scope = "workspace"
unit = "steps"
max = 1_000_000_000
"""
TOOL = """
[tools."t{i}".args]
invoice = {{ type = "string" }}
amount = {{ type = "integer", min = 1, max = 500 }}
note = {{ type = "string" }}
"""
STEP = """
[[steps]]
name = "s{i}"
kind = "effect"
tool = "t{i}"
args = {{ invoice = "invoice", amount = "amount", note = "note" }}
fills = ["result"]
next = [
  {{ when = "$slots.tier != 'gold' or $slots.amount > 500", to = "completed" }},
  {{ to = "{to}" }},
]
on_error = "failed"
"""
CONTEXT: Mapping[str, Any] = {
    "invoice": "inv-2026-000123",
    "amount": 499,
    "currency": "EUR",
    "customer": {"id": "cus_91", "tier": "gold", "country": "DE"},
    "note": "x" * 120,
}
POLICY = b'v = "nanovm-policy/1"\nname = "bench"\n'


def program() -> bytes:
    """Seven effects in a row, each with a guard behind it and a budget that counts it."""
    tools = "".join(TOOL.format(i=i) for i in range(STEPS))
    ends = [f"s{i + 1}" for i in range(STEPS - 1)] + ["completed"]
    return (HEAD + tools + "".join(STEP.format(i=i, to=to) for i, to in enumerate(ends))).encode()


def slots(context: Mapping[str, Any] = CONTEXT) -> dict[str, str | int | bool]:
    """The input of a run, in its slots."""
    given = {name: context[name] for name in ("invoice", "amount", "currency", "note")}
    person = context["customer"]
    return given | {"customer": person["id"], "tier": person["tier"], "country": person["country"]}
