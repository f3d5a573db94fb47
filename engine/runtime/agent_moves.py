"""What becomes of agents within a commit: each move on the agent's own chain, with its alert."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from engine.clock import now_ms
from engine.models import Run, Workspace
from engine.runtime.ledgers import ALERT, Ledgers
from engine.store import programs
from engine.store.ledgers import is_of_house
from nanovm_core import agents
from nanovm_core.agents import AGENTS_MAX, CHAIN, NAME, RESERVED, RUNNING, Agent, AgentEvent, Moved
from nanovm_core.core.authority.budget import name_of
from nanovm_core.core.authority.policy import SUSPENDED
from nanovm_core.core.events import PauseRequested
from nanovm_core.core.lifecycle import ACTIVE
from nanovm_core.core.messages import NOTHING, Snapshot, Suspension
from nanovm_core.errors import RefusedError
from nanovm_core.ledger.fold import AGENT
from nanovm_core.ledger.value import Alert

RUNTIME = "runtime"
HALTED = "CAP-040"
COMPARISON = "comparison"  # the alert about what is outside, and no agent's


class Agents(NamedTuple):
    """The agents and alerts of a log that a commit has locked."""

    ledgers: Ledgers
    log: Workspace

    def moved(self, name: str, event: AgentEvent) -> Moved:
        """Seal what an event makes of an agent; one that its state forbids, as refused (AGT-001).

        A move that a rule decides opens an alert; what a person does next closes it.

        Raises:
            RefusedError: AGT-003, the log has no such agent.
        """
        now = self.ledgers.of(self.log)
        before = now.agents.get(name)
        if before is None:
            raise RefusedError("AGT-003", f"The log {self.log.origin} has no agent {name!r}.")
        raised = event.raised or (now.limit(before.account) or 0) > before.limit
        found = self._sealed(name, before, event._replace(raised=raised))
        alert = f"agent/{name}"
        if not found.code and event.code:
            self._alert(alert, Alert(event.code, event.text, name, event.at_ms), event.by)
        elif not found.code and alert in now.alerts:
            self._alert(alert, None, event.by)
        return found

    def _sealed(
        self, name: str, before: Agent, event: AgentEvent, given: Mapping[str, object] = NOTHING
    ) -> Moved:
        newest_ms = self.ledgers.of(self.log).at_ms  # a log's time never goes back
        found = agents.move(before, event._replace(at_ms=max(event.at_ms, newest_ms)))
        rule = found.code or event.code
        state = {"from": before.state, "event": event.name, "to": found.agent.state}
        body: dict[str, object] = {"state": state, "decided_by": "table", **given}
        body |= {"rule": rule, "decided_by": f"rule {rule}"} if rule else {}
        body |= {"outcome": "refused"} if found.code else {"out": agents.json_of(found.agent)}
        self.ledgers.seal(self.log, AGENT, body, actor=event.by, owner=CHAIN + name)
        return found

    def declare(
        self,
        names: Collection[str],
        by: str = RUNTIME,
        given: Mapping[str, object] = NOTHING,
        key: str = "",
    ) -> None:
        """Let agents begin that the log has not had yet; ``given``: what they may do.

        ``key``: what they are known by.

        Raises:
            RefusedError: AGT-002, no agent is called so, or the log would have too many.
        """
        known = self.ledgers.of(self.log).agents
        new = sorted({*names} - known.keys())
        for name in new:
            if not NAME.fullmatch(name) or name in RESERVED:
                raise RefusedError("AGT-002", f"{name!r} is no agent's name: {NAME.pattern}")
        if new and len(known) + len(new) > AGENTS_MAX:
            text = f"{self.log.origin} has {len(known)} agents; a log has at most {AGENTS_MAX}."
            raise RefusedError("AGT-002", text)
        for name in new:
            self.begin(name, by, Agent(key=key), given)

    def begin(
        self,
        name: str,
        by: str,
        agent: Agent,
        given: Mapping[str, object] = NOTHING,
        text: str = "",
    ) -> Moved:
        """Let an agent that was declared run."""
        granted = AgentEvent("CapabilitiesGranted", by, now_ms())
        ready = self._sealed(name, agent, granted, given).agent
        return self._sealed(name, ready, AgentEvent("Started", by, now_ms(), text=text))

    def suspend(self, asked: Suspension) -> None:
        """Suspend the agent that a decision names; one that does not run is left as it is.

        One that an older log does not know is declared first: what a rule stops does not go on.
        """
        now, at_ms = self.ledgers.of(self.log), now_ms()
        agent = now.agents.get(asked.agent) or self.begin(asked.agent, RUNTIME, Agent()).agent
        if agent.state != RUNNING:
            return
        text = f"{asked.why} (rule {asked.rule})"
        event = AgentEvent("Suspended", RUNTIME, at_ms, SUSPENDED, text)
        if asked.account:
            event = AgentEvent("BudgetExceeded", RUNTIME, at_ms, asked.rule, asked.why)
            account = name_of(asked.account, asked.agent)
            event = event._replace(account=account, limit=now.limit(account) or 0)
        self.moved(asked.agent, event)

    def stay_stopped(self, name: str, code: str, text: str) -> None:
        """Suspend an agent by a rule; one that does not run has an alert that says the same."""
        agent, at_ms = self.ledgers.of(self.log).agents.get(name), now_ms()
        if agent is not None and agent.state == RUNNING:
            self.moved(name, AgentEvent("Suspended", RUNTIME, at_ms, code, text))
        else:
            self._alert(f"agent/{name}", Alert(code, text, name, at_ms), RUNTIME)

    def differ(self, name: str, code: str, text: str) -> None:
        """Stop an agent because the outside differs from the log; without one, the log is told."""
        if name:
            self.stay_stopped(name, code, text)
        else:
            self._alert(COMPARISON, Alert(code, text, "", now_ms()), RUNTIME)

    def agree(self, name: str, codes: Collection[str], by: str) -> None:
        """Close the alert of such differences, unless the agent is stopped: a person resumes it."""
        now = self.ledgers.of(self.log)
        alert = f"agent/{name}" if name else COMPARISON
        is_ours = alert in now.alerts and now.alerts[alert].rule in codes
        if is_ours and now.agents.get(name, Agent(RUNNING)).state == RUNNING:
            self._alert(alert, None, by)

    def halted(self, at_ms: int) -> Mapping[str, str]:
        """The agents that begin no effect, each with its state; the clocks that are over stop."""
        now = self.ledgers.of(self.log)
        over = agents.over_time(now.agents, now.limits, max(at_ms, now.at_ms))
        for each in over:
            self.suspend(each)
        return agents.halted((self.ledgers.of(self.log) if over else now).agents)

    def pause(self, run: Run, now: Snapshot) -> PauseRequested | None:
        """The pause of a run that owes an effect which its agent may not begin; else None."""
        if now.owed is None or now.state != ACTIVE:
            return None
        name = programs.program_of(run).acting(now.owed.tool, now.agent)
        state = self.halted(now_ms()).get(name)
        return PauseRequested(code=HALTED, text=halted_error(name, state).text) if state else None

    def acknowledge(self, alert: str, by: str) -> None:
        """Close an alert about the log itself: an agent's is closed by what is done to the agent.

        In the house log too that of an agent that does not run, to which nothing else can be done.
        Raises RefusedError AGT-003 where the log has no such alert.
        """
        now = self.ledgers.of(self.log)
        found = now.alerts.get(alert)
        runs = found is not None and now.agents.get(found.agent, Agent()).state == RUNNING
        if found is None or (found.agent and (runs or not is_of_house(self.log.id))):
            text = f"The log {self.log.origin} has no alert {alert!r} to acknowledge."
            raise RefusedError("AGT-003", text)
        self._alert(alert, None, by)

    def told(self, alert: str, said: Alert) -> None:
        """Keep that the operator's receiver took an alert, unless it is another one by now."""
        if self.ledgers.of(self.log).alerts.get(alert) == said:
            self._alert(alert, said._replace(told_ms=now_ms()), RUNTIME)

    def _alert(self, name: str, alert: Alert | None, by: str) -> None:
        said = {"alerts": {name: dict(alert._asdict()) if alert else {}}}
        self.ledgers.seal(self.log, ALERT, said, actor=by)


def halted_error(name: str, state: str) -> RefusedError:
    """Why an agent begins nothing (CAP-040)."""
    said = state.partition(".")[0]
    return RefusedError(HALTED, f"The agent {name} is {said}: its runs go on once it is resumed.")
