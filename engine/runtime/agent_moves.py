"""What becomes of agents within a commit: each move on the agent's own chain, with its alert."""

from collections.abc import Collection, Mapping

from engine.clock import now_ms
from engine.models import Run, Workspace
from engine.runtime.ledgers import ALERT, Ledgers
from engine.store import programs
from nanovm_core import agents
from nanovm_core.agents import AGENTS_MAX, CHAIN, RUNNING, Agent, AgentEvent, Moved
from nanovm_core.core.authority.budget import name_of
from nanovm_core.core.events import PauseRequested
from nanovm_core.core.lifecycle import ACTIVE
from nanovm_core.core.messages import Snapshot, Suspension
from nanovm_core.errors import RefusedError
from nanovm_core.ledger.fold import AGENT
from nanovm_core.ledger.value import Alert

RUNTIME = "runtime"
BY_RULE, HALTED = "POL-004", "CAP-040"
_BEGINS = ("CapabilitiesGranted", "Started")  # what a declaration is followed by
_NOTHING: Mapping[str, object] = {}


def alert_id(name: str) -> str:
    """The id of an agent's alert in the ledger."""
    return f"agent/{name}"


def moved(
    ledgers: Ledgers,
    log: Workspace,
    name: str,
    event: AgentEvent,
    given: Mapping[str, object] = _NOTHING,
) -> Moved:
    """Seal what an event makes of an agent; one that its state forbids, as refused (AGT-001).

    A move that a rule decides opens an alert; what a person does next closes it. ``given``: what
    the envelope says besides.

    Raises:
        RefusedError: AGT-003, the log has no such agent.
    """
    before = ledgers.of(log).agents.get(name)
    if before is None:
        raise RefusedError("AGT-003", f"The log {log.origin} has no agent called {name!r}.")
    found = _sealed(ledgers, log, name, before, event, given)
    if found.code:
        return found
    if event.code:
        opened = Alert(event.code, event.text, name, event.at_ms)
        _alert(ledgers, log, alert_id(name), opened, event.by)
    elif alert_id(name) in ledgers.of(log).alerts:
        _alert(ledgers, log, alert_id(name), None, event.by)
    return found


def _sealed(
    ledgers: Ledgers,
    log: Workspace,
    name: str,
    before: Agent,
    event: AgentEvent,
    given: Mapping[str, object],
) -> Moved:
    found = agents.move(before, event)
    rule = found.code or event.code
    state = {"from": before.state, "event": event.name, "to": found.agent.state}
    said = {"outcome": "refused"} if found.code else {"out": agents.json_of(found.agent)}
    body = {"state": state, "decided_by": f"rule {rule}" if rule else "table", **said, **given}
    body |= {"rule": rule} if rule else {}
    ledgers.seal(log, AGENT, body, actor=event.by, owner=CHAIN + name)
    return found


def acknowledged(ledgers: Ledgers, log: Workspace, alert: str, by: str) -> None:
    """Close an alert about the log itself; that of an agent stays until the agent is dealt with.

    Raises:
        RefusedError: AGT-003, the log has no such alert.
    """
    found = ledgers.of(log).alerts.get(alert)
    if found is None or found.agent:
        text = f"The log {log.origin} has no alert {alert!r} that could be acknowledged."
        raise RefusedError("AGT-003", text)
    _alert(ledgers, log, alert, None, by)


def told(ledgers: Ledgers, log: Workspace, alert: str, said: Alert) -> None:
    """Keep that the operator's receiver took an alert, unless it is another one by now."""
    if ledgers.of(log).alerts.get(alert) == said:
        _alert(ledgers, log, alert, said._replace(told_ms=now_ms()), RUNTIME)


def _alert(ledgers: Ledgers, log: Workspace, name: str, alert: Alert | None, by: str) -> None:
    rule = {"rule": alert.rule} if alert else {}
    body = {"alerts": {name: dict(alert._asdict()) if alert else {}}, **rule}
    ledgers.seal(log, ALERT, body, actor=by)


def halted_error(name: str, state: str) -> RefusedError:
    """Why an agent begins nothing (CAP-040)."""
    said = state.replace(".", " ").replace("_", " ")
    return RefusedError(HALTED, f"The agent {name} is {said}: its runs go on once it is resumed.")


def pause(ledgers: Ledgers, log: Workspace, run: Run, now: Snapshot) -> PauseRequested | None:
    """The pause of a run that owes an effect which its agent may not begin; else None."""
    if now.owed is None or now.state != ACTIVE:
        return None
    name = programs.program_of(run).acting(now.owed.tool, now.agent)
    state = ledgers.halted(log).get(name)
    if state is None:
        return None
    why = halted_error(name, state)
    return PauseRequested(code=why.code, text=why.text)


# --- declared --------------------------------------------------------------------------------


def declare(
    ledgers: Ledgers,
    log: Workspace,
    names: Collection[str],
    given: Mapping[str, object] = _NOTHING,
) -> None:
    """Let agents begin that the log has not had yet; ``given``: what they may do.

    Raises:
        RefusedError: AGT-002, the log would have more than AGENTS_MAX.
    """
    known = ledgers.of(log).agents
    new = sorted({*names} - known.keys())
    if new and len(known) + len(new) > AGENTS_MAX:
        text = f"{log.origin} has {len(known)} agents; with {', '.join(new)} it would be too many."
        raise RefusedError("AGT-002", f"{text} A log has at most {AGENTS_MAX}.")
    for name in new:
        begin(ledgers, log, name, RUNTIME, Agent(), given)


def begin(
    ledgers: Ledgers,
    log: Workspace,
    name: str,
    by: str,
    agent: Agent,
    given: Mapping[str, object] = _NOTHING,
) -> Moved:
    """Let an agent that was declared run."""
    found = Moved(agent)
    for event, said in zip(_BEGINS, (given, _NOTHING), strict=True):
        asked = AgentEvent(event, by, now_ms())
        found = _sealed(ledgers, log, name, found.agent, asked, said)
    return found


# --- commanded by decisions ------------------------------------------------------------------


def suspend(ledgers: Ledgers, log: Workspace, asked: Suspension) -> None:
    """Suspend the agent that a decision names; one that does not run is left as it is.

    One that an older log does not know is declared first: what a rule stops does not go on.
    """
    agent = ledgers.of(log).agents.get(asked.agent)
    if agent is None:
        agent = begin(ledgers, log, asked.agent, RUNTIME, Agent()).agent
    if agent.state != RUNNING:
        return
    at_ms, text = now_ms(), f"{asked.why} (rule {asked.rule})"
    event = AgentEvent("Suspended", RUNTIME, at_ms, code=BY_RULE, text=text)
    if asked.account:
        account = name_of(asked.account, asked.agent)
        limit = ledgers.of(log).limit(account) or 0
        event = AgentEvent(
            "BudgetExceeded",
            RUNTIME,
            at_ms,
            asked.rule,
            asked.why,
            account=account,
            limit=limit,
        )
    moved(ledgers, log, asked.agent, event)
