"""Connect an agent of one's own: its token, shown once, and its calls as they arrive."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from dashboard.agents import foreign_run, snippets
from dashboard.agents.views import HOME, own_agent
from dashboard.agents.words import shown
from dashboard.start import calls
from dashboard.web.idempotency import once
from dashboard.web.pages import news, or_404, page, page_and_form, posted, see_other
from dashboard.web.workspace import existing
from engine.clock import now_ms
from engine.models import Workspace
from engine.queries import agents
from engine.queries.agents import AgentView
from engine.runtime import agents as runtime
from engine.store import actors
from gate import identity, queries
from gate.application import BROKEN
from gate.calls import run_of
from gate.identity import Holder
from gate.replies import REFUSED, GateError
from nanovm_core.agents import AGENTS_MAX, NAME, RESERVED, TERMINATED
from nanovm_core.errors import RefusedError

HERE = f"{HOME}connect/"
OURS = f"{HERE}{foreign_run.NAME}/"
BUNDLED = "bank_assistant"  # the program of the bundled agent
KEPT = RESERVED | {"connect", "run"}  # two addresses here
NAMELESS = "Type a name: small letters, digits and hyphens, a letter first, 30 at most."
BAD = "“{}” cannot be a name: use small letters, digits and hyphens, a letter first, 30 at most."
OTHERS = "“{}” is a name that nanovm uses itself. Choose another one."
TAKEN = "You have an agent “{}” already. Choose another name, or kill that one and connect it anew."
FULL = f"A workspace has {AGENTS_MAX} agents at most, ours included. Kill one and renew its token."
NO_PROGRAM = "Choose one of the programs."
NO_BUNDLED = "The foreign agent’s program cannot be used now: see /healthz."
# Of these errors there may be a run, which says what became of the call.
MADE = {"", "GAT-004", "GAT-007", "GAT-019"}
BUSY = "Too many foreign agents run on this server now. Try again in a minute."


class ConnectError(Exception):
    """Why an agent cannot be connected, and what to do, in sentences."""


@page_and_form
def connect(request: HttpRequest) -> HttpResponse:
    """The form (GET); connect an agent, whose token is on the answer of the POST alone.

    A form that is sent again leads to the agent's page, which has no token.
    """
    if request.method != "POST":
        return _form(request)
    name, program = request.POST.get("name", "").strip(), request.POST.get("program", "")
    issued: list[str] = []

    def act(owner: Workspace) -> str:
        if name == foreign_run.NAME:
            raise ConnectError(OTHERS.format(name))
        issued.append(_issued(owner, name, program))
        return f"{HERE}{name}/"

    try:
        url = once(request, HERE, act)
    except ConnectError as error:
        return _form(request, name=name, program=program, wrong=str(error))
    return _connected(request, name, *issued) if issued else see_other(url)


@page
def connected(request: HttpRequest, name: str) -> HttpResponse:
    """A connected agent without its token: its calls, and how to get a new one."""
    return _connected(request, name)


@page
def latest(request: HttpRequest, name: str) -> HttpResponse:
    """Its calls, for a page that stays open."""
    context = _calls(*own_agent(request, name))
    return news(request, render_to_string("agents/_calls_news.html", context))


@posted
def run_foreign(request: HttpRequest) -> HttpResponse:
    """Connect the bundled foreign agent anew and run it; one that still runs loses its token."""

    def act(owner: Workspace) -> str:
        def token() -> str:
            if BUNDLED not in queries.programs():
                raise ConnectError(NO_BUNDLED)
            known = agents.ledger_of(owner).agents.get(foreign_run.NAME)
            if known is not None and known.state not in TERMINATED:
                runtime.kill(owner.id, foreign_run.NAME, by="visitor")
                owner.refresh_from_db(fields=["ledger"])
            return _issued(owner, foreign_run.NAME, BUNDLED)

        foreign_run.start(owner.id, request.META["SERVER_PORT"], token)
        return OURS

    try:
        return see_other(once(request, OURS, act))
    except (foreign_run.BusyError, ConnectError) as error:
        return _form(request, refused=str(error) or BUSY)


def _issued(owner: Workspace, name: str, program: str) -> str:
    """The token of a new agent, or of one that was killed as its next incarnation.

    Raises:
        ConnectError: it cannot be connected. Nothing was done.
    """
    known = agents.ledger_of(owner).agents
    faults = {
        NAMELESS: not name,
        BAD.format(name[:30]): not NAME.fullmatch(name),
        OTHERS.format(name): name in KEPT or name in actors.agents(),
        TAKEN.format(name): name in known and known[name].state not in TERMINATED,
        FULL: name not in known and len(known) >= AGENTS_MAX,
        NO_PROGRAM: program not in queries.programs(),
    }
    wrong = next((text for text, holds in faults.items() if holds), "")
    if wrong:
        raise ConnectError(wrong)
    try:
        return identity.issue(owner.id, name, program, by="visitor")
    except (GateError, RefusedError) as error:  # another form was faster
        raise ConnectError(str(error)) from error


def _form(request: HttpRequest, *, name: str = "", program: str = "", **said: str) -> HttpResponse:
    log = existing(request)
    taken = agents.ledger_of(log).agents if log else {}
    free = (f"my-agent-{n}" if n else "my-agent" for n in range(AGENTS_MAX + 1))
    name = name or next(each for each in free if each not in taken)
    programs = {"programs": queries.programs(), "broken": BROKEN}
    context = {**programs, "name": name, "program": program, **said}
    return render(request, "agents/connect.html", context, status=422 if said else 200)


def _connected(request: HttpRequest, name: str, token: str = "") -> HttpResponse:
    """The page of an agent that calls through the gate; 404 for one of ours."""
    log, found = own_agent(request, name)
    program = or_404(queries.of_agent(log.id, name) or None, "that agent calls through no gate")
    tools, address = queries.programs().get(program, ()), f"{request.scheme}://{request.get_host()}"
    ways = snippets.ways(address, token, tools) if token else ()
    context = {"program": program, "tools": tools, "token": token, "ways": ways}
    return render(request, "agents/connected.html", {**context, **_calls(log, found)})


def _calls(log: Workspace, found: AgentView) -> dict[str, Any]:
    """The newest calls, the oldest first; of the bundled agent, what it said since it started."""
    name, total = found.name, queries.calls(log.id, found.name, 0, now_ms() + 1).count()
    lines: dict[str, Any] = {each[0].id: (*each, "") for each in calls.of_agent(log, name)[::-1]}
    child = foreign_run.last(log.id) if name == foreign_run.NAME else None
    if child:
        holder = Holder(log.id, name, found.agent.incarnation, "")
        known, lines, total = lines, {}, 0
        for each in [*child.said]:
            is_made = each.code in MADE or each.code.startswith(foreign_run.LOST)
            key = str(run_of(holder, each.request)) if is_made else each.request + each.code
            line = known.get(key) if is_made else (None, each, calls.WORDS[REFUSED], "")
            if line:
                lines.setdefault(key, (*line[:-1], each.aim))
    context = {"calls": [*lines.values()], "total": total, "name": name, "it": shown(found)}
    context |= {"is_bundled": name == foreign_run.NAME, "is_over": found.agent.state in TERMINATED}
    return {**context, "is_running": child is not None and child.is_running}
