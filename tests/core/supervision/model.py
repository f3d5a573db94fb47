"""OTP's supervisors once more, from their rules alone: whole trees of process objects."""

from collections import Counter
from typing import Optional

from nanovm_core.supervision import Spec
from tests.core.supervision.histories import History, Trace, members


class StartError(Exception):
    """A process could not be started."""


class World:
    """All processes of a tree, and what they did."""

    def __init__(self, history: History) -> None:
        self.trace: Trace = []
        self.leaves: dict[str, Leaf] = {}
        self.refused = history.refused.copy()
        root = Supervisor(self, history.spec, None)
        try:
            root.start()
        except StartError:
            self.trace.append(("gave_up", root.name))
        for step in history.steps:
            self.refused = step.refused.copy()
            leaf = self.leaves[step.name]
            if step.age == 0 and leaf.alive:
                leaf.alive = False
                leaf.boss.child_ended(leaf, step.reason, step.at_s)


class Leaf:
    """A process that has no children."""

    def __init__(self, world: World, name: str, restart: str, boss: "Supervisor") -> None:
        self.world, self.name, self.restart, self.boss = world, name, restart, boss
        self.alive = False
        world.leaves[name] = self

    def start(self) -> None:
        refused = self.world.refused[self.name] > 0
        self.world.trace.append(("refused" if refused else "started", self.name))
        if refused:
            self.world.refused[self.name] -= 1
            raise StartError
        self.alive = True

    def stop(self) -> None:
        self.world.trace.append(("stopped", self.name))
        self.alive = False


class Supervisor:
    """A process that has children. Numbers of rules are those of the semantics."""

    def __init__(self, world: World, spec: Spec, boss: Optional["Supervisor"]) -> None:
        self.world, self.spec, self.boss, self.alive = world, spec, boss, False
        self.name, self.restart = spec.name, spec.restart
        self.failures = Counter[int]()  # by their second
        self.children: list[Leaf | Supervisor] = [
            Supervisor(world, child, self)
            if isinstance(child, Spec)
            else Leaf(world, child.name, child.restart, self)
            for child in members(spec)
        ]

    def start(self) -> None:
        """Rule 3: left to right; a failure stops those already started, in reverse."""
        self.failures.clear()
        for child in self.children:
            try:
                child.start()
            except StartError:
                self.stop()
                raise
        self.alive = True

    def stop(self) -> None:
        """Rule 3: right to left."""
        self._stop_of(self.children)
        self.alive = False

    @staticmethod
    def _stop_of(children: "list[Leaf | Supervisor]") -> None:
        for child in reversed(children):
            if child.alive:
                child.stop()

    def child_ended(self, child: "Leaf | Supervisor", reason: str, second: int) -> None:
        """Rules 4, 2, 1 and 6."""
        if child.restart == "temporary" or (child.restart == "transient" and reason != "failed"):
            return
        failed: Leaf | Supervisor | None = child
        while failed is not None:
            self.failures[second] += 1
            window = range(second - self.spec.within_s, second + 1)
            if sum(self.failures[each] for each in window) > self.spec.max_restarts:
                self.stop()
                self.world.trace.append(("gave_up", self.name))
                if self.boss is not None:
                    self.boss.child_ended(self, "shutdown", second)
                return
            failed = self._tried_again(failed)

    def _tried_again(self, failed: "Leaf | Supervisor") -> "Leaf | Supervisor | None":
        """Rule 3 for each strategy: the child whose start failed, if one did."""
        place = self.children.index(failed)
        group = {"one_for_all": self.children, "rest_for_one": self.children[place:]}
        again = group.get(self.spec.strategy, [failed])
        self._stop_of(again)
        for child in again:
            try:
                if child.restart != "temporary":
                    child.start()
            except StartError:
                return child
        return None


def expected(history: History) -> tuple[Trace, set[str]]:
    """What happens, and who runs in the end."""
    world = World(history)
    return world.trace, {name for name, leaf in world.leaves.items() if leaf.alive}
