"""The measured program: a payment, a policy of five rules, and a run of it."""

from collections.abc import Mapping

from nanovm_core.core.events import Context, Event, RunStarted
from nanovm_core.core.fsm import begin, transition
from nanovm_core.core.messages import Commitment, RunId, Scalar, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.loading import load_policy, load_program

RUN = RunId("01990000-0000-7000-8000-000000000001")
START_MS = 1_700_000_000_000
LEDGER: Mapping[str, int] = {"workspace/EUR": 100_000_000}
CONTEXT = Context(at_ms=START_MS, by_holder=True, ledger=LEDGER)

POLICY = b"""
v = "nanovm-policy/1"
name = "bench"

[[windows]]
name = "calls_1m"
counts = "calls"
within_ms = 60_000

[[rules]]
id = "payable"
at = "admission"
outcome = "allow"
when = "$slots.pay_status == 'open'"
why = "The invoice is open."

[[rules]]
id = "within-limit"
at = "authorize"
outcome = "allow"
when = "$proposal.amount_minor > 0 and $proposal.amount_minor <= 1000000"
why = "Up to 10,000.00."

[[rules]]
id = "currency"
at = "authorize"
outcome = "deny"
when = "$slots.currency not in ['EUR', 'USD', 'GBP', 'CHF']"
why = "Not in this currency."

[[rules]]
id = "status"
at = "authorize"
outcome = "deny"
when = "$slots.pay_status != 'open'"
why = "Not payable."

[[rules]]
id = "rate"
at = "authorize"
outcome = "deny"
when = "$history.calls_1m > 5"
why = "Too many calls in a minute."

[[rules]]
id = "blocked"
at = "authorize"
outcome = "deny"
when = "$slots.payee_blocked"
why = "The payee is blocked."
"""

PROGRAM = b"""
v = "nanovm-program/1"
name = "bench_payment"
first = "receive"
agent = "payer"

[limits]
proposals_max = 3
money_minor_max = 1_000_000_000

[slots]
document = { type = "ref" }
size_bytes = { type = "integer" }
pay_status = { type = "string", model = "clear" }
currency = { type = "string", model = "clear" }
amount_minor = { type = "integer", model = "clear" }
payee_blocked = { type = "boolean" }
payee = { type = "string", model = "clear" }
memo = { type = "string", model = "clear" }
payment = { type = "string" }

[tools."document.receive"]
args = { document = { type = "ref" } }
[tools."invoice.extract"]
args = { document = { type = "ref" } }
[tools."model.propose"]

[tools."bank.pay"]
critical = { amount_minor = "amount_minor", currency = "currency", payee = "payee", memo = "memo" }
money = { amount = "amount_minor", currency = "currency" }
[tools."bank.pay".args]
amount_minor = { type = "integer", min = 1, max = 999_999_999_999 }
currency = { type = "string", length_max = 3 }
payee = { type = "string", length_max = 140 }
memo = { type = "string", length_max = 140 }

[[grants]]
tool = "bank.pay"
where = { amount_minor = { min = 1 } }

[[budgets]]
scope = "workspace"
unit = "money"
max = 100_000_000

[[steps]]
name = "receive"
kind = "effect"
tool = "document.receive"
args = { document = "document" }
fills = ["size_bytes"]
next = "extract"
on_error = "failed"

[[steps]]
name = "extract"
kind = "effect"
tool = "invoice.extract"
args = { document = "document" }
fills = ["pay_status", "currency", "amount_minor", "payee_blocked", "payee", "memo"]
next = "propose"
on_error = "failed"

[[steps]]
name = "propose"
kind = "model"
tool = "model.propose"
accepts = ["bank.pay"]
next = "authorize"
on_error = "failed"

[[steps]]
name = "authorize"
kind = "pure"
authorizes = "propose"
next = "pay"

[[steps]]
name = "pay"
kind = "effect"
call = "authorized"
fills = ["payment"]
next = "completed"
on_error = "failed"
"""

ARGS: Mapping[str, Scalar] = {
    "amount_minor": 128_450,
    "currency": "EUR",
    "payee": "ACME Tools GmbH",
    "memo": "Invoice 2023-117",
}
FACTS: Mapping[str, Scalar] = {**ARGS, "pay_status": "open", "payee_blocked": False}
DOCUMENT = Commitment(
    slot="document", ref="vault://secret/00000000-0000-4000-8000-000000000001", c="1" * 64
)


def program() -> Program:
    """The payment program under the five rules."""
    return load_program(PROGRAM).under(load_policy(POLICY))


def started(under: Program) -> Snapshot:
    """A run whose first effect is owed."""
    slots = {"document": DOCUMENT.ref} if "document" in under.slots else {}
    secrets = [DOCUMENT] if slots else []
    born = begin(under, RUN, slots, secrets, at_ms=START_MS, actor="visitor")
    return fed(under, born.snapshot, RunStarted())


def fed(under: Program, now: Snapshot, event: Event, context: Context = CONTEXT) -> Snapshot:
    """The run after an event that must not be refused: a refusal would be measured for it."""
    decision = transition(under, now, event, context)
    if decision.refusal is not None:
        raise AssertionError(f"{decision.refusal.code}: {decision.refusal.text}")
    return decision.snapshot


def chain(length: int, slots: int = 1) -> bytes:
    """A program of so many effect steps in a row, each filling one of so many slots in turn."""
    head = (
        'v = "nanovm-program/1"\nname = "chain"\nfirst = "s0"\n[limits]\nsteps_max = 20_000\n'
        '[tools."work.do"]\n[slots]\n'
    )
    filled = "".join(f'n{place} = {{ type = "integer" }}\n' for place in range(slots))
    return (head + filled + "".join(_link(at, length, slots) for at in range(length))).encode()


def _link(place: int, length: int, slots: int) -> str:
    following = f"s{place + 1}" if place + 1 < length else "completed"
    return (
        f'[[steps]]\nname = "s{place}"\nkind = "effect"\ntool = "work.do"\n'
        f'fills = ["n{place % slots}"]\nnext = "{following}"\non_error = "failed"\n'
    )
