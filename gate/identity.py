"""Tokens: which log, agent and program a call is for. The log's ledger alone knows of them."""

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from typing import NamedTuple
from uuid import UUID

from engine.entropy import random_bytes
from engine.models import Run, Workspace
from engine.runtime import agents, api
from engine.store import actors, ledgers, outbox, programs
from gate.application import of_name
from gate.replies import GateError
from nanovm_core.agents import CHAIN, TERMINATED, Agent
from nanovm_core.core import lifecycle as life
from nanovm_core.core.fsm import capabilities_hash
from nanovm_core.errors import RefusedError

SECRET_BYTES = 24  # 192 bits, 32 characters
TOKEN = re.compile(
    r"nvm1\.([0-9a-f]{32})\.([a-z][a-z0-9-]{0,29})\.([a-z][a-z0-9_]{0,39})\.[A-Za-z0-9_-]{32}"
)


class Holder(NamedTuple):
    """Who calls, as a token showed it."""

    log: UUID
    agent: str
    incarnation: int
    program: str

    @property
    def actor(self) -> str:
        """Its name in envelopes."""
        return f"{CHAIN}{self.agent}"


def issue(log: UUID, agent: str, program: str, *, by: str) -> str:
    """Declare an agent that calls under a program, and return its token, which is kept nowhere.

    What a killed agent of this name left open ends, unless it may have been made already: it is not
    made in the name of the next one.

    Raises:
        GateError: GAT-014, there is no such program.
        RefusedError: AGT-001, the agent is not terminated: kill it first. AGT-002, the name is
            none, is one of our agents', or the log has too many. LOG-009, a restore closed the log.
    """
    granted = capabilities_hash(programs.current(of_name(program)))
    if agent in actors.agents():
        raise RefusedError("AGT-002", f"{agent!r} is the name of an agent of an installed program.")
    _end_former(log, agent, by)
    secret = urlsafe_b64encode(random_bytes(SECRET_BYTES)).decode()
    token = f"nvm1.{log.hex}.{agent}.{program}.{secret}"
    given = {"in": {"capabilities": granted, "program": program}}
    moved = agents.declare(log, agent, by=by, key=_key(token), given=given)
    if moved.code:
        text = f"The agent {agent} is {moved.agent.state}: kill it before it gets another token."
        raise RefusedError(moved.code, text)
    return token


def holder(token: str) -> Holder:
    """Whose token this is, by the ledger that the log seals; a suspended agent keeps its token.

    Raises:
        GateError: GAT-003, nobody's: it is malformed or forged, its agent was stopped or declared
            anew, or a restore closed its log.
    """
    said = TOKEN.fullmatch(token)
    log = Workspace.objects.filter(id=UUID(said[1]), successor=None).first() if said else None
    if said is None or log is None:
        raise GateError("GAT-003")
    found = ledgers.checked(log)
    ledger = agents.read(log.id) if found.alert is not None else found.ledger  # and put right
    agent = ledger.agents.get(said[2], Agent())
    if agent.state in TERMINATED or not hmac.compare_digest(agent.key, _key(token)):
        raise GateError("GAT-003")
    return Holder(log.id, said[2], agent.incarnation, said[3])


def _end_former(log: UUID, agent: str, by: str) -> None:
    former = agents.read(log).agents.get(agent, Agent())
    if former.state in TERMINATED:
        left = Run.objects.filter(call__agent=agent, workspace=log)
        for run in left.filter(created_ms__lte=former.since_ms).exclude(state__in=life.TERMINAL):
            if run.begun_ms is None or not outbox.may_have_acted(run.id, run.owed_key):
                api.kill(run.name, by)


def _key(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
