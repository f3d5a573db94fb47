"""The list of calls: a row with the commit that makes a run, audited against what that seals."""

from collections.abc import Iterator, Sequence

from engine.damage import Damage
from engine.models import Run, Workspace
from engine.store import programs, records, run_rows, sql
from engine.vault import secret_store
from gate.models import Call
from nanovm_core.agents import CHAIN
from nanovm_core.core.envelope import LOG_RUN, Stored
from nanovm_core.core.messages import Snapshot
from nanovm_core.core.proposals import read_proposal
from nanovm_core.errors import RefusedError

AGENT = "agent"  # ``Run.model`` of a call
PROPOSAL = "proposal"  # the secret of what an agent asked for, as it was judged
EDITED = "PII-002"
_RUNS = "SELECT run_id FROM gate_call"
_CALL = "SELECT workspace_id, agent, program, created_ms, tool FROM gate_call WHERE run_id = %s"


def record(run: Run, before: Snapshot | None, now: Snapshot) -> None:
    """Add a call to the list, in the commit that makes its run."""
    if before is None and run.model == AGENT:
        program = programs.compiled(run.program_source).name
        row = Call(run=run, workspace_id=run.workspace_id, agent=now.agent, program=program)
        row.tool, row.created_ms = run.about, run.created_ms
        row.save(force_insert=True)


def secrets_of(envelopes: Sequence[Stored]) -> dict[str, dict[str, str]]:
    """What a run's genesis commits to, by the name of each secret."""
    said = records.body_of(envelopes[0].data).get("secrets", ()) if envelopes else ()
    return {each["slot"]: each for each in said}


def log_damage(workspace: Workspace) -> Iterator[Damage]:
    """Rows that are of no run of this log."""
    for (run,) in sql.execute(f"{_RUNS}{run_rows.NOT_OF_LOG}", (sql.key(workspace.id),) * 2):
        text = f"A row of calls names run {sql.name(run)}, which is not of this log."
        yield Damage(workspace.origin, LOG_RUN, 0, EDITED, text)


def run_damage(workspace: Workspace, run: Run, envelopes: Sequence[Stored]) -> Iterator[Damage]:
    """A row that does not say what genesis and proposal say, is missing, or is of no call."""
    rows = [(sql.uuid(log), *said) for log, *said in sql.execute(_CALL, (sql.key(run.id),))]
    genesis = records.body_of(envelopes[0].data) if envelopes else {}
    due = []
    if str(genesis.get("actor", "")).startswith(CHAIN):
        agent, program = str(genesis["actor"]).removeprefix(CHAIN), programs.shape_of(run)
        tool = _tool(envelopes)
        known = rows[0][-1] if tool is None and rows else tool if tool in program.grants else ""
        due = [(run.workspace_id, agent, program.name, genesis["at_ms"], known)]
    if rows != due:
        text = "The run's row in the list of calls does not say what its genesis and proposal say."
        yield Damage(log=workspace.origin, run=run.name, at=0, code=EDITED, text=text)


def _tool(envelopes: Sequence[Stored]) -> str | None:
    """The tool that was asked for; None where that was erased, or does not open."""
    ref = secrets_of(envelopes).get(PROPOSAL, {}).get("ref", "")
    raw = secret_store.opened_slot({PROPOSAL: ref}, PROPOSAL)
    try:
        return None if raw is None else read_proposal(raw).tool
    except RefusedError:
        return ""
