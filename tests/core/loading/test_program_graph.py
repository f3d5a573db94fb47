"""The graph: steps end, none is there for nothing, and no way leads around the judge."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core.core.program import COMPLETED, FAILED, Branch, Step
from nanovm_core.errors import ProgramError
from nanovm_core.loading import graph, load_program
from nanovm_core.loading.graph import CYCLES_SHOWN_MAX, MOVES_MAX
from nanovm_core.loading.schema import STEPS_MAX
from tests.core.kit.desk import DESK, changed, check_one, error_of

TELL = 'args = { text = "answer" }\nnext = "completed"'
ASK = 'next = "judge"\non_error = "apologise"'


@pytest.mark.parametrize(("changes", "at", "said"), [
    (('next = "sort"', 'next = "ask"'), 'name = "sort"', "step sort is unreachable"),
    ((TELL, TELL.replace("completed", "apologise")), 'next = "apo', "apologise → apologise;"),
    ((TELL, TELL.replace("completed", "confirm")), 'next = "confirm"',
     "the steps form a cycle: confirm → ask → judge → apologise → confirm; a program ends"),
    ((TELL + '\non_error = "failed"', TELL + '\non_error = "ask"'), 'on_error = "ask"',
     "the steps form a cycle: ask → judge → apologise → ask"),
    ((ASK, 'next = "pay"\non_error = "judge"'), 'next = "pay"', "'pay' is none"),
    ((ASK, 'next = "pay"\non_error = "judge"'), 'next = "pay"', "pay makes the call that a pure"),
    ((ASK, 'next = "completed"\non_error = "judge"'), 'next = "completed"\non_error = "j',
     "'completed' is none"),
    ((ASK, 'next = "judge"\non_error = "judge"'), 'on_error = "judge"', "ask leads to it too"),
    ((ASK, 'next = "judge"\non_error = "pay"'), 'on_error = "pay"', "ask leads to it and author"),
    (('authorizes = "ask"\n', ""), 'next = "judge"', "with authorizes = 'ask' first; 'judge'"),
    (('authorizes = "ask"\n', ""), 'to = "pay"', "judge leads to it and authorizes nothing"),
    (('authorizes = "ask"', 'authorizes = "confirm"'), "authorizes", "which is no model step"),
    (('authorizes = "ask"', 'authorizes = "nobody"'), "authorizes", "which is no model step"),
    (('authorizes = "ask"', 'authorizes = "ask"\non_error = "pay"'), 'on_error = "pay"',
     "judge leads to it and"),
    (('first = "look_up"', 'first = "judge"'), "first", "but the run begins with it"),
    (('first = "look_up"', 'first = "pay"'), "first", "but the run begins with it"),
    (('to = "confirm"', 'to = "judge"'), 'to = "judge"', "sort leads to it too, with nothing"),
    (('to = "confirm"', 'to = "pay"'), 'to = "pay"', "sort leads to it and authorizes nothing"),
    (('{ to = "pay" }', '{ to = "apologise" }'), 'next = [{ when = "$run', "no step after it"),
])  # fmt: skip
def test_a_graph_with_a_fault(changes: tuple[str, ...], at: str, said: str) -> None:
    check_one(changed(*changes), at, said)


def test_the_same_call_is_not_made_twice() -> None:
    second = DESK[DESK.index('[[steps]]\nname = "pay"') : DESK.index('[[steps]]\nname = "apol')]
    text = changed(
        'drops = ["answer"]\nnext = "completed"',
        'drops = ["answer"]\nnext = "again"',
        '[[steps]]\nname = "apol',
        second.replace('"pay"', '"again"') + '[[steps]]\nname = "apol',
    )
    assert "pay leads to it and authorizes nothing" in error_of(text).text


def test_a_program_without_a_model_and_one_with_two_load() -> None:
    start, end = DESK.index('[[steps]]\nname = "confirm"'), DESK.index('[[steps]]\nname = "apol')
    bare = (DESK[:start] + DESK[end:]).replace('to = "confirm"', 'to = "apologise"')
    bare = bare.replace('to = "ask"', 'to = "completed"').replace("proposals_max = 2\n", "")
    kinds = [step.kind for step in load_program(bare.encode()).steps.values()]
    assert kinds == ["effect", "pure", "effect"]
    ways = DESK[start:end]
    for name in ("confirm", "ask", "judge", "pay"):
        ways = ways.replace(f'"{name}"', f'"{name}2"')
    twice = changed(
        '{ to = "ask" },', '{ when = "$slots.is_vip", to = "ask" }, { to = "confirm2" },'
    )
    loaded = load_program((twice + ways).encode())
    assert [step.authorizes for step in loaded.steps.values() if step.authorizes] == ["ask", "ask2"]


NAMES = [f"s{number}" for number in range(6)]


def links(names: list[str]) -> st.SearchStrategy[dict[str, tuple[tuple[str, ...], str]]]:
    """For each step where it leads, and where it fails to."""
    to = st.lists(st.sampled_from([*names, COMPLETED]), min_size=1, max_size=3).map(tuple)
    way = st.tuples(to, st.sampled_from([*names, FAILED]))
    return st.fixed_dictionaries(dict.fromkeys(names, way))


def reachable(start: str, ways: dict[str, tuple[tuple[str, ...], str]]) -> Iterator[str]:
    """What can be reached from a step in one move or more, the slow way."""
    found: set[str] = set()
    while True:
        tops = {start, *found} & ways.keys()
        more = {to for name in tops for to in (*ways[name][0], ways[name][1])} - found
        if not more:
            yield from found
            return
        found |= more


@settings(max_examples=50)
@given(links(NAMES))
def test_any_graph_is_judged_as_a_slow_reader_judges_it(
    ways: dict[str, tuple[tuple[str, ...], str]],
) -> None:
    steps = {
        name: Step(
            name=name, kind="effect", next=tuple(Branch(to=each) for each in to), on_error=error
        )
        for name, (to, error) in ways.items()
    }
    said = [misfit.text for misfit in graph.misfits("s0", steps)]
    cyclic = any(name in reachable(name, ways) for name in NAMES)
    assert any("cycle" in text for text in said) == cyclic
    unreachable = {name for name in NAMES if name not in {"s0", *reachable("s0", ways)}}
    assert {text.split()[1] for text in said if "unreachable" in text} == unreachable
    for text in said:
        if "cycle: " in text:
            loop = text.split("cycle: ")[1].split(";")[0].split(" → ")
            assert loop[0] == loop[-1]
            assert all(b in (*ways[a][0], ways[a][1]) for a, b in pairwise(loop))


def chain(count: int, kind: str) -> dict[str, Step]:
    """An effect, and so many steps that a run goes through at once."""
    start = Step(name="s0", kind="effect", next=(Branch(to="s1"),))
    rest = {
        f"s{n}": Step(name=f"s{n}", kind="pure", next=(Branch(to=f"s{n + 1}"),))
        if kind == "pure"
        else Step(name=f"s{n}", kind=kind, next=(Branch(to="end"),), on_error=f"s{n + 1}")
        for n in range(1, count + 1)
    }
    last = f"s{count + 1}"
    done = (Branch(to=COMPLETED),)
    ends = {name: Step(name=name, kind="effect", next=done) for name in (last, "end")}
    return {"s0": start, **rest, **ends}


def rushes(steps: dict[str, Step]) -> list[graph.Misfit]:
    """What is said of moves that are too many at once."""
    return [misfit for misfit in graph.misfits("s0", steps) if "at once" in misfit.text]


@pytest.mark.parametrize("kind", ["pure", "effect", "model"])
def test_moves_that_nobody_outside_answers_are_limited(kind: str) -> None:
    assert rushes(chain(MOVES_MAX, kind)) == []
    (found,) = rushes(chain(MOVES_MAX + 1, kind))
    assert found.text.startswith(
        f"over {MOVES_MAX} steps up to s66 follow one another at once: put"
    )
    assert found.path[:2] == ("steps", "s65")


def test_a_wait_ends_the_moves_of_a_transition() -> None:
    assert rushes(chain(3 * MOVES_MAX, "wait")) == []
    steps = chain(2 * MOVES_MAX, "pure")
    halfway = Step(name="s64", kind="wait", next=(Branch(to="s65"),), timeout_ms=1)
    assert rushes({**steps, "s64": halfway}) == []


def test_the_longest_way_counts_whichever_is_looked_at_last() -> None:
    steps = chain(MOVES_MAX + 1, "pure")
    short = Step(name="short", kind="pure", next=(Branch(to="s60"),))
    assert len(rushes({"short": short, **steps})) == 1
    assert len(rushes({**steps, "short": short})) == 1


def long(count: int, last: str = COMPLETED) -> bytes:
    head = 'v = "nanovm-program/1"\nname = "long"\nfirst = "s0"\n[limits]\n[slots]\n[tools.t]\n'
    step = (
        '[[steps]]\nname = "s{}"\nkind = "effect"\ntool = "t"\non_error = "failed"\nnext = "{}"\n'
    )
    targets = [*(f"s{number + 1}" for number in range(count - 1)), last]
    return (head + "".join(step.format(n, to) for n, to in enumerate(targets))).encode()


@pytest.mark.soak
def test_ten_thousand_steps_load() -> None:
    assert len(load_program(long(STEPS_MAX)).steps) == STEPS_MAX == 10_000


def test_more_than_ten_thousand_steps_do_not_load() -> None:
    with pytest.raises(ProgramError, match="there are 10001 steps, and at most 10000"):
        load_program(long(STEPS_MAX + 1))


def test_a_long_cycle_is_told_in_a_sentence_and_many_are_not_all_told() -> None:
    with pytest.raises(ProgramError) as caught:
        load_program(long(200, last="s0"))
    assert "cycle: s0 → s1 → s2 → s3 → … → s198 → s199 → s0; a program" in caught.value.text
    steps = {
        f"s{n}": Step(name=f"s{n}", kind="effect", next=(Branch(to=f"s{n + 1}"),), on_error="s0")
        for n in range(300)
    }
    found = list(graph.misfits("s0", steps))
    assert sum("cycle" in misfit.text for misfit in found) == CYCLES_SHOWN_MAX
