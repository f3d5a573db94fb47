"""Connecting an agent: its token is shown once, its calls come to its page; and one is bundled."""

import html
import json
import logging
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.apps import apps
from django.core import serializers

from dashboard.agents import connect, foreign_run
from engine.models import Run, Workspace
from engine.ops.log_files import WithoutSecrets
from engine.runtime import agents as runtime
from gate import calls, identity
from gate.application import BROKEN
from gate.replies import GateError
from nanovm_core.agents import AGENTS_MAX
from tests.dashboard.visitor import Visitor, words
from tests.gate.conftest import installed
from tests.kit.house import ROOT

pytestmark = pytest.mark.usefixtures("db", "gate")

HERE = "/agents/connect/"
FORM = {"name": "clerk", "program": "desk"}
TOKEN = re.compile(r"nvm1\.[0-9a-f]{32}\.[a-z0-9-]+\.[a-z0-9_]+\.[\w-]{32}")
MAIL = b'{"tool": "mail", "args": {"to": "ada", "body": "Hello"}}'
# What is said of a form, by what is wrong with it.
WRONG = {
    "Clerk": "cannot be a name",
    "a" * 31: "cannot be a name",
    "": "Type a name",
    "visitor": "nanovm uses itself",
    "payer": "nanovm uses itself",
    "connect": "nanovm uses itself",
    foreign_run.NAME: "nanovm uses itself",
    "taken": "You have an agent “taken” already",
}
ENVIRONMENT = (
    "import json, os; print(json.dumps(dict(os.environ)));"
    "said = {'request': '1', 'tool': 'mail', 'aim': 'to an attacker'};"
    "print(json.dumps({**said, 'code': 'GAT-002'}));"
    "print(json.dumps({**said, 'code': 'a word of its own'}));"
    "print(json.dumps({**said, 'request': 'last', 'code': ''}))"
)
SLEEPS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' desk is a program of the gate, and that of the bundled agent."""
    installed(monkeypatch)
    monkeypatch.setattr(connect, "BUNDLED", "desk")


def chips(page: str) -> list[str]:
    """The verdicts of the calls that a page shows, in its order."""
    return re.findall(r'class="chip is-\w*">(.*?)<', page.partition('id="calls"')[2])


def tokens(page: str) -> set[str]:
    return set(TOKEN.findall(html.unescape(page)))


def connected(visitor: Visitor, **form: str) -> str:
    """The token of an agent that is connected by the form."""
    (token,) = tokens(visitor.refused(HERE, {**FORM, **form}, status=200))
    return token


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended may wait to be asked for its status."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_token_is_shown_once_and_kept_nowhere(visitor: Visitor) -> None:
    form = {**FORM, "Idempotency-Key": "k"}
    answer = visitor.post(HERE, form)
    (token,) = tokens(answer.content.decode())
    assert answer["Cache-Control"] == "no-store"
    assert identity.holder(token).agent == "clerk"
    again = visitor.post(HERE, form)
    assert (again.status_code, again["Location"]) == (303, f"{HERE}clerk/")
    for path in (HERE, f"{HERE}clerk/", f"{HERE}clerk/news/", "/agents/", "/agents/clerk/"):
        assert "nvm1." not in visitor.read(path), path
    secret = token.rpartition(".")[2]
    rows = [row for model in apps.get_models() for row in model._default_manager.all()]
    assert "clerk" in (stored := serializers.serialize("json", rows))
    assert secret not in stored
    said = logging.LogRecord("x", 30, "x", 1, "Authorization: Bearer %s", (token,), None)
    WithoutSecrets().filter(said)
    assert secret not in said.getMessage()


def test_each_way_to_call_has_the_address_that_the_visitor_uses(visitor: Visitor) -> None:
    answer = visitor.post(HERE, FORM, secure=True, headers={"host": "localhost:8443"})
    page = html.unescape(answer.content.decode())
    mcp, curl, python = re.findall(r'id="way-\d">(.*?)</pre>', page, re.DOTALL)
    (token,) = tokens(page)
    server = json.loads(mcp)["mcpServers"]["nanovm"]
    assert server["url"] == "https://localhost:8443/gate/mcp"
    assert server["headers"] == {"Authorization": f"Bearer {token}"}
    assert "curl https://localhost:8443/gate/v1/calls" in curl
    call = json.loads(re.findall("-d '(.*)'", curl)[0])
    assert call.pop("request")
    reply = calls.ask(identity.holder(token), "1", json.dumps(call).encode())
    assert (call["tool"], reply.verdict) == ("mail", "allowed")
    compile(python, "pasted", "exec")
    assert f"Gate('https://localhost:8443', '{token}')" in python


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_in_the_form_and_nothing_is_lost(visitor: Visitor, name: str) -> None:
    connected(visitor, name="taken")
    page = html.unescape(visitor.refused(HERE, {"name": name, "program": "desk"}))
    assert WRONG[name] in page
    assert not name or f'value="{name}"' in page
    assert re.search(r'value="desk" required checked', page)
    assert len(runtime.read(Workspace.objects.get().id).agents) == 1


def gone(*_: object, **__: object) -> str:
    raise GateError("GAT-014", "The program 'desk' cannot be used here.")


def test_a_full_workspace_and_a_program_at_fault_are_said(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Choose one of the programs." in visitor.refused(HERE, {**FORM, "program": "nope"})

    with monkeypatch.context() as patch:
        patch.setitem(BROKEN, "help_desk.toml", "line 3: no such step")
        patch.setattr(identity, "issue", gone)
        page = words(visitor.refused(HERE, {**FORM, "Idempotency-Key": "k"}))
    assert "The program 'desk' cannot be used here." in page
    assert "help_desk.toml has an error and is left out." in page
    connected(visitor, **{"Idempotency-Key": "k"})  # the form was not counted
    log = Workspace.objects.get()
    for number in range(AGENTS_MAX - 1):
        runtime.declare(log.id, f"a{number}", by="operator")
    assert f"has {AGENTS_MAX} agents at most" in visitor.refused(HERE, {**FORM, "name": "more"})


def test_a_killed_agent_gets_a_new_token_and_the_old_one_opens_nothing(visitor: Visitor) -> None:
    old = connected(visitor)
    page = visitor.read(f"{HERE}clerk/")
    assert "kill clerk" in page
    assert "Get a new token" not in page
    visitor.post("/agents/clerk/kill/", {"confirm": "KILL clerk"})
    for path in (f"{HERE}clerk/", f"{HERE}clerk/news/"):  # also of a page that was open
        assert "Get a new token" in visitor.read(path)
        assert ">killed<" in visitor.read(path)
    new = connected(visitor)
    assert identity.holder(new).incarnation == 2
    with pytest.raises(GateError, match="GAT-003"):
        identity.holder(old)


def test_each_call_comes_to_the_page_with_its_verdict(visitor: Visitor) -> None:
    holder = identity.holder(connected(visitor))
    assert "Waiting for the first call" in visitor.read(f"{HERE}clerk/news/")
    answer = visitor.get(f"{HERE}clerk/news/")
    same = visitor.get(f"{HERE}clerk/news/", {"mark": answer["X-Mark"]})
    assert same.status_code == 204
    calls.ask(holder, "1", MAIL)
    calls.ask(holder, "2", b'{"tool": "rob", "args": {}}')
    calls.ask(holder, "3", MAIL.replace(b"ada", b"all"))
    page = visitor.read(f"{HERE}clerk/news/", 200)
    said = words(page)
    assert chips(page) == ["ALLOWED, not reported yet", "REFUSED", "ON HOLD"]
    assert "rob" in said
    assert "to ada" in said
    assert "A person looks at mail to all. mail-to-all" in said
    assert "/docs/rules/CAP-001/" in page
    for run in Run.objects.all():
        assert f'href="/runs/{run.code}/"' in page
    calls.report(holder, "1", "done", b"{}")
    assert ">DONE<" in visitor.read(f"{HERE}clerk/news/")


def test_an_agent_of_another_workspace_is_absent(visitor: Visitor) -> None:
    token, other = connected(visitor), Visitor()
    connected(other)  # the same name, and another agent
    calls.ask(identity.holder(token), "1", MAIL)
    assert "Waiting" in other.read(f"{HERE}clerk/news/")
    for path in (f"{HERE}clerk/", f"{HERE}clerk/news/"):
        Visitor().read(path, 404)
    visitor.make(hold=True)
    visitor.read(f"{HERE}payer/", 404)  # it is one of ours


def test_the_bundled_agent_is_given_an_address_and_a_token_alone(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[bytes] = []
    hear = foreign_run.Child._hear

    def kept(child: foreign_run.Child, line: bytes) -> None:
        heard.append(line)
        hear(child, line)

    monkeypatch.setattr(foreign_run.Child, "_hear", kept)
    monkeypatch.setattr(foreign_run, "PROGRAM", (sys.executable, "-c", ENVIRONMENT))
    for number in (1, 2):  # the second press ends the first one's token
        answer = visitor.post(f"{HERE}run/", SERVER_PORT="8123")
        assert answer["Location"] == f"{HERE}foreign-agent/"
        child = foreign_run.last(Workspace.objects.get().id)
        assert child is not None
        until(lambda child=child: not child.is_running)  # type: ignore[misc]
        given = json.loads(heard[-4])
        assert given.pop("NANOVM_GATE") == "http://127.0.0.1:8123"
        assert identity.holder(given.pop("NANOVM_TOKEN")).incarnation == number
        assert {*given} <= {"LC_CTYPE"}  # which Python sets itself
    holder = identity.holder(json.loads(heard[-4])["NANOVM_TOKEN"])
    calls.ask(holder, "last", MAIL.replace(b"ada", b"all"))
    page = visitor.read(f"{HERE}foreign-agent/news/")
    said = words(page)
    assert chips(page) == ["REFUSED", "ON HOLD"]  # as it said them
    assert "The agent no longer waits for this call. Run it again." in said
    assert "The request id was used for another call" in said
    assert "GAT-002" in said
    assert "word of its own" not in said
    assert not caplog.records


def test_the_bundled_agent_ends_in_time_and_with_its_parent(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_run, "PROGRAM", (sys.executable, "-c", SLEEPS))
    visitor.post(f"{HERE}run/")
    before = foreign_run.last(Workspace.objects.get().id)
    assert before is not None
    until(lambda: before.popen is not None)
    monkeypatch.setattr(foreign_run, "SECONDS_MAX", 1)
    visitor.post(f"{HERE}run/")
    child = foreign_run.last(Workspace.objects.get().id)
    assert child is not None
    until(lambda: not before.is_running)  # by the next one's start, long before its own time
    until(lambda: not child.is_running)
    parent = (
        "import os, sys, time; from uuid import UUID\n"
        "from dashboard.agents import foreign_run as it\n"
        f"it.PROGRAM = (sys.executable, '-c', {SLEEPS!r})\n"
        "it.Child._hear = lambda child, line: (print(int(line), flush=True), os._exit(0))\n"
        "it.start(UUID(int=1), '1', lambda: 'nvm1.x')\n"
        "time.sleep(600)"
    )
    command = [sys.executable, "-c", parent]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=True)
    until(lambda: not is_alive(int(done.stdout)))


def test_too_many_bundled_agents_are_said_and_leave_the_last_one_alone(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_run, "PROGRAM", (sys.executable, "-c", "print('{}')"))
    visitor.post(f"{HERE}run/")
    log = Workspace.objects.get().id
    until(lambda: not foreign_run.last(log).is_running)  # type: ignore[union-attr]
    with ExitStack() as places:
        for _ in range(foreign_run.CHILDREN_MAX):
            assert foreign_run._places.acquire(blocking=False)
            places.callback(foreign_run._places.release)
        page = visitor.refused(f"{HERE}run/")
    assert "Too many foreign agents run on this server now." in page
    assert runtime.read(log).agents[foreign_run.NAME].incarnation == 1
