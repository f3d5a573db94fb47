"""Advice can make a verdict stricter, never more permissive: by proof (PRG-007), and by trial."""

from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random

import pytest

from nanovm_core.core.authority.policy import ALLOW, DENY, HOLD, SUSPEND, Outcome
from nanovm_core.core.gate import Facts
from nanovm_core.core.messages import Scalar
from nanovm_core.core.program import Program
from nanovm_core.core.proposals import Call
from nanovm_core.errors import ProgramError, RefusedError
from nanovm_core.judge import judge
from nanovm_core.loading import load_policy, load_program
from nanovm_core.policy_tests import run_examples
from tests.core.gate.test_decider import Engine

# An advisor says risk and kind; what is derived from them rests on advice too, endorsed or not.
PROGRAM = """
v = "nanovm-program/1"
name = "advised"
first = "read"
[limits]
proposals_max = 3
money_minor_max = 1_000_000
[slots]
amount = { type = "integer" }
payee = { type = "string", origin = "register" }
vip = { type = "boolean", model = "clear" }
risk = { type = "integer" }
kind = { type = "string" }
tier = { type = "integer", origin = "register" }
grade = { type = "integer" }
spare = { type = "integer" }
[tools.read]
[tools.advise]
origin = "advisor"
[tools.rate.args]
risk = { type = "integer" }
[tools.again.args]
tier = { type = "integer" }
[tools.ask]
[tools.tell]
[tools.pay]
critical = { amount = "amount", payee = { slot = "payee", origin = "register" } }
free = ["note"]
money = { amount = "amount", currency_is = "EUR" }
[tools.pay.args]
amount = { type = "integer" }
payee = { type = "string" }
note = { type = "integer" }
[[grants]]
tool = "pay"
where = { amount = { min = 1 } }
[[grants]]
tool = "tell"
[[budgets]]
scope = "workspace"
unit = "money"
max = 1_000
[[windows]]
name = "calls"
counts = "calls"
within_ms = 60_000
[[facts]]
name = "large"
when = "$slots.amount > 60"
[[facts]]
name = "risky"
when = "$slots.risk > 50"
[[facts]]
name = "doubtful"
when = "$fact.risky or $slots.amount > 99"
[[steps]]
name = "read"
kind = "effect"
tool = "read"
fills = ["amount", "payee", "vip", "risk"]
endorses = { payee = "register" }
next = "advise"
on_error = "failed"
[[steps]]
name = "advise"
kind = "effect"
tool = "advise"
fills = ["risk", "kind"]
drops = ["spare"]
next = "rate"
on_error = "rate"
[[steps]]
name = "rate"
kind = "effect"
tool = "rate"
args = { risk = "risk" }
fills = ["tier"]
endorses = { tier = "register" }
next = "again"
on_error = "failed"
[[steps]]
name = "again"
kind = "effect"
tool = "again"
args = { tier = "tier" }
fills = ["grade"]
next = "ask"
on_error = "failed"
[[steps]]
name = "ask"
kind = "model"
tool = "ask"
accepts = ["pay"]
next = "judge"
on_error = "failed"
[[steps]]
name = "judge"
kind = "pure"
authorizes = "ask"
next = "pay"
[[steps]]
name = "pay"
kind = "effect"
call = "authorized"
next = [{ when = "$slots.vip", to = "tell" }, { to = "completed" }]
on_error = "failed"
[[steps]]
name = "tell"
kind = "effect"
tool = "tell"
next = "completed"
on_error = "failed"
"""
RULE = """
[[rules]]
id = "{id}"
at = "{at}"
outcome = "{outcome}"
when = "{when}"
why = "x"
{more}
"""
POLICY = 'v = "nanovm-policy/1"\nname = "p"\n'
STRICT = {ALLOW: 0, HOLD: 1, SUSPEND: 2, DENY: 3}
SLOTS: Mapping[str, Scalar] = {"amount": 70, "payee": "p", "vip": True}
FACTS = Facts(agent="advised", counts={"calls": 1}, ledger={"workspace/EUR": 1_000},
              origins={"payee": "register", "risk": "advisor"})  # fmt: skip
ADVISED = ("risk", "kind", "tier", "grade", "spare", "risky", "doubtful", "mine")  # by hand
PLAIN = (
    "$slots.amount > 60",
    "$slots.vip",
    "$fact.large",
    "$proposal.amount <= 70",
    "true",
    "$history.calls > 0",
    "$run.refused > 0",
    "$proposal.note != 7",
    "$origin.payee == 'x'",
)
READ = ("$slots.risk >= 70", "$slots.risk < 30", "not $fact.risky", "$fact.doubtful",
        "$slots.kind == 'ok'", "$slots.tier == 1", "$slots.grade > 2", "$slots.spare == 0",
        "$origin.risk == 'advisor'", "$fact.mine", "$origin.tier != 'register'")  # fmt: skip


def place(text: str, at: str) -> tuple[int, int]:
    """Line and column of the last ``at`` in a text."""
    before = text[: text.rindex(at)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def ruled(outcome: str, when: str, more: str = "", at: str = "authorize", name: str = "r") -> str:
    more += '\ntools = ["pay"]' if at == "authorize" else ""
    return RULE.format(id=name, at=at, outcome=outcome, when=when, more=more)


def under(text: str, source: str = PROGRAM) -> Program:
    return load_program(source.encode()).under(load_policy((POLICY + text).encode()))


def drawn(random: Random) -> list[tuple[str, bool]]:
    """The rules of a policy, each with whether advice may not be read as it reads it."""
    found = []
    for number in range(random.randint(2, 6)):
        at = random.choice(("admission", "authorize", "authorize"))
        plain = [each for each in PLAIN if at == "authorize" or "$proposal" not in each]
        parts = random.sample((*plain, *(READ if random.random() < 0.5 else ())), 2)
        when = random.choice((" and ", " or ")).join(parts)
        outcome = random.choice((ALLOW, ALLOW, HOLD, HOLD, SUSPEND, DENY))
        more = "approvable = true" if outcome == HOLD and random.random() < 0.7 else ""
        if more and at == "admission" and random.random() < 0.2:
            more += '\nagain_from = "read"'
        reads = any(f".{name}" in when for name in ADVISED)
        bad = reads and (outcome == ALLOW or "again_from" in more)
        found.append((ruled(outcome, when, more, at, f"r{number}"), bad))
    return found


def outcomes(program: Program, slots: Mapping[str, Scalar], approved: tuple[str, ...]) -> list[int]:
    """How strict the verdicts on a call are: whether the model is asked, and on its proposal."""
    facts = FACTS._replace(slots=slots, approved=approved)
    call = Call("pay", {"amount": 70, "payee": "p", "note": 7})
    found = []
    for judged in (program.gate.admit, lambda facts: program.gate.dry_run(call, facts)):
        try:
            hold = judged(facts).hold
            found.append(STRICT[hold.outcome if hold else ALLOW])
        except RefusedError:
            found.append(STRICT[DENY])
    return found


def advice(random: Random) -> Iterator[Mapping[str, Scalar]]:
    """Every score and its neighbours, then none; what is said beside it is drawn."""
    for risk in (*range(-1, 102), None):
        said: dict[str, Scalar | None] = {"risk": risk, "kind": random.choice(("", "ok", "x"))}
        said |= {name: random.choice((None, 0, 1, 9)) for name in ("tier", "grade", "spare")}
        yield {name: value for name, value in said.items() if value is not None}


@pytest.mark.parametrize(
    ("seed", "count"),
    [(0, 40), *(pytest.param(seed, 100, marks=pytest.mark.soak) for seed in (0, 1, 2))],
)
def test_no_advice_is_more_permissive_than_the_program_without_its_advised_rules(
    seed: int, count: int
) -> None:
    random = Random(f"advice/{seed}")  # noqa: S311
    facts = '[[facts]]\nname = "mine"\nwhen = "$slots.risk > 9"\n'
    loaded = refused = 0
    told: Counter[tuple[int, int]] = Counter()
    while loaded < count:
        rules = drawn(random)
        text = facts + "".join(rule for rule, _ in rules)
        plain = [rule for rule, _ in rules if not any(f".{name}" in rule for name in ADVISED)]
        if plain == [rule for rule, _ in rules]:
            continue
        if any(bad for _, bad in rules):
            with pytest.raises(ProgramError) as caught:
                under(text)
            assert caught.value.code == "PRG-007", text
            refused += 1
            continue
        program, without = under(text), under(facts + "".join(plain))
        approvable = tuple(r.id for r in program.policy.rules if r.approvable)
        for approved in {(), approvable}:
            least = outcomes(without, SLOTS, approved)
            for said in advice(random):
                found = outcomes(program, {**SLOTS, **said}, approved)
                assert all(map(int.__ge__, found, least)), (said, approved, text)
                told.update(zip(least, found, strict=True))
        loaded += 1
    assert refused > count // 5
    assert all(told[step] > 20 for step in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3))), told


# --- what stands in for a rule that allows ----------------------------------------------------

CALM = ruled(ALLOW, "$proposal.amount < 70", name="calm")
WORRIED = ruled(HOLD, "$slots.risk >= 70", "approvable = true")


def test_a_hold_on_advice_and_its_approval_allow_nothing() -> None:
    known = {**SLOTS, "risk": 100}
    for text in (WORRIED, CALM + WORRIED):
        for approved in ((), ("r",)):
            assert outcomes(under(text), known, approved)[1] == STRICT[DENY]
    both = under(ruled(ALLOW, "$proposal.amount <= 70", name="calm") + WORRIED)
    assert outcomes(both, known, ())[1] == STRICT[HOLD]
    assert outcomes(both, known, ("r",))[1] == STRICT[ALLOW]
    unadvised = WORRIED.replace("$slots.risk >= 70", "$slots.amount >= 70")
    assert outcomes(under(unadvised), known, ("r",))[1] == STRICT[ALLOW]  # as ever


def test_a_policys_examples_are_judged_as_its_calls_are() -> None:
    given = '[[examples]]\nname = "e"\nexpect = "deny"\n[examples.given]\ntool = "pay"\n'
    given += "slots = { risk = 100 }\nproposal = { amount = 70 }\n"
    assert [each.good for each in run_examples(under(CALM + WORRIED + given))] == [True]


def test_a_line_without_the_advice_is_no_way_around_rules_at_admission() -> None:
    rules = ruled(ALLOW, "true", at="admission", name="ask") + ruled(ALLOW, "true", name="calm")
    line = b'{"tool": "pay", "args": {"amount": 70, "payee": "p", "note": 7}, "context": {"slots": '
    line += b'{"amount": 70, "payee": "p"}}}'
    assert next(judge(under(rules), [line])).verdict == "ACCEPTED"
    rules += ruled(HOLD, "$slots.amount == 70", at="admission", name="stop")
    rules += ruled(DENY, "$slots.risk > 200", at="admission")
    assert next(judge(under(rules), [line])).verdict == "BLOCKED"


def test_a_foreign_engine_sees_no_advice() -> None:
    engine = Engine()
    rules = ruled(ALLOW, "$fact.large", at="admission", name="ask")
    rules += ruled(ALLOW, "$fact.large", name="calm") + ruled(HOLD, "$fact.doubtful")
    rules += ruled(HOLD, "$fact.risky", at="admission", name="s")
    program = load_program(PROGRAM.encode()).under(load_policy((POLICY + rules).encode()), engine)
    known = {**SLOTS, "risk": 1, "kind": "ok", "tier": 1, "grade": 1, "spare": 1}
    assert outcomes(program, known, ()) == [STRICT[ALLOW]] * 2
    assert isinstance(program.gate.admit(Facts(slots=known)), Outcome)
    for seen in engine.asked:
        assert seen["slots"] == SLOTS
        assert seen["origin"].keys() == SLOTS.keys()  # type: ignore[attr-defined]
        assert seen["fact"] == {"large": True}


# --- what is refused, where it is written -----------------------------------------------------

RATED = 'fills = ["tier"]\nendorses = { tier = "register" }\nnext = "again"\non_error = '
AGAIN = 'approvable = true\nagain_from = "read"'
TOLD = "[tools.tell]", "[tools.tell.args]\nrisk = { type = 'integer' }"


@pytest.mark.parametrize(("changes", "at"), [
    (("risk = { type = \"integer\" }\nkind", 'risk = { type = "integer", model = "text" }\nkind'),
     'model = "text"'),
    (('{ type = "string" }\ntier', '{ type = "string", model = "clear" }\ntier'),
     'model = "clear" }\ntier'),
    (("{ amount = { min = 1 } }", '{ note = { equals_slot = "tier" } }'), "equals_slot"),
    (('{ amount = "amount", p', '{ amount = "risk", p'), 'amount = "risk"'),
    (('{ amount = "amount", p', '{ amount = "grade", p'), 'amount = "grade"'),
    (('call = "authorized"', 'call = "authorized"\nargs = { memo = "kind" }'), "memo"),
    ((*TOLD, 'tool = "tell"\nnext', 'tool = "tell"\nargs = { risk = "spare" }\nnext',
      "[tools.tell.args]", '[tools.tell]\nfree = ["risk"]\n[tools.tell.args]'), 'risk = "spare"'),
    (("[tools.ask]", "[tools.ask.args]\nrisk = { type = 'integer' }", 'tool = "ask"\n',
      'tool = "ask"\nargs = { risk = "grade" }\n'), 'risk = "grade"'),
    (('"$slots.vip"', '"$slots.vip or $slots.tier > 1"'), "$slots.tier"),
    (('"$slots.vip"', '"$origin.kind == \'document\'"'), "$origin.kind"),
    (('"$slots.vip"', '"not $fact.doubtful"'), "$fact.doubtful"),
    (("[[budgets]]", '[[grants]]\ntool = "advise"\n[[budgets]]'), 'tool = "advise"\n[[b'),
    (('on_error = "rate"', 'on_error = "ask"'), 'on_error = "ask"'),
    ((RATED + '"failed"', RATED + '"ask"'), 'on_error = "ask"'),
])  # fmt: skip
def test_no_program_lets_advice_decide_what_is_called(changes: tuple[str, ...], at: str) -> None:
    text = PROGRAM
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    with pytest.raises(ProgramError) as caught:
        load_program(text.encode())
    (fault,) = caught.value.faults
    assert (fault.code, fault.line, fault.column) == ("PRG-007", *place(text, at))


@pytest.mark.parametrize(("rule", "at"), [
    *[(ruled(ALLOW, when), at) for when, at in (
        ("$slots.risk < 10", "$slots.risk"), ("true or $slots.kind == ''", "$slots.kind"),
        ("$fact.large or not $fact.doubtful", "$fact.doubtful"), ("not $fact.risky", "$fact.risky"),
        ("$proposal.note == $slots.tier", "$slots.tier"), ("$slots.spare > 0", "$slots.spare"),
        ("$slots.amount > 1 and $origin.grade == 'document'", "$origin.grade"))],
    (ruled(HOLD, "$slots.risk > 1", AGAIN, "admission"), "again_from"),
    *[(ruled(outcome, "$slots.risk > 1", at=at), "$slots.risk")  # by what follows a failed step
      for outcome in (HOLD, SUSPEND, DENY) for at in ("admission", "authorize")],
])  # fmt: skip
def test_no_rule_lets_advice_help_a_call(rule: str, at: str) -> None:
    """Neither a rule of the program, nor one of a policy under it."""
    program = PROGRAM
    if "allow" not in rule and at != "again_from":
        load_program((program + rule).encode())
        program = program.replace(
            'next = "judge"\non_error = "failed"', 'next = "judge"\non_error = "tell"'
        )
    for text, load in (
        (POLICY + rule, lambda text: load_policy(text, load_program(program.encode()))),
        (program + rule, load_program),
    ):
        with pytest.raises(ProgramError) as caught:
            load(text.encode())
        (fault,) = caught.value.faults
        assert (fault.code, fault.line, fault.column) == ("PRG-007", *place(text, at))
    with pytest.raises(ProgramError) as caught:
        under(rule, program)
    assert caught.value.code == "PRG-007"
