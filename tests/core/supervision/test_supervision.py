"""Restarts go as OTP's rules say: by hand, in a model of them, and in OTP itself."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from nanovm_core.supervision import (
    NORMAL,
    SHUTDOWN,
    SIMPLE_ONE_FOR_ONE,
    TEMPORARY,
    TRANSIENT,
    Child,
    Decided,
    Ended,
    Escalate,
    Spec,
    Start,
    Stop,
    begin,
    decide,
    problems,
)
from tests.core.supervision.histories import History, Shell, drawn, members, tree
from tests.core.supervision.model import expected

COUNT = 2_000
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 7))]
ESCRIPT = shutil.which("escript")
OTP = Path(__file__).with_name("otp.escript")

BELOW = Spec("s", children=(Child("x", shutdown_ms=300), Child("y", shutdown_ms=40)))
CHILDREN = (Child("a"), Child("b", TRANSIENT, 7), Child("c", TEMPORARY), BELOW)
RUNNING = {"a": 4, "b": 1, "c": 1, "s": 1}
STOPS = [Stop("s", 1, 340), Stop("c", 1, 5_000), Stop("b", 1, 7)]


def acts(decided: Decided) -> list[str]:
    """Its actions with their types, which tuples do not compare."""
    return [repr(action) for action in decided.actions]


@pytest.mark.parametrize(
    ("strategy", "ended", "actions"),
    [
        ("one_for_one", Ended("a", 4), [Start("a", 5, 250)]),
        ("one_for_one", Ended("a", 4, NORMAL), [Start("a", 5, 250)]),
        ("one_for_one", Ended("b", 1), [Start("b", 2, 250)]),
        ("one_for_one", Ended("b", 1, NORMAL), []),
        ("one_for_one", Ended("b", 1, SHUTDOWN), []),
        ("one_for_one", Ended("c", 1), []),
        ("one_for_all", Ended("a", 4), [*STOPS, *(Start(n, RUNNING[n] + 1, 250) for n in "abs")]),
        ("rest_for_one", Ended("b", 1), [*STOPS[:2], Start("b", 2, 250), Start("s", 2, 250)]),
        *(("one_for_all", Ended("a", number), []) for number in (3, 5, 0, -4)),
        ("one_for_all", Ended("stranger", 1), []),
    ],
)
def test_an_end_starts_again_whom_the_strategy_says(
    strategy: str, ended: Ended, actions: list[Start | Stop]
) -> None:
    decided = decide(Spec("r", strategy, children=CHILDREN), RUNNING, ended, (), 9)
    assert acts(decided) == [*map(repr, actions)]
    assert decided.ends == ((9,) if actions else ())


def test_the_window_has_both_its_ends_and_each_restart_in_it_waits_longer() -> None:
    spec, found = Spec("r", "one_for_one", 6, 60, CHILDREN), list[str]()
    ends: tuple[int, ...] = (39, 40, 50)
    for at_s in (100, 101, 101, 101, 101):
        decided = decide(spec, RUNNING, Ended("a", 4), ends, at_s)
        ends, found = decided.ends, found + acts(decided)
    assert ends == (50, 100, 101, 101, 101, 101)
    assert found == [repr(Start("a", 5, ms)) for ms in (1_000, 1_000, 2_000, 4_000, 4_000)]
    decided = decide(spec, RUNNING, Ended("a", 4), ends, 110)
    assert acts(decided) == [*map(repr, STOPS), repr(Escalate(7))]
    gone = {"a": -4, "b": -1, "c": -1, "s": -1}
    assert decided.children == gone
    assert decide(spec, gone, Ended("a", -4), ends, 110) == Decided((), ends, gone)
    assert begin(spec, gone).children == {"a": 5, "b": 2, "c": 2, "s": 2}


@pytest.mark.parametrize("seed", SEEDS)
def test_generated_histories_go_as_in_the_model(seed: int) -> None:
    for number in range(COUNT):
        history = drawn(Random(f"{seed}/{number}"))  # noqa: S311 - it chooses examples
        shell = Shell(history)
        assert (shell.trace, {*shell.running}) == expected(history), history
        assert [*problems(history.spec)] == []


@pytest.mark.soak
@pytest.mark.skipif(ESCRIPT is None, reason="`escript` is missing: Debian's erlang-base has it")
@pytest.mark.parametrize("seed", range(1, 7))
def test_generated_histories_go_as_in_otp(
    seed: int, record_property: Callable[[str, object], None]
) -> None:
    every = (drawn(Random(f"{seed}/{number}")) for number in range(COUNT))  # noqa: S311
    histories = [history for history in every if is_comparable(history)]
    asked = "".join(f"{in_erlang(history)}.\n" for history in histories)
    command = [str(ESCRIPT), str(OTP)]
    ran = subprocess.run(command, input=asked, stdout=-1, text=True, check=True, timeout=300)
    for history, line in zip(histories, ran.stdout.splitlines(), strict=True):
        below = {each.name for each in tree(history.spec)[1:]}
        ours = [f"{word}:{name}" for word, name in Shell(history).trace if name not in below]
        order = sorted if history.spec.strategy == SIMPLE_ONE_FOR_ONE else list
        assert order(line.split()) == order(ours), history
    record_property("histories that went as in OTP", len(histories))


def is_comparable(history: History) -> bool:
    """OTP starts no instance with its supervisor, and stops all of them at the same time."""
    simple = [each.strategy == SIMPLE_ONE_FOR_ONE for each in tree(history.spec)]
    return not any(simple) or (simple == [True] and not history.refused)


def in_erlang(value: object) -> str:
    """A history, or what is in it, as the script reads it: atoms, numbers, tuples and lists."""
    match value:
        case History(spec, refused, steps):
            added = members(spec) if spec.strategy == SIMPLE_ONE_FOR_ONE else []
            ended = [(s.at_s, s.name if s.age == 0 else "", s.reason, s.refused) for s in steps]
            return in_erlang((spec, [each.name for each in added], refused, ended))
        case Spec(name, strategy, max_restarts, within_s, children, restart):
            return in_erlang((name, strategy, max_restarts, within_s, [*children], restart))
        case Child(name, restart):
            return in_erlang((name, restart))
        case dict():
            return in_erlang([*value.items()])
        case tuple() | list():
            inner = ",".join(map(in_erlang, value))
            return f"{{{inner}}}" if isinstance(value, tuple) else f"[{inner}]"
    return f"'{value}'" if isinstance(value, str) else str(value)


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        (Spec("r", children=(Child("r"), BELOW)), ["r is the name of 2 children or supervisors"]),
        (Spec("r", "all", restart="never"), ["r restart must", "r strategy must"]),
        (Spec("r", children=(Child("a", "x", -1),)), ["a restart must", "a shutdown_ms must"]),
        (Spec("r", max_restarts=-1), ["r max_restarts must"]),
        (Spec("r", max_restarts=1_001), ["r max_restarts must"]),
        (Spec("r", max_restarts=1_000, within_s=0), ["r max_restarts must"]),
        (Spec("r", SIMPLE_ONE_FOR_ONE), ["r simple_one_for_one takes"]),
        (Spec("r", SIMPLE_ONE_FOR_ONE, children=CHILDREN[:2]), ["r simple_one_for_one takes"]),
        (Spec("r", SIMPLE_ONE_FOR_ONE, children=(BELOW,)), ["r simple_one_for_one takes"]),
        (Spec("r", children=(Child("a", shutdown_ms=12_001),)), ["a may take 12001 ms to stop"]),
        (Spec("r", "one_for_all", 5, 60, (Child("a"), Child("b", shutdown_ms=7_000))), []),
        (Spec("r", "rest_for_one", 6, 60, (Child("a"), Child("b"))), []),
        (Spec("r", "rest_for_one", 6, 59, (Child("a"), Child("b"))), ["r may take 10000 ms"]),
        (Spec("r", "one_for_all", 0, 1, (Child("a", shutdown_ms=600_000), Child("b"))), []),
        (Spec("q", children=(Spec("r", "x"), BELOW)), ["r strategy must"]),
    ],
)
def test_each_problem_of_a_tree_is_named(spec: Spec, found: list[str]) -> None:
    said = [f"{name} {wrong}" for name, wrong in problems(spec)]
    assert len(said) == len(found)
    assert [*map(str.startswith, said, found)] == [True] * len(found)
