"""A refund desk: a program that uses all that a program can have, and nothing of invoices."""

from nanovm_core.errors import ProgramError
from nanovm_core.loading import load_program

DESK = """\
v = "nanovm-program/1"
name = "refund_desk"
first = "look_up"
agent = "desk"
policy = "policies/desk.toml"
[limits]
proposals_max = 2
money_minor_max = 50_000
[slots]
order = { type = "ref" }
total_minor = { type = "integer", model = "clear" }
customer = { type = "ref", model = "placeholder" }
is_vip = { type = "boolean" }
answer = { type = "string" }
receipt = { type = "ref" }
[tools."orders.look_up".args]
order = { type = "ref" }
[tools."model.ask"]
[tools."refunds.pay"]
critical = { amount_minor = "total_minor", payee = "customer", currency = { constant = "EUR" } }
free = ["note"]
money = { amount = "amount_minor", currency = "currency" }
[tools."refunds.pay".args]
amount_minor = { type = "integer", min = 1, max = 50_000 }
currency = { type = "string", length_max = 3, one_of = ["EUR", "USD"] }
payee = { type = "ref" }
note = { type = "string", length_max = 80 }
urgent = { type = "boolean" }
reason = { type = "string" }
[tools."refunds.tell".args]
text = { type = "string" }
[[grants]]
tool = "refunds.pay"
expires_ms = 1_900_000_000_000
[grants.where]
amount_minor = { min = 1, max = 50_000 }
urgent = { one_of = [false] }
reason = { prefix = "r", equals_slot = "answer" }
[[rules]]
id = "too-much"
at = "authorize"
outcome = "deny"
tools = ["refunds.pay"]
when = "$proposal.amount_minor > 50000 or $workspace.left_minor < 0"
why = "The desk pays back no more than 500.00."
[[rules]]
id = "calm"
level = "soft"
at = "admission"
outcome = "hold"
approvable = true
when = "$history.calls_1m > 5 and $history.failed >= 3"
why = "Something is wrong; a person should look."
[[facts]]
name = "large"
when = "$slots.is_vip"
[[windows]]
name = "calls_1m"
counts = "calls"
within_ms = 60_000
[[windows]]
name = "failed"
counts = "failures_in_a_row"
scope = "agent"
[[budgets]]
scope = "workspace"
unit = "money"
currency = "EUR"
max = 1_000_000
[[budgets]]
scope = "global"
unit = "calls"
max = 100
[[steps]]
name = "look_up"
kind = "effect"
tool = "orders.look_up"
args = { order = "order" }
fills = ["total_minor", "customer", "is_vip"]
next = "sort"
on_error = "failed"
[[steps]]
name = "sort"
kind = "pure"
next = [
  { when = "$slots.total_minor <= 0", to = "completed" },
  { when = "not $slots.is_vip", to = "confirm" },
  { to = "ask" },
]
[[steps]]
name = "confirm"
kind = "wait"
fills = ["answer"]
timeout_ms = 86_400_000
next = "ask"
on_error = "apologise"
[[steps]]
name = "ask"
kind = "model"
tool = "model.ask"
accepts = ["refunds.pay"]
next = "judge"
on_error = "apologise"
tokens_max = 500
[[steps]]
name = "judge"
kind = "pure"
authorizes = "ask"
next = [{ when = "$run.calls > 3", to = "apologise" }, { to = "pay" }]
[[steps]]
name = "pay"
kind = "effect"
call = "authorized"
args = { order = "order" }
fills = ["receipt"]
drops = ["answer"]
next = "completed"
on_error = "apologise"
timeout_ms = 60_000
retry = { attempts_max = 3, backoff_ms = 500 }
[[steps]]
name = "apologise"
kind = "effect"
tool = "refunds.tell"
args = { text = "answer" }
next = "completed"
on_error = "failed"
"""


def changed(*changes: str) -> str:
    """The desk with the first of each old text made new: old, new, old, new, …"""
    text = DESK
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def error_of(text: str) -> ProgramError:
    """What the loader says of a program."""
    try:
        load_program(text.encode())
    except ProgramError as error:
        return error
    raise AssertionError("it loads")


def place(text: str, at: str) -> tuple[int, int]:
    """Line and column of the first ``at`` in a text."""
    before = text[: text.index(at)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def check(
    text: str, at: str, said: str, code: str = "PRG-002", *, error: ProgramError | None = None
) -> None:
    """The one fault of a text: at this place, in these words."""
    found = error or error_of(text)
    assert said in found.text
    assert (found.code, found.line, found.column) == (code, *place(text, at)), found.text
    assert found.text.startswith(f"line {found.line}, column {found.column}: ")
    assert len(found.faults) == 1, found.faults


def check_one(text: str, at: str, said: str, code: str = "PRG-002") -> None:
    """One of the faults of a text: at this place, in these words."""
    found = [fault for fault in error_of(text).faults if said in fault.text]
    assert [(each.code, each.line, each.column) for each in found] == [(code, *place(text, at))]
