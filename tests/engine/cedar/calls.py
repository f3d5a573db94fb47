"""Policies and calls from a seed, and what our rules and Cedar say of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from engine.cedar.port import CedarDecider
from nanovm_core.conditions import parse
from nanovm_core.core.authority import policy as kernel
from nanovm_core.core.authority.policy import ADMISSION, AUTHORIZE, OUTCOME, PolicyRule
from nanovm_core.core.gate import Facts
from nanovm_core.core.messages import Scalar
from nanovm_core.core.program import SLOT_TYPES, Program
from nanovm_core.errors import RefusedError
from tests.core.kit.builders import FACTS

ALLOW, DENY = "allow", "deny"
PAY, MAIL = "stripe.create_payment_intent", "notify.send_email"
ARGS: Mapping[str, Mapping[str, Scalar]] = {
    PAY: {"amount_minor": 100, "currency": "EUR", "payee": "p", "memo": "m"},
    MAIL: {"to": "t", "subject": "s", "body": "b"},
}
GOOD: Mapping[str, Scalar] = {  # where nothing stops a run
    **{f"slots.{name}": value for name, value in FACTS.items()},
    **{f"history.{name}": 0 for name in ("eur_24h", "calls_1m", "failing")},
    "agent": "payer",
    "run.calls": 0,
    "run.refused": 0,
    "workspace.left_minor": 9_000,
}
USUAL: Mapping[type, tuple[Scalar, ...]] = {
    bool: (True, False),
    int: (-1, 0, 3, 2**53 - 1),
    str: ("", "EUR", 'a "*" of ä', "open"),
}
SIGNS = ("==", "!=", "<", "<=", ">", ">=")


class Case(NamedTuple):
    """What is judged; without a ``tool``, whether the model may be asked."""

    tool: str
    values: Mapping[str, Scalar | None]  # by variable; None is missing
    approved: tuple[str, ...]

    def part(self, first: str) -> dict[str, Scalar]:
        found = {path.partition(".")[::2]: value for path, value in self.values.items()}
        return {name: value for (of, name), value in found.items()
                if of == first and value is not None}  # fmt: skip

    def context(self, program: Program) -> Mapping[str, object]:
        """What the gate itself has rules read."""
        args = {**ARGS.get(self.tool, {}), **self.part("proposal")}
        agent, run, history = str(self.values["agent"]), self.part("run"), self.part("history")
        by = program.acting(self.tool, agent)
        windows = (*program.windows, *program.policy.windows)
        counts: Any = {w.named(by): history[w.name] for w in windows if w.name in history}
        left: Any = self.part("workspace").values()
        origins: Any = self.part("origin")
        facts = Facts(
            slots=self.part("slots"),
            origins=origins,
            counts=counts,
            agent=agent,
            used={"calls": int(run["calls"])},
            refused=int(run["refused"]),
            ledger={f"workspace/{args.get('currency')}": each for each in left},
        )
        if not self.tool:
            return program.gate.context(facts)
        return program.gate._guard(self.tool).reads(facts, args)


def ours(program: Program, case: Case) -> str:
    """What our rules say: allow, deny, or the id of the rule that holds."""
    return said(
        lambda: kernel.verdict(judging(program, case), case.context(program), case.approved)
    )


def cedars(program: Program, decider: CedarDecider, case: Case) -> str:
    """What Cedar says of the same."""
    at = AUTHORIZE if case.tool else ADMISSION
    return said(lambda: decider.judge(at, case.context(program), case.approved))


def judging(program: Program, case: Case) -> Sequence[PolicyRule]:
    """The rules that judge a case."""
    if case.tool:
        return program.gate._guard(case.tool).rules
    rules = kernel.in_force(program.rules, program.policy)
    return [rule for rule in rules if rule.at == ADMISSION]


def said(judge: Callable[[], kernel.Outcome]) -> str:
    try:
        found = judge()
    except RefusedError:
        return DENY
    if found.hold is None:
        return ALLOW
    return found.hold.id if found.hold.outcome == kernel.HOLD else DENY  # Cedar suspends nobody


def cases(program: Program, dice: Random, count: int) -> Iterator[Case]:
    """Cases about one rule each: what it reads is near what it says, missing, or something else."""
    rules = [rule for rule in kernel.in_force(program.rules, program.policy) if rule.at != OUTCOME]
    facts = {f"fact.{f.name}": f.when for f in (*program.facts, *program.policy.facts)}
    types = {path: kind for tool in ("", *ARGS) for path, kind in types_of(program, tool).items()}
    for _ in range(count):
        rule = dice.choice(rules)
        read, near = [rule.when], dict[str, list[Scalar]]()
        for condition in read:
            read += [facts[path] for path in condition.variables if path in facts]
            for path in condition.variables:
                near.setdefault(path, [])
            for found in condition.comparisons():
                near[found.variable] += _near(found.literal)
        values: dict[str, Scalar | None] = {**GOOD}
        for path in sorted(near.keys() - facts.keys() - {"tool"}):
            if dice.random() < 0.75:
                usual = USUAL[SLOT_TYPES[types[path]]]
                values[path] = dice.choice((*near[path], *near[path], dice.choice(usual)))
                if dice.random() < 0.1 and path.partition(".")[0] in ("slots", "origin", "history"):
                    values[path] = None
        tool = dice.choice(sorted(rule.tools or ARGS)) if rule.at == AUTHORIZE else ""
        ids = [each.id for each in rules if dice.random() < (0.4 if each is rule else 0.1)]
        yield Case(tool, values, tuple(ids))


def types_of(program: Program, tool: str) -> dict[str, str]:
    """What a rule may read: at admission without a ``tool``."""
    scope = program.scope(program.policy)
    more = scope.proposal_types(program.tools[tool]) if tool else {}
    found = {**scope.guard_types(), **more}
    advised = program.advice.paths((*program.facts, *program.policy.facts))
    return {path: found[path] for path in found.keys() - advised}


def _near(value: object) -> list[Scalar]:
    if isinstance(value, tuple):
        return [near for each in value for near in _near(each)]
    if type(value) is int:
        return [value - 1, value, value + 1]
    return [value] if isinstance(value, bool | str) else []


# --- policies --------------------------------------------------------------------------------


def drawn(program: Program, dice: Random) -> Program:
    """The program under facts and rules of all sorts; half of its own soft rules are lifted."""
    soft = [rule.id for rule in program.rules if rule.level == kernel.SOFT]
    base = replace(program.policy, rules=(), facts=(), lifts=tuple(soft[::2]))
    for place in range(dice.randint(0, 3)):
        known = types_of(program.under(base), "")
        fact = kernel.Fact(name=f"f{place}", when=parse(_condition(dice, known, 2)))
        base = replace(base, facts=(*base.facts, fact))
    under = program.under(base)
    rules = [_rule(under, dice, place) for place in range(dice.randint(3, 7))]
    return program.under(replace(base, rules=tuple(rules)))


def _rule(program: Program, dice: Random, place: int) -> PolicyRule:
    at = dice.choice((ADMISSION, AUTHORIZE, AUTHORIZE))
    tool = dice.choice((PAY, PAY, MAIL)) if at == AUTHORIZE else ""
    return PolicyRule(
        id=f"r{place}",
        at=at,
        outcome=dice.choice(("allow", "allow", "hold", "hold", "suspend", "deny")),
        when=parse(_condition(dice, types_of(program, tool), 3)),
        why=f'Rule {place}\nof \\ "many".',
        approvable=dice.random() < 0.5,
        tools=frozenset([tool] if tool else ()),
    )


def _condition(dice: Random, types: Mapping[str, str], depth: int) -> str:
    """A condition that fits these types; few of its variables are always missing."""
    if depth and dice.random() < 0.7:
        parts = [_condition(dice, types, depth - 1) for _ in range(dice.randint(2, 3))]
        joined = dice.choice((" and ", " or ")).join(f"({part})" for part in parts)
        return dice.choice((joined, joined, f"not ({joined})", f"({joined}) != true"))
    known = sorted(types.keys() & GOOD.keys() if dice.random() < 0.93 else types)
    path = dice.choice(known)
    kind = SLOT_TYPES[types[path]]
    same = [each for each in sorted(types) if SLOT_TYPES[types[each]] is kind]
    return dice.choice(tuple(_about(dice, f"${path}", f"${dice.choice(same)}", kind)))


def _about(dice: Random, one: str, other: str, kind: type) -> Iterator[str]:
    value, more = (_text(each) for each in dice.sample(USUAL[kind], 2))
    yield f"{one} {dice.choice(SIGNS[:2])} {other}"
    yield f"{one} {dice.choice(('in', 'not in'))} [{value}, {more}]"
    yield f"{value} {dice.choice(SIGNS[:2])} {one}"
    if kind is int:
        yield f"{one} {dice.choice(SIGNS)} {dice.choice((other, value, '100', '-7'))}"
        yield f"{value} {dice.choice(SIGNS)} {one}"
    elif kind is str:
        yield f"{one} {dice.choice(('contains', 'contains'))} {value}"
        yield f"""{dice.choice(("'*'", "'EU'", "'a'"))} {dice.choice(("in", "not in"))} {one}"""
    else:
        yield from (one, f"not {one}")
    yield f"{one} in [] or 1 < 2 and {more} == {one}"


def _text(value: Scalar) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value).lower()
