"""Agents' processes as agents of the house log: each start and end is a sealed move of theirs.

A thread of its own seals them in their order, and again where the database does not answer, so
whoever supervises the processes does not wait for it. An incarnation is the ledger's own.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue

from django.db import DatabaseError, connections

from engine.clock import now_ms
from engine.ops.members import ENDED, GAVE_UP, STARTED, STOPPED, Happened
from engine.runtime import queue
from engine.runtime.agent_moves import RUNTIME, Agents
from engine.runtime.group_commit import Job, committed
from engine.runtime.transaction import Commit
from engine.store import leases
from nanovm_core.agents import RUNNING, TERMINATED, Agent, AgentEvent
from nanovm_core.errors import RefusedError, VerificationError

log = logging.getLogger(__name__)

GAVE_UP_CODE = "AGT-004"
RETRY_SECONDS = 1.0
TELL_SECONDS = 5.0
_ENDS = {ENDED: "Failed", STOPPED: "Completed"}


class Sealing:
    """Seals what happened to the processes of agents, frees their leases, and tells of alerts.

    ``tell``: posts open alerts, which no worker does once a supervisor gave up.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        self.incarnations: Mapping[str, int] = {}  # as sealed, by the name of the process
        self._tell, self._given_up, self._closing = tell, False, threading.Event()
        self._happened: SimpleQueue[Happened | None] = SimpleQueue()
        self._unsealed: Counter[str] = Counter()  # ends, by the name of the process
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def told(self, happened: Happened) -> None:
        """Take it in; it is sealed soon, after what was told before."""
        if happened.what in (GAVE_UP, STARTED) or happened.agent:
            self._unsealed[happened.name] += happened.what in _ENDS
            self._happened.put(happened)

    def sealed(self, name: str) -> bool:
        """Whether each end of this process that was told is sealed."""
        return not self._unsealed[name]

    def close(self, seconds: float) -> None:
        """Seal what was told, for so long; the next start finds what is left undone."""
        self._closing.set()
        self._happened.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            while True:
                try:
                    happened = self._happened.get(timeout=TELL_SECONDS)
                except Empty:
                    if self._given_up:
                        self._is_done(self._tell)
                    continue
                if happened is None:
                    return
                self._take(happened)
        finally:
            connections.close_all()

    def _take(self, happened: Happened) -> None:
        steps: list[Callable[[], None]] = [lambda: self._seal(happened)]
        if happened.what in _ENDS:
            steps.append(lambda: _free(happened))
        while steps := [step for step in steps if not self._is_done(step)]:
            if self._closing.wait(RETRY_SECONDS):
                return
        if happened.what == GAVE_UP:
            self._given_up = True
            self._is_done(self._tell)

    def _is_done(self, step: Callable[[], None]) -> bool:
        """Whether it need not be tried again."""
        try:
            step()
        except (DatabaseError, OSError) as error:
            log.warning("what happened to a process is sealed later: %s", error)
            connections.close_all()
            return False
        except (VerificationError, RefusedError):
            log.exception("what happened to a process cannot be sealed")
        return True

    def _seal(self, happened: Happened) -> None:
        def seal(commit: Commit) -> dict[str, int]:
            found = Agents(commit.ledgers, commit.ledgers.house())
            for name in happened.below or (happened.name,):
                _move(found, name, happened)
            known = found.ledgers.of(found.log).agents
            return {name: agent.incarnation for name, agent in known.items()}

        try:
            self.incarnations = committed(Job(seal))
        except (VerificationError, RefusedError):
            self._unsealed[happened.name] -= happened.what in _ENDS
            raise
        self._unsealed[happened.name] -= happened.what in _ENDS


def _move(found: Agents, name: str, happened: Happened) -> None:
    """Seal what happened; what the agent's state says already is not sealed again."""
    agent = found.ledgers.of(found.log).agents.get(name)
    text = f"{happened.text} (pid {happened.pid})" if happened.pid else happened.text
    if happened.what == STARTED and not happened.agent:  # no agent: only its alert is kept
        found.agree(name, {GAVE_UP_CODE}, RUNTIME)
    elif happened.what == STARTED:
        _begin(found, name, agent, text)
    elif happened.what == GAVE_UP:
        found.stay_stopped(name, GAVE_UP_CODE, text)
    elif agent is not None and agent.state == RUNNING:
        found.moved(name, AgentEvent(_ENDS[happened.what], RUNTIME, now_ms(), text=text))


def _begin(found: Agents, name: str, agent: Agent | None, text: str) -> None:
    """Let it run as the next incarnation; its last one ends first, where nobody saw it end."""
    if agent is None:
        found.begin(name, RUNTIME, Agent(), text=text)
        return
    if agent.state not in TERMINATED:
        event = "Failed" if agent.state == RUNNING else "Killed"
        why = "It ended with its supervisor."
        found.moved(name, AgentEvent(event, RUNTIME, now_ms(), text=why))
    again = found.moved(name, AgentEvent("Declared", RUNTIME, now_ms()))
    found.begin(name, RUNTIME, again.agent, text=text)


def _free(happened: Happened) -> None:
    """Free the runs that a process held, and have them taken over by another of its agent."""
    if leases.free_of(happened.tag):
        queue.call_worker(queue.of_agent(happened.agent))
