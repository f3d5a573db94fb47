"""Generated histories of supervisors, and what the kernel's decisions do in them."""

from collections import Counter
from collections.abc import Iterator
from itertools import count
from random import Random
from typing import NamedTuple

from nanovm_core import supervision
from nanovm_core.supervision import (
    FAILED,
    NORMAL,
    PERMANENT,
    RESTARTS,
    SHUTDOWN,
    SIMPLE_ONE_FOR_ONE,
    STRATEGIES,
    Child,
    Decided,
    Ended,
    Escalate,
    Spec,
    Start,
)

CHILDREN_MAX, DEPTH_MAX, STEPS_MAX = 6, 3, 12
REASONS = (FAILED, FAILED, FAILED, NORMAL, SHUTDOWN)


class Step(NamedTuple):
    """A child's end, or the late news of an older incarnation's, which changes nothing."""

    at_s: int
    name: str
    reason: str
    age: int  # so many incarnations before the newest one
    refused: Counter[str]  # starts of these children that fail from here on, so often


class History(NamedTuple):
    """A tree of supervisors, and what happens to it."""

    spec: Spec
    refused: Counter[str]  # first starts that fail
    steps: list[Step]


Trace = list[tuple[str, str]]  # ("started" | "refused" | "stopped" | "gave_up", name)


def tree(spec: Spec) -> list[Spec]:
    """The supervisor and all below it."""
    below = (child for child in spec.children if isinstance(child, Spec))
    return [spec, *(each for child in below for each in tree(child))]


def members(spec: Spec) -> list[Child | Spec]:
    """Its children; the number in its name says how many instances a template has."""
    if spec.strategy != SIMPLE_ONE_FOR_ONE:
        return [*spec.children]
    (template,) = spec.children
    numbers = range(8, 9 + int(spec.name[1:]) % CHILDREN_MAX)  # from 10 on no alphabet's order
    return [template._replace(name=f"{template.name}-{number}") for number in numbers]


def drawn(dice: Random) -> History:
    """A history; its times are the last second of a window, one before and one beyond."""
    spec = _spec(dice, count(dice.randrange(CHILDREN_MAX)), 1)
    specs = tree(spec)
    leaves = [c.name for each in specs for c in members(each) if isinstance(c, Child)]
    at_s, steps = 0, []
    for _ in range(dice.randint(1, STEPS_MAX)):
        within_s = dice.choice(specs).within_s
        at_s += dice.choice((0, 0, 0, 1, within_s - 1, within_s, within_s + 1))
        age = max(0, dice.randint(-6, 2))
        refused = _refused(dice, leaves, 0.3)
        steps.append(Step(at_s, dice.choice(leaves), dice.choice(REASONS), age, refused))
    return History(spec, _refused(dice, leaves, 0.1), steps)


def _spec(dice: Random, numbers: Iterator[int], depth: int) -> Spec:
    name, strategy = f"s{next(numbers)}", dice.choice(STRATEGIES)
    children: list[Child | Spec] = []
    for _ in range(1 if strategy == SIMPLE_ONE_FOR_ONE else dice.randint(1, CHILDREN_MAX)):
        if strategy != SIMPLE_ONE_FOR_ONE and depth < DEPTH_MAX and dice.random() < 0.2:
            children.append(_spec(dice, numbers, depth + 1))
        else:
            children.append(Child(f"c{next(numbers)}", dice.choice((PERMANENT, *RESTARTS)), 1))
    intensity, within_s = dice.randint(0, 5), dice.randint(1, 5)
    return Spec(name, strategy, intensity, within_s, tuple(children), dice.choice(RESTARTS))


def _refused(dice: Random, leaves: list[str], share: float) -> Counter[str]:
    return Counter(dice.choices(leaves, k=dice.randint(1, 3) if dice.random() < share else 0))


class Shell:
    """Does what the kernel decides, one action after the other; a failed start ends the row."""

    def __init__(self, history: History) -> None:
        self.trace: Trace = []
        self.running: dict[str, int] = {}  # leaves, with their incarnation
        self.newest = Counter[str]()  # the last incarnation of each that was started
        self.tree = {each.name: each for each in tree(history.spec)}
        self.boss = {child.name: each for each in self.tree.values() for child in members(each)}
        self.kept = {
            each.name: Decided((), (), dict.fromkeys((child.name for child in members(each)), 0))
            for each in self.tree.values()
        }
        self.refused = history.refused.copy()
        if not self._begun(history.spec):
            self.trace.append(("gave_up", history.spec.name))
        for step in history.steps:
            self.refused = step.refused.copy()
            newest = abs(self.kept[self.boss[step.name].name].children[step.name])
            self._ended(Ended(step.name, newest - step.age, step.reason), step.at_s)

    def _ended(self, ended: Ended, at_s: int) -> None:
        spec = self.boss[ended.name]
        if self.running.get(ended.name) == ended.incarnation:
            del self.running[ended.name]
        kept = self.kept[spec.name]
        decided = supervision.decide(spec, kept.children, ended, kept.ends, at_s)
        if failed := self._failed_start(spec, decided):
            self._ended(failed, at_s)
        elif decided.actions and isinstance(decided.actions[-1], Escalate):
            self.trace.append(("gave_up", spec.name))
            if above := self.boss.get(spec.name):
                number = self.kept[above.name].children[spec.name]
                self._ended(Ended(spec.name, number, SHUTDOWN), at_s)

    def _failed_start(self, spec: Spec, decided: Decided) -> Ended | None:
        """Carry the actions out, up to the first start that fails."""
        self.kept[spec.name] = decided
        for action in decided.actions:
            if isinstance(action, Start):
                if not self._started(action):
                    return Ended(action.name, action.incarnation)
            elif not isinstance(action, Escalate):
                self._stop(action.name, action.incarnation)
        return None

    def _started(self, start: Start) -> bool:
        if start.name in self.tree:
            return self._begun(self.tree[start.name])
        assert start.name not in self.running
        assert start.incarnation > self.newest[start.name]
        self.newest[start.name] = start.incarnation
        self.refused[start.name] -= 1
        if self.refused[start.name] >= 0:
            self.trace.append(("refused", start.name))
            return False
        self.trace.append(("started", start.name))
        self.running[start.name] = start.incarnation
        return True

    def _begun(self, spec: Spec) -> bool:
        """Start a supervisor: it fails with the first start that does."""
        decided = supervision.begin(spec, self.kept[spec.name].children)
        if self._failed_start(spec, decided):
            self._failed_start(spec, supervision.end(spec, decided.children))
            return False
        return True

    def _stop(self, name: str, incarnation: int) -> None:
        if name in self.tree:
            spec = self.tree[name]
            self._failed_start(spec, supervision.end(spec, self.kept[name].children))
        elif self.running.pop(name, 0) == incarnation:
            self.trace.append(("stopped", name))
