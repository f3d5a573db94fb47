"""OTP's supervisors once more, from their rules alone: a tree of process objects."""

from collections import Counter
from collections.abc import Iterator
from typing import Optional

from nanovm_core.supervision import Child, Spec
from tests.core.supervision.histories import History, Trace, members


class StartError(Exception):
    """A process could not be started."""


class Process:
    """One that runs or does not; a supervisor has children. Rules: those of the semantics."""

    def __init__(self, spec: Child | Spec, boss: Optional["Process"], trace: Trace) -> None:
        self.spec, self.boss, self.trace, self.alive = spec, boss, trace, False
        self.refused = Counter[str]()  # the next starts that fail; all of a tree share it
        self.failures = Counter[int]()  # by their second
        below = members(spec) if isinstance(spec, Spec) else []
        self.children = [Process(child, self, trace) for child in below]

    def tree(self) -> Iterator["Process"]:
        yield self
        for child in self.children:
            yield from child.tree()

    def start(self) -> None:
        """Rule 3: left to right; a failure stops those already started, in reverse."""
        if isinstance(self.spec, Child):
            refused = self.refused[self.spec.name] > 0
            self.trace.append(("refused" if refused else "started", self.spec.name))
            if refused:
                self.refused[self.spec.name] -= 1
                raise StartError
        self.failures.clear()
        for child in self.children:
            try:
                child.start()
            except StartError:
                stop(self.children)
                raise
        self.alive = True

    def child_ended(self, child: "Process", reason: str, second: int) -> None:
        """Rules 4, 2, 1 and 6."""
        child.alive = False
        restart = child.spec.restart
        if restart == "temporary" or (restart == "transient" and reason != "failed"):
            return
        assert isinstance(self.spec, Spec)
        self.failures[second] += 1
        window = range(second - self.spec.within_s, second + 1)
        if sum(self.failures[each] for each in window) > self.spec.max_restarts:
            stop(self.children)
            self.trace.append(("gave_up", self.spec.name))
            if self.boss is not None:
                self.boss.child_ended(self, "shutdown", second)
        elif failed := self._start_again(child, self.spec.strategy):
            self.child_ended(failed, "failed", second)

    def _start_again(self, child: "Process", strategy: str) -> Optional["Process"]:
        """Rule 3 for each strategy: the child whose start failed, if one did."""
        rest = self.children[self.children.index(child) :]
        group = {"one_for_all": self.children, "rest_for_one": rest}.get(strategy, [child])
        stop(group)
        for each in group:
            try:
                if each.spec.restart != "temporary":
                    each.start()
            except StartError:
                return each
        return None


def stop(processes: list[Process]) -> None:
    """Rule 3: right to left."""
    for each in reversed(processes):
        stop(each.children)
        if each.alive and isinstance(each.spec, Child):
            each.trace.append(("stopped", each.spec.name))
        each.alive = False


def expected(history: History) -> tuple[Trace, set[str]]:
    """What happens, and who runs in the end."""
    trace: Trace = []
    root = Process(history.spec, None, trace)
    every = {each.spec.name: each for each in root.tree()}

    def refuse(names: Counter[str]) -> None:
        for each in every.values():
            each.refused = names

    refuse(history.refused.copy())
    try:
        root.start()
    except StartError:
        trace.append(("gave_up", root.spec.name))
    for step in history.steps:
        refuse(step.refused.copy())
        leaf = every[step.name]
        if step.age == 0 and leaf.alive and leaf.boss:
            leaf.boss.child_ended(leaf, step.reason, step.at_s)
    return trace, {name for name, each in every.items() if each.alive and not each.children}
