"""Worlds to judge in, from a seed: tools, grants, rules, budgets, facts, and calls of all sorts."""

from collections.abc import Mapping
from random import Random
from typing import Any

from nanovm_core.core.authority.budget import Budget, Limits
from nanovm_core.core.authority.capabilities import (
    ArgSpec,
    Constraint,
    Grant,
    Money,
    Source,
    Tool,
    grant_id,
)
from nanovm_core.core.authority.policy import Policy, PolicyRule
from nanovm_core.core.gate import Facts
from nanovm_core.core.messages import Scalar
from nanovm_core.core.proposals import Call
from tests.core.gate.cashier import NOW_MS, rule
from tests.core.gate.gate_oracle import SCOPES, World
from tests.core.kit.builders import ref

MODES = dict.fromkeys(("amount", "currency", "status"), "clear")
MODES |= {"payee": "placeholder", "memo": "text", "secret": "hidden"}
CURRENCIES = ("EUR", "USD", "SEK", "XTS", "JPY")


def condition(dice: Random) -> str:
    n, listed = dice.choice((0, 50, 5_000, 10_000)), sorted(dice.sample(CURRENCIES, 3))
    return dice.choice(
        (
            f"$proposal.amount <= {n}",
            f"{n} < $proposal.amount or $slots.score >= {n}",
            f"$slots.currency in {listed}",
            f"not ($slots.blocked or $proposal.currency not in {listed})",
            *("$proposal.amount == $slots.amount", "$slots.status != 'open'", "$run.calls > 1"),
            *("$run.refused >= 2", "$agent == 'payer'", "$tool == 'mail'"),
            f"$workspace.left_minor < {n}",
        )
    )


def rules(dice: Random) -> list[PolicyRule]:
    """An allow rule or two, and what may stand against them."""
    found = []
    for place in range(dice.choice((1, 1, 2, 2, 3, 3, 4, 6))):
        plain = place == 0 and dice.random() < 0.8
        text = "$proposal.amount <= 10000" if plain else condition(dice)
        outcome = dice.choice(("allow", "hold", "suspend", "deny")) if place else "allow"
        given: dict[str, Any] = {"tools": frozenset({"pay"} if dice.random() < 0.5 else ())}
        given |= {"level": dice.choice(("hard", "soft")), "approvable": dice.random() < 0.5}
        given["check"] = ("permission", "anomaly")[place % 2]
        found.append(rule(f"r{place}", outcome, text, **given))
    dice.shuffle(found)
    return found


def tools(dice: Random) -> dict[str, Tool]:
    low, high = dice.choice((None, 1)), dice.choice((None, 9_999))
    args = {
        "amount": ArgSpec(type="integer", min=low, max=high),
        "currency": ArgSpec(type="string", length_max=3, one_of=dice.choice((None, CURRENCIES))),
        "payee": ArgSpec(type="ref"),
        "memo": ArgSpec(type="string", length_max=20),
    }
    critical = {name: Source(slot=name) for name in args}
    money = Money(amount="amount", currency="currency")
    if dice.random() < 0.15:
        critical["currency"] = Source(constant="EUR")
    if dice.random() < 0.2:
        args["urgent"] = ArgSpec(type="boolean", one_of=dice.choice((None, (False,))))
    if dice.random() < 0.2:
        del critical["memo"]
    if dice.random() < 0.15:
        del critical["currency"]
        args["currency"] = ArgSpec(type="string", length_max=9)
    if dice.random() < 0.1:
        money = Money(amount="amount", currency_is="USD")
    pay = Tool(name="pay", args=args, critical=critical, free=("urgent", "memo"), money=money)
    note = Tool(name="mail", args={"text": ArgSpec(type="string", length_max=30)}, free=("text",))
    return {"pay": pay, "mail": note, "wire": Tool(name="wire")}


def grants(dice: Random) -> dict[str, Grant]:
    where: dict[str, Constraint] = {}
    if dice.random() < 0.5:
        where["amount"] = Constraint(min=1, max=dice.choice((None, 6_000)))
    if dice.random() < 0.3:
        where["currency"] = Constraint(one_of=("EUR", "USD", 5))
    if dice.random() < 0.3:
        where["memo"] = dice.choice((Constraint(prefix="Inv"), Constraint(equals_slot="memo")))
    if dice.random() < 0.2:
        where["payee"] = Constraint(equals_slot=dice.choice(("payee", "payee", "secret")))
    expires_ms = dice.choice((*[0] * 40, NOW_MS, NOW_MS + 1))
    outer = Grant(tool="pay")
    lineage = (grant_id(outer),) if dice.random() < 0.3 else ()
    pay = Grant(tool="pay", where=where, expires_ms=expires_ms, narrowed_from=lineage)
    found = {"pay": pay, "mail": Grant(tool="mail")}
    return {name: found[name] for name in found if name == "pay" or dice.random() < 0.8}


def budgets(dice: Random) -> list[Budget]:
    found = []
    for scope in SCOPES:
        if dice.random() < 0.3:
            found.append(Budget(scope=scope, unit="calls", max=10))
        if dice.random() < (0.8 if scope == "workspace" else 0.4):
            currency = dice.choice(("", "", "EUR"))
            found.append(Budget(scope=scope, unit="money", max=9_000, currency=currency))
    return found


def world(dice: Random) -> World:
    """Half of the rules and of the budgets are the program's, half the operator's."""
    unseen = {name: "hidden" for name in ("payee", "memo") if dice.random() < 0.1}
    made, pots = rules(dice), budgets(dice)
    own, half = dice.randint(0, len(made)), len(pots) // 2
    lifts = tuple(f"r{place}" for place in range(6) if dice.random() < 0.1)
    theirs: dict[str, Any] = {
        "rules": tuple(made[own:]),
        "budgets": tuple(pots[half:]),
        "lifts": lifts,
    }
    return World(
        tools=tools(dice),
        grants=grants(dice),
        limits=Limits(money_minor_max=8_000, calls_max=4, wall_ms_max=1_000_000),
        slots={**MODES, **unseen},
        rules=tuple(made[:own]),
        windows=(),
        budgets=tuple(pots[:half]),
        policy=Policy(name="operator", hash="0" * 64, **theirs),
    )


def facts(dice: Random, of: World) -> Facts:
    slots: dict[str, Scalar] = {
        "amount": dice.choice((1, *[50] * 4, *[5_000] * 6, 7_000, 20_000)),
        "currency": dice.choice(("EUR", "EUR", "EUR", "USD", "SEK", "XTS")),
        "payee": ref(1),
        "memo": dice.choice(("Invoice 7",) * 8 + ("Rent", "{{secret}}")),
        "status": "open",
        "secret": ref(9),
        "blocked": dice.random() < 0.1,
        "score": dice.choice((0, 3, 60)),
    }
    if dice.random() < 0.05:
        slots.pop(dice.choice(sorted(slots)))
    accounts = [f"{s}/{u}" for s in SCOPES for u in (*CURRENCIES, "calls")]
    ids = [grant_id(grant) for grant in of.grants.values()]
    lineage = [name for grant in of.grants.values() for name in grant.narrowed_from]
    return Facts(
        slots=slots,
        ledger={name: dice.choice((0, 1, *[9_000] * 20)) for name in accounts
                if dice.random() < 0.98},
        used={"calls": dice.choice((0, 0, 1, 2, 3, 3, 4)), "EUR": dice.choice((0, 0, 2_000))},
        agent=dice.choice(("payer", "other")),
        at_ms=NOW_MS,
        approved=tuple(f"r{place}" for place in range(6) if dice.random() < 0.3),
        revoked=frozenset(dice.sample([*ids, *lineage], 1) if dice.random() < 0.04 else ()),
        refused=dice.randint(0, 2),
        started_ms=NOW_MS - dice.choice((10, 999_999, 1_000_000)) if dice.random() < 0.2 else 0,
    )  # fmt: skip


ODD = (
    *(None, True, False, 1, 0, -1, "", "5000", "EUR", "eur", "calls", 2**60, ["EUR"], "x" * 300),
    *("{{payee}}", "{{secret}}", "{{absent}}", "{{amount}}", "{{ payee }}", "{{memo}}", 5_000),
)
NEAR: Mapping[str, tuple[Any, ...]] = {
    "amount": (5_001, 49, 51, True),
    "currency": CURRENCIES,
    "payee": (ref(2), ref(9), "{{secret}}", None),
    "memo": ("Invoice 8", "Invoice 7 ", "{{status}}", None),
}


def proposal(dice: Random, of: World, known: Facts) -> Call:
    """The faithful call, changed in nothing, or in a thing or two."""
    if dice.random() < 0.08:
        name = dice.choice(("mail", "wire", "Pay", "pay "))
        return Call(name, {"text": dice.choice(("Hello", 5, "x" * 31, "{{status}}"))})
    args: dict[str, Any] = {
        name: known.slots.get(name, 1) if source.slot else source.constant
        for name, source in of.tools["pay"].critical.items()
    }
    usual = {"urgent": False, "memo": "Invoice 7", "currency": "EUR"}
    args |= {name: usual[name] for name in of.tools["pay"].args if name not in args}
    for name in ("payee", "memo"):
        if dice.random() < 0.3:
            args[name] = "{{" + name + "}}"
    for _ in range(dice.choice((*[0] * 7, 1, 1, 2))):
        name = dice.choice((*args, "extra"))
        if dice.random() < 0.15:
            args.pop(name, None)
        else:
            args[name] = dice.choice(NEAR.get(name, ODD) if dice.random() < 0.7 else ODD)
    return Call("pay", args)
