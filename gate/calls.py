"""Calls: asked for, looked up, reported. Each is one run, which its request id names."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID, uuid5

from engine.models import Run, Workspace
from engine.runtime import api, outside
from engine.runtime.create_run import CreatedRun, NewRun, make_run
from engine.store import programs, records
from engine.vault import secret_store
from engine.vault.key_store import keystore
from engine.vault.secret_store import Sealed
from gate.answers import is_taken, reply_of
from gate.application import RESULT, of_name
from gate.identity import Holder
from gate.listed import AGENT, PROPOSAL, secrets_of
from gate.replies import ALLOWED, DONE, FAILED, RUNNING, UNKNOWN, GateError, Reply
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.events import AnswerArrived, ProposalReceived
from nanovm_core.core.messages import Warrant
from nanovm_core.core.program import Program
from nanovm_core.core.proposals import Call, read_proposal, written
from nanovm_core.errors import RefusedError, VerificationError

REQUEST = re.compile("[ -~]{1,200}")
ASKED = "asked"  # the secret of a call as it came, where the schema hides some of its values
HIDDEN = "args."  # before an argument's name: the secret of its value
NOBODYS = ("AGT-003", "LOG-009")  # the agent was declared anew meanwhile, or its log closed
UNSEEN = "GAT-022"  # that no money moved
BY_REPORT = {DONE: "", FAILED: "GAT-015", UNKNOWN: "GAT-016"}


def ask(holder: Holder, request: str, call: bytes) -> Reply:
    """Judge a call, and have it made or hand out the warrant for it; never wait for its end.

    ``call``: ``{"tool": …, "args": {…}}`` as it came; what is wrong with it is a sealed refusal.
    A repeat changes nothing: it has the same reply, ``replayed``; the first one after an approval
    takes the warrant.

    Raises:
        GateError: GAT-002 the request id had another call, GAT-003 the token was replaced
            meanwhile, GAT-004 the call is under way, GAT-005 the id is none, GAT-010 what was
            asked is erased, GAT-014 the program cannot be used.
    """
    run_id = run_of(holder, request)
    if not Run.objects.filter(id=run_id).exists():
        made = _made(holder, run_id, call)
        if made.is_new:
            return reply_of(made.run, hands_out=True)
    return _again(holder, _known(holder, request), call)


def answer(holder: Holder, request: str) -> Reply:
    """What became of a call by now, without its warrant; GateError GAT-001: there is none."""
    return reply_of(_known(holder, request))


def report(
    holder: Holder, request: str, outcome: str, result: bytes = b"", code: str = "", text: str = ""
) -> Reply:
    """Take what became of a call from the agent that has its warrant: once, or after unknown.

    The arguments are those of ``wire.reported``. Only the vault keeps ``result``; ``code`` and
    ``text`` are sealed in clear, as words of this agent: the rule is always one of ours. That no
    money moved is such a word, and frees no budget: a person looks (GAT-022).

    Raises:
        GateError: GAT-001 no such request, GAT-007 no warrant is out for it, or its outcome is
            known.
    """
    run = _known(holder, request)
    now, program = decode_snapshot(bytes(run.snapshot)), programs.program_of(run)
    if not now.awaits or now.owed is None or is_taken(now, program) is None:
        raise GateError("GAT-007")
    words, rule = (f"{holder.agent} reports {outcome}", code, text), BY_REPORT[outcome]
    if outcome == FAILED and program.tools[now.owed.tool].money is not None:
        outcome, rule = UNKNOWN, UNSEEN
    if outcome == UNKNOWN and now.owed.warrant is not None:  # who decides before may be deceived
        words = (f"Its warrant ends at {_time(now.owed.warrant)}. {words[0]}", *words[1:])
    given = {RESULT: result} if result and outcome == DONE else {}
    sealed = secret_store.seal_values(run.name, run.workspace.origin, given) if given else {}
    event = AnswerArrived(
        run=run.name,
        program=now.program,
        key=now.awaits,
        out={slot: each.ref for slot, each in sealed.items()},
        secrets=tuple(each.commitment for each in sealed.values()),
        outcome=outcome,
        code=rule,
        text=": ".join(filter(None, words)),
    )
    secrets = tuple(sealed.values())
    decision = api.submit(run.name, [event], actor=holder.actor, secrets=secrets, vouched=True)
    if decision.refusal is not None or decision.absorbed:
        _forget(sealed)
        raise GateError("GAT-007")
    return answer(holder, request)


def _time(warrant: Warrant) -> str:
    return f"{datetime.fromtimestamp(warrant.expires_ms // 1_000, UTC):%H:%M:%S} UTC"


def run_of(holder: Holder, request: str) -> UUID:
    """The id of the run of a request; GateError GAT-005 where this is no request id."""
    if not REQUEST.fullmatch(request):
        raise GateError("GAT-005", "A request id is 1 to 200 characters of printable ASCII.")
    return uuid5(holder.log, f"{holder.agent}\n{holder.incarnation}\n{request}")


def _known(holder: Holder, request: str) -> Run:
    found = Run.objects.select_related("workspace", "terms", "call")
    run = found.filter(id=run_of(holder, request)).first()
    if run is None:
        raise GateError("GAT-001")
    return run


def _made(holder: Holder, run_id: UUID, call: bytes) -> CreatedRun:
    """The run of a new request; of one that another thread made meanwhile, that one."""
    found, log = of_name(holder.program), Workspace.objects.get(id=holder.log)
    program, asked = programs.current(found), _read(call)
    raw, sealed = _sealed(str(run_id), log.origin, program, asked, call)
    new = NewRun(
        workspace=log,
        program=found.source(),
        policy=found.policy_source(),
        slots={},
        sealed=tuple(sealed.values()),
        model=AGENT,
        actor=holder.actor,
        agent=holder.agent,
        incarnation=holder.incarnation,
        proposal=ProposalReceived(raw=raw, secret=sealed[PROPOSAL].commitment),
        about=asked.tool if asked and asked.tool in program.grants else "",
    )
    try:
        made = make_run(new, run_id)
    except RefusedError as error:
        _forget(sealed)
        raise GateError("GAT-003" if error.code in NOBODYS else "GAT-014", error.text) from error
    if not made.is_new:
        _forget(sealed)
    return made


def _sealed(
    run: str, origin: str, program: Program, asked: Call | None, call: bytes
) -> tuple[bytes, Mapping[str, Sealed]]:
    """The proposal, with a ref for each value that the schema hides; and the call's secrets."""
    if asked is None:
        return call, secret_store.seal_values(run, origin, {PROPOSAL: call})
    specs = program.tools[asked.tool].args if asked.tool in program.grants else {}
    texts = {name: value for name, value in asked.args.items() if isinstance(value, str)}
    hidden = {n: v.encode() for n, v in texts.items() if n in specs and specs[n].type == "ref"}
    given = {f"{HIDDEN}{name}": value for name, value in hidden.items()}
    given |= {ASKED: written(asked.tool, asked.args)} if hidden else {}
    sealed = secret_store.seal_values(run, origin, given) if given else {}
    refs = {name: sealed[f"{HIDDEN}{name}"].ref for name in hidden}
    raw = written(asked.tool, {**asked.args, **refs})
    return raw, {**sealed, **secret_store.seal_values(run, origin, {PROPOSAL: raw})}


def _read(call: bytes) -> Call | None:
    """A call as the kernel reads it; None for what it refuses to read."""
    try:
        return read_proposal(call)
    except RefusedError:
        return None


def _forget(sealed: Mapping[str, Sealed]) -> None:
    """Delete the keys of values that nothing was stored of."""
    keystore().drop([each.ref for each in sealed.values()])


def _again(holder: Holder, run: Run, call: bytes) -> Reply:
    asked, program = _read(call), programs.program_of(run)
    if _before(run) != (written(asked.tool, asked.args) if asked else call):
        raise GateError("GAT-002")
    is_free = is_taken(decode_snapshot(bytes(run.snapshot)), program) is False
    is_given = is_free and outside.hand_out(run.name, holder.actor)
    run.refresh_from_db()
    reply = reply_of(run, hands_out=is_given)
    if reply.verdict in (ALLOWED, RUNNING) and not is_given:
        raise GateError("GAT-004")
    return reply._replace(replayed=True)


def _before(run: Run) -> bytes:
    """What was asked for first; GateError GAT-010 once it is erased, or does not open."""
    named = secrets_of(records.stored_envelopes(run.name))
    ref = (named.get(ASKED) or named[PROPOSAL])["ref"]
    try:
        asked = secret_store.read_bytes([ref])[ref]
    except VerificationError as error:
        raise GateError("GAT-010", error.text) from error
    if asked is None:
        raise GateError("GAT-010")
    return asked
