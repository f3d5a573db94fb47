"""A desk with two tools, and an agent from outside that may call them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple

import pytest
from django.conf import settings
from pytest_django import DjangoDbBlocker

from engine import application
from engine.models import Run, Workspace
from engine.ops.processes import free_port, running, spawn_daphne
from engine.runtime import chains
from engine.work import Answer, Work, done
from gate import calls, identity, upstreams
from gate.application import install_from
from gate.identity import Holder
from gate.replies import Reply
from nanovm_core.core.canonical import encode
from tests.kit.databases import Database
from tests.kit.house import ROOT, House

DESK = ROOT / "tests" / "gate" / "desk"


class Desk(NamedTuple):
    """The agent, and what the upstream performed."""

    house: House
    log: Workspace
    token: str
    sent: list[Any]

    @property
    def holder(self) -> Holder:
        """Who calls."""
        return identity.holder(self.token)

    def ask(self, request: str = "1", tool: str = "mail", **args: Any) -> Reply:
        """A call; of what it is not told, the usual."""
        usual: dict[str, dict[str, Any]] = {
            "mail": {"to": "ada", "body": "Hello"},
            "send": {"to": "ada", "cents": 120},
        }
        call = {"tool": tool, "args": {**usual.get(tool, {}), **args}}
        return calls.ask(self.holder, request, encode(call))

    def run(self, request: str = "1") -> Run:
        """The run of a request."""
        return Run.objects.get(id=calls.run_of(self.holder, request))


@pytest.fixture
def desk(house: House, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The desk's program beside the invoices, and a log with one agent."""
    sent, log = installed(monkeypatch), chains.create()
    return Desk(house, log, identity.issue(log.id, "teller", "desk", by="visitor"), sent)


class Door(NamedTuple):
    """A real web server on data of its own, an agent's token, and that of a help desk's agent."""

    port: int
    token: str
    clerk: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def post(self, body: bytes, path: str = "/gate/mcp", **more: str | None) -> tuple[int, Any]:
        """The status and the JSON of an answer; ``more``: headers, None for one left out."""
        usual = {"Authorization": f"Bearer {self.token}", "Content_Type": "application/json"}
        said = {**usual, "Accept": "application/json, text/event-stream", **more}
        headers = {name.replace("_", "-"): value for name, value in said.items() if value}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, json.loads(data)


@pytest.fixture(scope="package")
def door(
    tmp_path_factory: pytest.TempPathFactory,
    migrated: Database,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Door]:
    """One for all tests of the gate that look at its answers alone."""
    folder, port = tmp_path_factory.mktemp("door"), free_port()
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
        patch.setattr(settings, "NANOVM_DATA", folder)
        installed(patch)
        with migrated.fresh(folder).in_use():
            agents = (("teller", "desk"), ("clerk", "help_desk"))
            tokens = [identity.issue(chains.create().id, *it, by="visitor") for it in agents]
    env = {"NANOVM_DATA": str(folder), "NANOVM_GATE": str(DESK)}
    with running(spawn_daphne(env, port)):
        yield Door(port, *tokens)


@contextmanager
def served(desk: Desk) -> Iterator[str]:
    """The address of the real web server on the desk's data."""
    env = {"NANOVM_DATA": str(desk.house.folder), "NANOVM_GATE": str(DESK)}
    with running(spawn_daphne(env, free_port())) as web:
        yield web.url


def installed(patch: pytest.MonkeyPatch) -> list[Any]:
    """Install the desk's program, with an upstream; what that performs, by key, as it does."""
    sent: list[Any] = []

    def perform(work: Work) -> Answer:
        sent.append((work.effect.key, dict(work.effect.args)))
        return done(work, {}, work.sealed({"result": b'{"ok":true}'}))

    patch.setattr(application, "_INSTALLED", {**application._INSTALLED})
    patch.setattr(upstreams, "perform", perform)
    install_from(DESK)
    return sent
