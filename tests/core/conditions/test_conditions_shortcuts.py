"""The shortcuts: each answers and fails as the plain closure that it stands for, and is taken."""

import itertools
import sys
from collections import ChainMap, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FrameType, MappingProxyType
from typing import Any

import pytest

from nanovm_core.conditions import ConditionEvaluationError, Context, Value, parse
from nanovm_core.conditions.operators import compiled, plain, truth
from nanovm_core.conditions.syntax import tree

SIGNS = ("==", "!=", "<", "<=", ">", ">=", "in", "not in", "contains")
LITERALS = ("2", "-1", "'x'", "''", "true", "[1, 2]", "['x', 'y']", "[true]", "[]")
PATHS = ("$v", "$m.v", "$m.n.v")
OTHERS = ("$w", "$m.w", "$o.w", "$m.n.w")


class Sly(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


class Number(int):
    def __le__(self, other: object) -> bool:
        return True


VALUES: tuple[object, ...] = (
    *(1, 2, 10**30, True, False, "x", "xy", "", [], [1, 3], (2,), ["x"], [True], [1, True]),
    *(None, 1.0, b"x", Sly("x"), Number(1), {"x": 1}, object()),
)
FEW: tuple[object, ...] = (1, 2, True, "x", ["x", "y"], [2], [], None, Sly("x"))


def test_a_shortcut_is_the_plain_closure_only_sooner() -> None:
    texts = [f"{one} {sign} {two}" for one in PATHS for sign in SIGNS for two in LITERALS]
    texts += [f"{two} {sign} {one}" for one in PATHS for sign in SIGNS for two in LITERALS]
    texts += [template.format(one) for one in PATHS for template in ("{}", "not {}", "{} == true")]
    contexts = [placed(v, 0) for v in VALUES] + [placed(v, 0, MappingProxyType) for v in VALUES]
    assert differences(texts, contexts) == []


def test_a_shortcut_between_two_variables_is_the_plain_closure_only_sooner() -> None:
    texts = [
        f"{one} {sign} {other}"
        for path, name, sign in itertools.product(PATHS, OTHERS, SIGNS)
        for one, other in ((path, name), (name, path))
    ]
    contexts = [placed(v, w) for v in FEW for w in FEW]
    contexts += [placed(v, w, MappingProxyType) for v in FEW[:4] for w in FEW[:4]]
    for v, w in itertools.product(FEW[:4], FEW[:4]):
        contexts.append({**placed(v, w), "m": {"v": v, "w": w, "n": {"v": w, "w": v}}})
    assert differences(texts, contexts) == []


READS = ["$v", "$v == 1", "$v <= 1", "$v in [1]", "$m.v", "$m.v <= 1", "$m.v in [1]", "$m.n.v > 1"]


@pytest.mark.parametrize("text", [*READS, "$m.v == $o.v", "$o.v < $m.v", "$m.v >= $o.v"])
def test_reading_what_is_missing_makes_nothing(text: str) -> None:
    """Neither in a context that makes what it is asked for, nor in a part or a view of one."""
    condition = parse(text)
    for seen in VIEWS:
        full: dict[str, object] = {"v": 1}
        for m, o in ((making(), full), (full, making()), (making(), making())):
            before = (dict(m), dict(o))
            context = making({"m": seen(m), "o": seen(o)})
            for whole in (context, dict(context), seen(context)):
                with suppress(ConditionEvaluationError):
                    assert condition.holds(whole) in (True, False)
                assert (m, o) == before
                assert set(context) == {"m", "o"}
    nothing = making()
    with pytest.raises(ConditionEvaluationError, match="CON-020"):
        condition.holds(nothing)
    assert not nothing


def making(of: Mapping[str, object] = MappingProxyType({})) -> dict[str, object]:
    """A mapping that makes what it is asked for."""
    return defaultdict(lambda: 1, of)


def same(of: dict[str, object]) -> Mapping[str, object]:
    return of


VIEWS: tuple[Callable[[dict[str, object]], Mapping[str, object]], ...] = (
    *(same, MappingProxyType, ChainMap),
)


class Items:
    """Items like a mapping's, and no mapping."""

    def __getitem__(self, name: str) -> object:
        return "x"

    def __contains__(self, name: str) -> bool:
        return True


@pytest.mark.parametrize("text", ["$m.v == 'x'", "$m.v == $m.w", "$m.v in ['x']", "'x' in $m.v"])
def test_what_is_no_mapping_has_no_fields(text: str) -> None:
    for impostor in (Items(), "v", ["v"], {"v"}, Sly("v")):
        with pytest.raises(ConditionEvaluationError, match="CON-020"):
            parse(text).holds({"m": impostor})
    sly: Any = Items()
    with pytest.raises(ConditionEvaluationError, match="CON-020"):
        parse(text).holds(sly)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("$a.b == 'x'", 1),
        ("'x' != $a.b", 1),
        ("$amount <= 500", 1),
        ("500 < $amount", 1),
        ("$amount in [1, 2]", 1),
        ("[1, 2] contains $amount", 1),
        ("$a.b == $a.c", 1),
        ("$a.n < $a.n", 1),
        ("$a.d.e == 'x'", 2),
        ("$flag", 2),
        ("$a.b == 'x' and $amount <= 500", 3),
        ("$a.b == 'x' and $amount <= 500 and not $a.n > 5", 5),
    ],
)
def test_the_usual_comparisons_take_a_call_each(text: str, calls: int) -> None:
    inner = {"b": "x", "c": "y", "n": 1, "d": {"e": "x"}}
    context = {"a": inner, "amount": 499, "flag": True}
    assert called(lambda: parse(text).run, context) == calls
    assert called(lambda: parse(text).run, {**context, "a": MappingProxyType(inner)}) == calls


def called(made: Callable[[], Callable[[Context], bool]], context: Context) -> int:
    """How many Python functions an evaluation enters."""
    run, entered = made(), []

    def watch(frame: FrameType, event: str, _: object) -> None:
        entered.append(frame.f_code.co_name if event == "call" else "")

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        run(context)
    finally:
        sys.setprofile(before)
    return len([name for name in entered if name])


def placed(
    v: object, w: object, wrapped: Callable[[dict[str, object]], Mapping[str, object]] = dict
) -> Mapping[str, object]:
    """A context with ``v`` and ``w`` wherever a path of these tests leads."""
    inner = wrapped({"v": v, "w": w, "n": wrapped({"v": v, "w": w})})
    return {"v": v, "w": w, "m": inner, "o": inner}


def differences(texts: list[str], contexts: list[Mapping[str, object]]) -> list[object]:
    """Where a condition's closure differs from the plain one, in value, code, text or place."""
    found: list[object] = []
    for text in texts:
        run, slow = parse(text).run, truth(compiled(tree(text), plain))
        for context in [*contexts, {}, {"m": {}}, {"m": {"n": 1}, "o": {}}]:
            one, other = answer(run, context), answer(slow, context)
            if one != other or type(one[0]) is not type(other[0]):
                found.append((text, context, one, other))
    return found


def answer(run: Callable[[Context], Value], context: Context) -> tuple[Value | None, str, int]:
    """A closure's answer with every detail of its error."""
    try:
        return run(context), "", 0
    except ConditionEvaluationError as error:
        return None, str(error), -1 if error.position is None else error.position
