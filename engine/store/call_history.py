"""What a policy's windows look at: the newest calls of a workspace, as its log recorded them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from engine.models import Run
from engine.store import sql
from engine.store.logs import LogLine
from nanovm_core.core.authority.policy import RECORDS_MAX
from nanovm_core.core.envelope import body_of, decode_snapshot
from nanovm_core.core.events import ProposalReceived
from nanovm_core.core.messages import Recorded
from nanovm_core.core.program import Program
from nanovm_core.errors import VerificationError
from nanovm_core.ledger import OUTCOMES, call_of

_CONTAINS = "instr(bytes, %s) > 0" if sql.SQLITE else "position(%s::bytea IN bytes) > 0"
_NEWEST = (
    "SELECT run, bytes FROM pipeline_envelope WHERE workspace_id = %s AND (kind IN ('intent',"
    " 'result', 'failed') AND ({called}) OR kind = 'refused' AND {refused})"
    " ORDER BY seq DESC LIMIT %s"
)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def recorded(
    workspace: UUID, program: Program, pending: Sequence[LogLine] = (), held: Sequence[Run] = ()
) -> tuple[Recorded, ...]:
    """The newest calls that windows count, oldest first.

    ``pending``: the envelopes that are about to be stored behind those of the log, of the runs
    in ``held``.
    """
    stored = _stored(workspace, program)
    newest = [(each.run, each.data) for each in reversed(pending) if each.kind in OUTCOMES]
    bodies = [(str(run), body_of(sql.blob(data))) for run, data in (*newest, *stored)]
    agents = _agents({run for run, _ in bodies}, held)
    calls = [_call(program, agents.get(run, program.agent), body) for run, body in bodies]
    return tuple(reversed([each for each in calls if each is not None][:RECORDS_MAX]))


def _stored(workspace: UUID, program: Program) -> list[sql.Row]:
    """Run and bytes of the newest envelopes that may be calls of granted tools, or refused ones.

    The database looks for texts that such bytes contain, so that other envelopes, however many,
    leave the calls where they are. What the bytes say of themselves is read afterwards.
    """
    texts = [f'"tool":"{tool}"' for tool in sorted(program.granted)]
    called = " OR ".join([_CONTAINS] * len(texts)) or "1 = 0"
    texts.append(f'"event":"{ProposalReceived.__name__}"')
    statement = _NEWEST.format(called=called, refused=_CONTAINS)
    given = (sql.key(workspace), *map(str.encode, texts), RECORDS_MAX * len(OUTCOMES))
    return sql.execute(statement, given)


def _call(program: Program, agent: str, body: Mapping[str, object]) -> Recorded | None:
    at_ms = body.get("at_ms")
    if not isinstance(at_ms, int):
        return None
    return call_of(program, agent, str(body.get("kind")), at_ms, body)


def _agents(names: Iterable[str], held: Sequence[Run]) -> Mapping[str, str]:
    """The agent of each run, as its snapshot has it.

    A run whose snapshot cannot be read is left out: its calls count against the agent that asks.
    """
    known = {run.name: run.snapshot for run in held}
    asked = [UUID(name) for name in names if _UUID.fullmatch(name) and name not in known]
    stored = Run.objects.filter(id__in=asked).values_list("id", "snapshot")
    agents = {}
    for run, data in (*known.items(), *stored):
        try:
            agents[str(run)] = decode_snapshot(bytes(data)).agent
        except VerificationError:
            continue
    return agents
