"""The five rules in Cedar's language and in Rego, and the contexts that all are given."""

from collections.abc import Mapping

Context = dict[str, dict[str, object]]
CEDAR = """
@id("within-limit") @why("Up to 10,000.00.")
permit(principal, action == Action::"authorize", resource)
when { context.proposal.amount_minor > 0 && context.proposal.amount_minor <= 1000000 };
@id("currency") @why("Not in this currency.")
forbid(principal, action == Action::"authorize", resource)
when { !(["EUR", "USD", "GBP", "CHF"].contains(context.slots.currency)) };
@id("status") @why("Not payable.")
forbid(principal, action == Action::"authorize", resource)
when { context.slots.pay_status != "open" };
@id("rate") @why("Too many calls in a minute.")
forbid(principal, action == Action::"authorize", resource)
when { context.history.calls_1m > 5 };
@id("blocked") @why("The payee is blocked.")
forbid(principal, action == Action::"authorize", resource)
when { context.slots.payee_blocked };
"""
SCHEMA = """
entity Agent; entity Workspace;
action authorize appliesTo { principal: Agent, resource: Workspace, context: {
  slots: { currency: String, pay_status: String, payee_blocked: Bool },
  proposal: { amount_minor: Long }, history: { calls_1m: Long } } };
"""
OVERFLOW = """
@id("twice") @why("Twice the amount is too much.")
forbid(principal, action == Action::"authorize", resource)
when { context.proposal.amount_minor * 2 > 1000000 };
@id("all") @why("All else.") permit(principal, action, resource);
"""
REGO = """
package nanovm
default allow := false
permitted if { input.proposal.amount_minor > 0; input.proposal.amount_minor <= 1000000 }
deny contains "currency" if { not input.slots.currency in {"EUR", "USD", "GBP", "CHF"} }
deny contains "status" if { input.slots.pay_status != "open" }
deny contains "rate" if { input.history.calls_1m > 5 }
deny contains "blocked" if { input.slots.payee_blocked }
allow if { permitted; count(deny) == 0 }
"""
CONTEXT: Context = {
    "slots": {"currency": "EUR", "pay_status": "open", "payee_blocked": False},
    "proposal": {"amount_minor": 128_450},
    "history": {"calls_1m": 0},
}
GONE = object()
# what is wrong with the context: (part, name, value)
CASES: Mapping[str, tuple[str, str, object] | None] = {
    "nothing": None,
    "the payee is blocked": ("slots", "payee_blocked", True),
    "`payee_blocked` is missing (a deny reads it)": ("slots", "payee_blocked", GONE),
    '`payee_blocked` is the text "true"': ("slots", "payee_blocked", "true"),
    "`calls_1m` is missing (a deny reads it)": ("history", "calls_1m", GONE),
    '`calls_1m` is the text "9"': ("history", "calls_1m", "9"),
    "`currency` is missing (a deny reads it)": ("slots", "currency", GONE),
    "`pay_status` is missing (a deny reads it)": ("slots", "pay_status", GONE),
    "`amount_minor` is missing (the allow reads it)": ("proposal", "amount_minor", GONE),
    '`amount_minor` is the text "5"': ("proposal", "amount_minor", "5"),
    "`amount_minor` is 1.5": ("proposal", "amount_minor", 1.5),
    "`amount_minor` is true": ("proposal", "amount_minor", True),
}
MISSPELT = ("payee_blocked", "payee_blokced")
HOLDS = """
@id("large") @why("A person looks at it first.") @outcome("hold") @approvable("true")
forbid(principal, action == Action::"authorize", resource)
when { context.proposal.amount_minor > 100000 };
"""


def spoilt(fault: tuple[str, str, object] | None) -> Context:
    """The good context with one fault."""
    context = {part: dict(values) for part, values in CONTEXT.items()}
    if fault is not None:
        part, name, value = fault
        context[part].pop(name)
        context[part].update({} if value is GONE else {name: value})
    return context


def misspelt(policy: str) -> str:
    """A policy with one variable of a deny rule misspelt."""
    wrong = policy.replace(*MISSPELT)
    if wrong == policy:
        raise AssertionError("The policy does not name the variable that is to be misspelt.")
    return wrong
