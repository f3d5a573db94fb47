"""Runs a tree of supervised processes: carries out what ``nanovm_core.supervision`` decides.

All of it happens in the main thread, and nothing waits: ``tend`` does what is due, and is called
again and again. A slow stop holds up the children of the same supervisor, as in OTP, and no others.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from engine.clock import now_ms
from engine.ops import process_file, processes
from engine.ops.members import GAVE_UP, End, Happened, Member, Process, short
from engine.ops.processes import START_SECONDS_MAX, Child, ProcessError, ready
from nanovm_core.supervision import (
    FAILED,
    SHUTDOWN,
    Decided,
    Ended,
    Escalate,
    Spec,
    Start,
    Stop,
    begin,
    decide,
    end,
)

SEALED_MS_MAX = 2_000  # a start waits so long for the end before it to be sealed


@dataclass(slots=True)
class _Node:
    """A supervisor of the tree, and what it has decided that is not done yet."""

    spec: Spec
    said: process_file.Node
    children: Mapping[str, int]
    ends: tuple[int, ...] = ()
    todo: deque[Start | Stop | Escalate] = field(default_factory=deque)
    due: dict[str, int] = field(default_factory=dict)  # the children that wait for their start
    stopping: bool = False


class Supervisor:
    """The processes of a tree of supervisors.

    Args:
        spec: the root. When it gives up, ``tend`` raises a ProcessError; that another one gave up
            is told, and the rest runs on.
        members: all processes of the tree; those of a template by their own names.
        told: called with each thing that happened; it must not wait.
        sealed: whether the last end of a process was sealed; its start waits for that, for
            SEALED_MS_MAX at the most.
        say: prints a line for the person at the terminal.
        instances: the children of each simple_one_for_one supervisor, by its name.
    """

    def __init__(
        self,
        spec: Spec,
        members: Collection[Member],
        *,
        told: Callable[[Happened], None] = lambda _: None,
        sealed: Callable[[str], bool] = lambda _: True,
        say: Callable[[str], None] = lambda _: None,
        instances: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self._receiver, self._sealed, self._say = told, sealed, say
        self._members = {each.name: each for each in members}
        self._nodes: dict[str, _Node] = {}
        self._processes: dict[str, Process] = {}
        self._root = self._grown(spec, instances or {})
        self.changed = True  # since the caller last set it to False

    def _grown(self, spec: Spec, instances: Mapping[str, Collection[str]]) -> _Node:
        names = tuple(instances.get(spec.name, ())) or tuple(each.name for each in spec.children)
        said = process_file.Node(spec.strategy, spec.max_restarts, spec.within_s, [*names])
        node = self._nodes[spec.name] = _Node(spec, said, dict.fromkeys(names, 0))
        for name in names:
            each = next((each for each in spec.children if each.name == name), spec.children[0])
            if isinstance(each, Spec):
                self._grown(each, instances)
            else:
                member = self._members[name]
                of = process_file.Process(member.agent)
                self._processes[name] = Process(member, of, self._told)
        return node

    def start(self) -> None:
        """Start all for the first time, side by side, and wait until each answers.

        Raises:
            ProcessError: one did not. The caller stops the others.
        """
        try:
            self._start_first(self._root)
        except OSError as error:  # no process or no file is to be had
            raise ProcessError(f"A process could not be started ({error}).") from error
        for each in self._processes.values():
            if each.child is not None:
                each.runs(ready(each.child))

    def _start_first(self, node: _Node) -> None:
        node.children = begin(node.spec, node.children).children
        for name, incarnation in node.children.items():
            if name in self._nodes:
                self._start_first(self._nodes[name])
                continue
            each = self._processes[name]
            child = each.start(incarnation)
            if each.member.first is not None:
                each.member.first(ready(child).url)

    def children(self) -> list[Child]:
        """Those that were started, left to right."""
        return [each.child for each in self._processes.values() if each.child is not None]

    def stop(self, seconds: float, but: Collection[str] = ()) -> None:
        """Stop all, side by side, except those of these names; waits so long, then kills."""
        ending = [each for name, each in self._processes.items() if name not in but]
        processes.stop([each.running for each in ending if each.running], seconds)
        for each in ending:
            each.is_gone(0, 0)

    def status(self) -> process_file.Processes:
        """All of it as the status file has it."""
        return process_file.Processes(
            {name: node.said for name, node in self._nodes.items()},
            {name: each.said for name, each in self._processes.items()},
        )

    # --- looking at all once ---------------------------------------------------------------------

    def tend(self) -> None:
        """Look at each process once, and do what is due.

        Raises:
            ProcessError: the root gave up.
        """
        now = time.monotonic_ns() // 1_000_000
        for node in self._nodes.values():
            self._carry_out(node, now)
            for name, incarnation in tuple(node.children.items()):
                if node.todo:
                    break  # as in OTP: a supervisor that stops a child looks at no other
                if incarnation > 0 and (found := self._end_of(node, name, now)):
                    self._decide(node, Ended(name, incarnation, found.reason), found.how, now)
                    self._carry_out(node, now)

    def _end_of(self, node: _Node, name: str, now: int) -> End | None:
        """Why a child ended; None where it did not."""
        if name in node.due:
            return self._started(node, name, now) if now >= node.due[name] else None
        if below := self._nodes.get(name):
            gave_up = below.said.gave_up_ms > 0 and not below.todo
            return End(SHUTDOWN, f"the supervisor {name} gave up") if gave_up else None
        each = self._processes[name]
        starting = each.said.state == process_file.STARTING
        if starting and each.answered is not None and each.answered is each.child:
            each.runs(each.answered)
            self._say(f"{_capital(each.title)} runs again.")
            self.changed = True
        return each.end(now)

    def _started(self, node: _Node, name: str, now: int) -> End | None:
        """Start a child whose time has come; a start that failed is its end."""
        if below := self._nodes.get(name):
            below.said.gave_up_ms, below.said.ends_ms = 0, []
            below.stopping = False
            self._takes(below, begin(below.spec, below.children))
            del node.due[name]
            return None
        each = self._processes[name]
        if not self._sealed(name) and now < each.ended_at + SEALED_MS_MAX:
            return None
        del node.due[name]
        try:
            where = each.start_again(node.children[name], now)
        except OSError as error:
            return End(FAILED, f"{each.title} could not be started ({error})")
        seconds = f"{START_SECONDS_MAX:g} s"
        self._say(f"{_capital(each.title)} was started; it has {seconds} to answer{where}.")
        return None

    # --- what was decided ------------------------------------------------------------------------

    def _decide(self, node: _Node, ended: Ended, how: str, now: int) -> None:
        decided = decide(node.spec, node.children, ended, node.ends, now // 1000)
        if decided.ends != node.ends:
            node.said.ends_ms = [*node.said.ends_ms, now_ms()][-len(decided.ends) :]
        starts = [each for each in decided.actions if isinstance(each, Start)]
        failed = self._processes.get(ended.name)
        if starts:
            others = [each.name for each in starts if each.name != ended.name]
            also = f", and with it: {', '.join(others)}" if others else ""
            wait = f"{starts[0].after_ms / 1000:g} s"
            self._say(f"{_capital(how)}. It is started again in {wait}{also}.")
        elif any(isinstance(each, Escalate) for each in decided.actions):
            log = failed.child.log if failed and failed.child else "the logs"
            self._give_up(node, _capital(how), len(decided.ends), f"mend what {log} says")
        else:
            self._say(f"{_capital(how)}. It is not started again.")
        if failed and not starts:
            failed.is_at(process_file.STOPPED)
        self._takes(node, decided)

    def _give_up(self, node: _Node, how: str, ends: int, mend: str) -> None:
        spec, below = node.spec, tuple(self._below(node))
        often = f"The supervisor {spec.name} counted {ends} failures in {spec.within_s} s, so"
        if node is self._root:
            raise ProcessError(
                f"{how}. {often} the rest was stopped too: {mend}, then start it again."
            )
        node.said.gave_up_ms = now_ms()
        stay = f"{often} these stay stopped: {', '.join(below)}. Their work waits"
        text = f"{short(how)}. {stay}."
        self._told(Happened(GAVE_UP, spec.name, text=text, below=below))
        self._say(f"{how}. {stay}, and the rest runs on: {mend}, then end and start it again.")

    def _below(self, node: _Node) -> Iterator[str]:
        for name in node.children:
            if name in self._nodes:
                yield from self._below(self._nodes[name])
            else:
                yield name

    def _takes(self, node: _Node, decided: Decided) -> None:
        """Keep what was decided; stops that are still to be done come first, starts lapse."""
        stops = [each for each in node.todo if isinstance(each, Stop)]
        node.todo = deque([*stops, *decided.actions])
        node.children, node.ends = decided.children, decided.ends
        self.changed = True

    def _carry_out(self, node: _Node, now: int) -> None:
        while node.todo:
            action = node.todo[0]
            if isinstance(action, Stop) and not self._is_gone(node, action, now):
                return
            node.todo.popleft()
            if isinstance(action, Start):
                node.due[action.name] = now + action.after_ms
                if each := self._processes.get(action.name):
                    each.is_at(process_file.DOWN)

    def _is_gone(self, node: _Node, stop: Stop, now: int) -> bool:
        """Whether a child that has to stop is gone; has it stop where it is not."""
        if node.due.pop(stop.name, None) is not None:
            if each := self._processes.get(stop.name):
                each.is_at(process_file.STOPPED)
            return True
        below = self._nodes.get(stop.name)
        if below is None:
            return self._processes[stop.name].is_gone(stop.shutdown_ms, now)
        if not below.stopping:
            below.stopping = True
            self._takes(below, end(below.spec, below.children))
        self._carry_out(below, now)
        return not below.todo

    def _told(self, happened: Happened) -> None:
        self.changed = True
        self._receiver(happened)


def _capital(text: str) -> str:
    return text if text.startswith("manage.py") else text[:1].upper() + text[1:]
