"""The program: a value of its file, immutable to the last field, and its own under any policy."""

import pickle
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from types import BuiltinMethodType, FunctionType, MappingProxyType, MethodWrapperType

import pytest

from nanovm_core import errors
from nanovm_core.core.authority.capabilities import Constraint, Source
from nanovm_core.core.authority.policy import DENY_ALL
from nanovm_core.core.canonical import Json
from nanovm_core.core.gate import Facts
from nanovm_core.core.messages import Scalar
from nanovm_core.core.program import Program, Retry
from nanovm_core.core.proposals import Call
from nanovm_core.errors import Fault, NanovmError, ProgramError, RefusedError, VerificationError
from nanovm_core.loading import load_policy, load_program
from tests.core.kit.builders import POLICY, SOURCE
from tests.core.kit.desk import DESK

HEAD = 'v = "nanovm-policy/1"\nname = "test"\n'


def desk(policy: str = "") -> Program:
    loaded = load_program(DESK.encode())
    return loaded.under(load_policy((HEAD + policy).encode())) if policy else loaded


def rule(name: str, when: str = "true", more: str = "") -> str:
    return (
        f'[[rules]]\nid = "{name}"\nat = "authorize"\noutcome = "allow"\nwhen = "{when}"\n'
        f'why = "because"\ntools = ["refunds.pay"]\n{more}'
    )


def test_desk_is_what_its_file_says() -> None:
    loaded = desk()
    assert list(loaded.steps) == ["look_up", "sort", "confirm", "ask", "judge", "pay", "apologise"]
    assert (loaded.name, loaded.agent, loaded.first) == ("refund_desk", "desk", "look_up")
    assert loaded.policy_file == "policies/desk.toml"
    assert [branch.to for branch in loaded.steps["sort"].next] == ["completed", "confirm", "ask"]
    assert (loaded.steps["sort"].then, loaded.steps["look_up"].then) == ("", "sort")
    pay, grant = loaded.tools["refunds.pay"], loaded.grants["refunds.pay"]
    assert pay.critical["currency"] == Source(constant="EUR")
    assert pay.critical["payee"] == Source(slot="customer")
    assert pay.args["currency"].one_of == ("EUR", "USD")
    assert grant.where["urgent"] == Constraint(one_of=(False,))
    assert grant.expires_ms == 1_900_000_000_000
    assert {each.id: each.level for each in loaded.rules} == {"too-much": "hard", "calm": "soft"}
    assert [each.scope for each in loaded.windows] == ["workspace", "agent"]
    assert [each.currency for each in loaded.budgets] == ["EUR", ""]
    assert loaded.policy is DENY_ALL


def test_what_a_step_does_not_say_is_the_safe_default() -> None:
    loaded = desk()
    assert loaded.limits.calls_max == 16
    assert (loaded.limits.warrant_ttl_ms, loaded.limits.wall_ms_max) == (900_000, 86_400_000)
    assert (loaded.limits.steps_max, loaded.limits.tokens_max) == (1_000, 100_000)
    assert loaded.steps["look_up"].timeout_ms == 300_000
    once = Retry(attempts_max=1, backoff_ms=0, backoff_max_ms=60_000)
    assert loaded.steps["look_up"].retry == once
    assert loaded.steps["judge"].timeout_ms == loaded.steps["judge"].tokens_max == 0
    text = DESK.replace('agent = "desk"\n', "").replace("tokens_max = 500", "")
    unsaid = load_program(text.encode())
    assert unsaid.agent == "refund-desk"
    assert unsaid.steps["ask"].tokens_max == 8_192


def parts(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Everything that can be reached from a value, by any way that Python offers."""
    stack, seen = [(path, value)], set[int]()
    while stack:
        here, found = stack.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield here, found
        if is_dataclass(found) and not isinstance(found, type):
            stack += [(f"{here}.{f.name}", getattr(found, f.name)) for f in fields(found)]
        elif isinstance(found, Mapping):
            stack += [(f"{here}[{key!r}]", below) for key, below in found.items()]
        elif isinstance(found, tuple | list | frozenset | set):
            stack += [(f"{here}[{place}]", below) for place, below in enumerate(found)]
        elif isinstance(found, FunctionType):
            cells = [cell.cell_contents for cell in found.__closure__ or ()]
            defaults = [*(found.__defaults__ or ()), *(found.__kwdefaults__ or {}).values()]
            stack += [(f"{here}()", below) for below in (*cells, *defaults)]
        elif isinstance(found, BuiltinMethodType | MethodWrapperType):
            stack.append((f"{here}.__self__", found.__self__))
        elif type(found).__module__.startswith("nanovm_core"):
            names = [
                name for kind in type(found).__mro__ for name in getattr(kind, "__slots__", ())
            ]
            stack += [(f"{here}.{name}", getattr(found, name)) for name in names]


LEAVES: tuple[type, ...] = (str, int, bool, type(None), bytes, type, range, re.Pattern)
CODE: tuple[type, ...] = (FunctionType, BuiltinMethodType, MethodWrapperType)
FIXED = (*LEAVES, *CODE, tuple, frozenset, MappingProxyType)


def mutable(value: object) -> list[str]:
    """The paths at which something could be changed."""
    return [
        f"{path}: {type(found).__name__}"
        for path, found in parts(value, "program")
        if not isinstance(found, FIXED) and not is_frozen(found)
    ]


def is_frozen(value: object) -> bool:
    """Whether a value of our own takes no value for any of its attributes, not even its own."""
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    if not type(value).__module__.startswith("nanovm_core") or hasattr(value, "__dict__"):
        return False
    for name in names:
        try:
            setattr(value, name, getattr(value, name))
        except (AttributeError, TypeError):
            continue
        return False
    return True


def test_nothing_that_can_change_is_reachable() -> None:
    windows = "[[windows]]\nname = 'w'\ncounts = 'calls'\nwithin_ms = 1\n"
    assert mutable(desk(rule("r") + windows)) == []
    assert mutable(load_policy(POLICY)) == []
    assert mutable(load_program(SOURCE).under(load_policy(POLICY))) == []
    loaded = desk()  # the walk sees what can change
    assert "program.steps: dict" in mutable(replace(loaded, steps=dict(loaded.steps)))
    assert mutable((lambda kept=[1]: kept,)) == ["program[0](): list"]


def test_the_same_bytes_give_an_equal_program_and_others_do_not() -> None:
    assert desk() == desk()
    assert desk().hash == desk().hash
    assert load_program((DESK + "#").encode()).hash != desk().hash
    assert load_policy(POLICY) == load_policy(POLICY)


def refusal(program: Program) -> str:
    args: dict[str, Json] = {"amount_minor": 5, "currency": "EUR", "payee": "{{customer}}"}
    call = Call("refunds.pay", {**args, "note": "x", "urgent": False, "reason": "r1"})
    ref = "vault://secret/00000000-0000-4000-8000-000000000001"
    slots: dict[str, Scalar] = {"total_minor": 5, "customer": ref, "answer": "r1"}
    try:
        program.gate.permit(call, Facts(slots=slots, ledger={"workspace/EUR": 100}))
    except RefusedError as error:
        return error.code
    return "allowed"


def test_a_program_without_a_policy_denies_and_with_one_does_as_it_says() -> None:
    assert refusal(desk()) == "POL-001"
    assert refusal(desk(rule("small", "$proposal.amount_minor < 10"))) == "allowed"
    assert refusal(desk(rule("small", "$proposal.amount_minor < 5"))) == "POL-001"


def test_a_copy_of_a_program_is_judged_by_its_own_gate() -> None:
    loaded = desk(rule("r"))
    assert refusal(replace(loaded, policy=DENY_ALL)) == "POL-001"
    assert refusal(replace(loaded, grants={})) == "CAP-001"


def test_a_policy_may_read_its_own_windows_and_the_programs() -> None:
    own = '[[windows]]\nname = "own"\ncounts = "refusals"\nwithin_ms = 1\n'
    text = rule("r", "$history.own > 1 or $history.failed > 1")
    assert desk(own + text).policy.windows[0].name == "own"
    with pytest.raises(ProgramError, match="does not fit"):
        desk(text)


def test_workspace_money_is_known_where_an_account_holds_it() -> None:
    start, end = DESK.index("[[budgets]]"), DESK.index("[[steps]]")
    without = (DESK[:start] + DESK[end:]).replace(" or $workspace.left_minor < 0", "")
    loaded, text = load_program(without.encode()), HEAD + rule("r", "$workspace.left_minor > 1")
    money = '[[budgets]]\nscope = "workspace"\nunit = "money"\nmax = 5\n'
    for budget in ("", money.replace("workspace", "agent")):
        with pytest.raises(ProgramError, match="does not fit"):
            loaded.under(load_policy((text + budget).encode()))
    assert loaded.under(load_policy((text + money).encode())).policy.budgets[0].max == 5


ERRORS: list[NanovmError] = [
    NanovmError("X-001", "said"),
    ProgramError("PRG-001", "said"),
    ProgramError("PRG-001", "said", line=3, column=4),
    ProgramError("PRG-001", "a", line=1, column=2, faults=(Fault("PRG-001", "a", 1, 2),) * 2),
    errors.ConditionError("CON-001", "said", 7),
    errors.CanonicalError("CAN-001", "said"),
    RefusedError("CAP-001", "said"),
    VerificationError("LOG-001", "said", at=3, expected="a" * 64, found="b" * 64),
]


@pytest.mark.parametrize("error", ERRORS, ids=str)
def test_an_error_survives_a_pickle(error: NanovmError) -> None:
    error.add_note("seen by a worker")
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301 - our own bytes
        assert type(back) is type(error)
        assert (str(back), back.args, vars(back)) == (str(error), error.args, vars(error))


@pytest.mark.parametrize(("line", "place"), [(None, ""), (3, "line 3, column 3: ")])
def test_an_error_says_its_place_once(line: int | None, place: str) -> None:
    error = ProgramError("PRG-001", "said", line=line, column=line)
    assert error.text == place + "said"
    assert error.faults == (Fault("PRG-001", "said", line, line),)
