"""Seven trivial effects in a row: what durable runs are measured on."""

from collections.abc import Mapping
from typing import Any

STEPS = 7
READS = (0, 1, 3)  # of the shared ones: those of the reader, as the steps of an invoice are
ENVELOPES = 2 * STEPS + 2  # genesis, intent and result of each, terminal
HEAD = """
v = "nanovm-program/1"
name = "{name}"
first = "s0"
agent = "{agent}"

[limits]
steps_max = 100

[slots]
invoice = {{ type = "string" }}
amount = {{ type = "integer" }}
currency = {{ type = "string" }}
customer = {{ type = "string" }}
tier = {{ type = "string" }}
country = {{ type = "string" }}
note = {{ type = "string" }}
result = {{ type = "string" }}

[[budgets]]
scope = "workspace"
unit = "steps"
max = 1_000_000_000
"""
TOOL = """
[tools."{tool}"]
{owner}
[tools."{tool}".args]
invoice = {{ type = "string" }}
amount = {{ type = "integer", min = 1, max = 500 }}
note = {{ type = "string" }}
"""
STEP = """
[[steps]]
name = "s{i}"
kind = "effect"
tool = "{tool}"
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


def program(*, shared: bool = False) -> bytes:
    """Seven effects in a row, each with a guard behind it and a budget that counts it.

    ``shared``: between a reader and a payer, who hand a run over three times.
    """
    name, agent = ("shared_steps", "payer") if shared else ("seven_steps", "bench")
    text = HEAD.format(name=name, agent=agent)
    for i, tool in enumerate(tools_of(shared=shared)):
        owner = 'agent = "reader"' if shared and i in READS else ""
        text += TOOL.format(tool=tool, owner=owner)
        text += STEP.format(i=i, tool=tool, to=f"s{i + 1}" if i + 1 < STEPS else "completed")
    return text.encode()


def tools_of(*, shared: bool) -> list[str]:
    """The tools of the program, of which each has its own."""
    return [f"{'u' if shared else 't'}{i}" for i in range(STEPS)]


def slots(context: Mapping[str, Any] = CONTEXT) -> dict[str, str | int | bool]:
    """The input of a run, in its slots."""
    given = {name: context[name] for name in ("invoice", "amount", "currency", "note")}
    person = context["customer"]
    return given | {"customer": person["id"], "tier": person["tier"], "country": person["country"]}
