"""The list of agents, one of them, and what a person does about it."""

from contextlib import suppress
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.agents import processes
from dashboard.agents.words import CHARS_MAX, budgets_of, shown, tools_of
from dashboard.docs.windows import windows_of
from dashboard.runs.statechart_svg import statechart_of
from dashboard.verdicts.verdict_card import rule_of
from dashboard.web.downloads import attached
from dashboard.web.idempotency import once
from dashboard.web.pages import or_404, page, posted, see_other
from dashboard.web.workspace import existing, name_of
from engine.application import of_program
from engine.models import Workspace
from engine.ops import process_file
from engine.queries import agents
from engine.runtime import agents as runtime
from engine.store import programs
from gate import queries
from nanovm_core.core.authority.budget import CLOCK
from nanovm_core.core.authority.policy import SUSPENDED
from nanovm_core.core.lifecycle import EXHAUSTED
from nanovm_core.errors import RefusedError
from pipeline.application import current

HOME = "/agents/"
NOBODY = "your workspace has no agent of that name"
WITH_REASON = {"suspend": runtime.suspend, "kill": runtime.kill}
COMMANDS = {**WITH_REASON, "resume": runtime.resume, "declare": runtime.declare}


@page
def listing(request: HttpRequest) -> HttpResponse:
    log, found = existing(request), process_file.read()
    found_agents = [shown(each) for each in agents.of_log(log)] if log else []
    context = {
        "agents": [each for each in found_agents if not each.view.is_foreign],
        "foreign": [each for each in found_agents if each.view.is_foreign],
        "alerts": agents.alerts(log),
        "log": name_of(log) if log else "",
        "tree": processes.tree(found),
        "opens": processes.opens(processes.lines(found)),
    }
    return render(request, "agents/list.html", context)


@page
def one(request: HttpRequest, name: str) -> HttpResponse:
    log, found = own_agent(request, name)
    refused = rule_of(request.GET.get("refused", "")[:20]).code
    return _page(request, log, found, refused=refused)


@posted
def command(request: HttpRequest, name: str, event: str) -> HttpResponse:
    """Suspend, resume, kill or declare an agent; what was typed as the reason is sealed.

    A command that does not fit the agent's state changes nothing, and its page says so.
    """
    log, found = own_agent(request, name)
    here = f"{HOME}{name}/"
    if event == "declare" and found.is_foreign:  # with a new token, which is shown there
        return see_other(f"{HOME}connect/{name}/#anew")
    if event == "kill" and request.POST.get("confirm", "").strip() != f"KILL {name}":
        return _page(request, log, found, status=422, unconfirmed=True)
    typed = " ".join(request.POST.get("why", "").split())
    why = "".join(each for each in typed if each.isprintable())[:CHARS_MAX]  # terminals show it

    def act(owner: Workspace) -> str:
        said = {"why": why} if event in WITH_REASON else {}
        moved = COMMANDS[event](owner.id, name, by="visitor", **said)
        return f"{here}?refused={moved.code}" if moved.code else here

    return see_other(once(request, here, act))


@posted
def acknowledge(request: HttpRequest) -> HttpResponse:
    """Close an alert that no agent's next move closes."""
    or_404(existing(request), "there is no workspace yet")
    alert = request.POST.get("alert", "")

    def act(owner: Workspace) -> str:
        with suppress(RefusedError):  # it is closed by now, or is an agent's
            runtime.acknowledge(owner.id, alert, by="visitor")
        return HOME

    return see_other(once(request, HOME, act))


@page
def event(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """The exact bytes of an event of an agent's chain, counted from 1."""
    log, _ = own_agent(request, name)
    data = or_404(agents.event_bytes(log, name, number), "the agent has no such event")
    response = HttpResponse(data, content_type="application/octet-stream")
    return attached(response, f"{name}-{number}.json")


def own_agent(request: HttpRequest, name: str) -> tuple[Workspace, agents.AgentView]:
    """The visitor's workspace and its agent of this name; 404 where it has none."""
    log = or_404(existing(request), NOBODY)
    found = [each for each in agents.of_log(log) if each.name == name]
    return log, or_404(found[0] if found else None, NOBODY)


def _granted(program: str) -> list[tuple[str, bool]]:
    """The tools that a program of the gate grants; none of one that cannot be used now."""
    return [(tool.name, True) for tool in queries.programs().get(program, ())]


def _page(
    request: HttpRequest, log: Workspace, found: agents.AgentView, *, status: int = 200, **said: Any
) -> HttpResponse:
    events, ledger = agents.events_of(log, found.name), agents.ledger_of(log)
    last = next((each.row for each in events if "out" in each.body), None)
    move = (last.state_from, last.state_event, last.state_to) if last else ("", "", "")
    foreign = queries.of_agent(log.id, found.name) if found.is_foreign else ""
    is_usable = foreign in queries.programs()
    program = programs.current(of_program(foreign)) if is_usable else current()
    agent, known = found.agent, processes.lines(process_file.read())
    lines = [line for line in known if line.it.agent == found.name]
    is_clock = agent.account.startswith(CLOCK)
    is_raised = (ledger.limit(agent.account) or 0) > agent.limit
    context = {
        "lines": lines,
        "opens": processes.opens(lines),
        "it": shown(found),
        "foreign": foreign,
        "events": events,
        "sealed": last,
        "failures": agents.failed_before(log, last.seq) if last and agent.code == SUSPENDED else (),
        "machine": statechart_of(found.state, move, "agent"),
        "tools": _granted(foreign) if foreign else tools_of(program, found.name),
        "budgets": [*budgets_of(ledger, found.name)],
        "is_clock": is_clock,
        "may_resume": agent.state != EXHAUSTED or is_clock or is_raised,
        "windows": [*windows_of(program, found.name, log)],
        "chars_max": CHARS_MAX,
        "log": name_of(log),
    }
    return render(request, "agents/agent.html", {**context, **said}, status=status)
