"""A desk with two tools, and an agent from outside that may call them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

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
