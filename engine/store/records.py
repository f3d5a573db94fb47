"""The stored form of runs, read and verified; ``transaction`` writes it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any
from uuid import UUID

from engine.models import Run, Workspace
from engine.store import logs, programs, sql
from nanovm_core.core import lifecycle as life
from nanovm_core.core.envelope import (
    Stored,
    chain_faults,
    check_chain,
    decode_snapshot,
    last_segment,
    log_of,
    snapshot_hash,
    snapshot_of,
    starts_segment,
)
from nanovm_core.core.envelope import body_of as body_of
from nanovm_core.core.fsm import capabilities_hash
from nanovm_core.core.fsm.commands import hold_id
from nanovm_core.core.lifecycle import APPROVAL
from nanovm_core.core.messages import RunId, Snapshot
from nanovm_core.core.program import COMPLETED, Program
from nanovm_core.core.vault import PREFIX
from nanovm_core.errors import VerificationError

_CHAINS = "SELECT run, n, bytes, hash FROM pipeline_envelope WHERE run IN "
# SQLite reads them by their index, in this order where nobody moved one; else they are sorted here.
_IN_ORDER = "" if sql.SQLITE else " ORDER BY run, n"
_RANKS: dict[type, int] = {str: 2, bytes: 3}
KNOWN_MAX = 1_024  # runs whose stored bytes this process remembers


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A run's value after its stored bytes were recomputed."""

    snapshot: Snapshot
    envelopes: int


@dataclass(slots=True, kw_only=True)
class Chain:
    """A run's stored envelopes: the rows as the database gives them, and what they are.

    ``sealed`` and ``snapshot``: the run's row and value that this process found to fit these very
    bytes, or stored with them; empty before.
    """

    rows: list[sql.Row]
    envelopes: list[Stored]
    sealed: tuple[object, ...] = ()
    snapshot: Snapshot | None = None
    refs: frozenset[str] = frozenset()  # the secrets that the slots of ``snapshot`` name
    granted: bytes | None = None  # beside the run, and found to be those that its genesis seals


_KNOWN: dict[str, Chain] = {}
# All that ``recomputed`` compares of a run's row; beside it, its log is compared.
_row = attrgetter(
    *("snapshot", "length", "head", "state", "step"),
    *("program_hash", "policy_hash", "quarantined"),
)


def lock_log(workspace_id: str | UUID) -> Workspace:
    """Lock a log, inside the caller's transaction."""
    return logs.lock([sql.uuid(workspace_id)])[sql.uuid(workspace_id)]


def stored_envelopes(run_id: str) -> list[Stored]:
    """A run's envelopes as they lie there, in order of ``n``."""
    return _stored(ask_chains([run_id])())


def _stored(rows: Sequence[sql.Row]) -> list[Stored]:
    found = [Stored(n, sql.blob(data), str(leaf)) for _, n, data, leaf in rows]
    if sql.SQLITE:
        found.sort(key=_place)
    return found


def _place(stored: Stored) -> tuple[int, object]:
    """The order of ``n``, as SQLite has it: numbers, then text, then bytes."""
    n: object = stored.n
    return (0, 0) if n is None else (_RANKS.get(type(n), 1), n)


def ask_chains(run_ids: Sequence[str]) -> Callable[[], list[sql.Row]]:
    """Ask for the envelopes of several runs, for ``chains_of``."""
    return sql.ask(sql.listed(_CHAINS, len(run_ids), _IN_ORDER), run_ids)


def chains_of(run_ids: Sequence[str], rows: list[sql.Row]) -> dict[str, Chain]:
    """The chains in these rows, by run; those that this process knows byte by byte as they were.

    Every byte is compared; what differs in any is recomputed by ``value_of``.
    """
    if len(run_ids) == 1:
        return {run_ids[0]: _chain(run_ids[0], rows)}
    found: dict[str, list[sql.Row]] = {run: [] for run in run_ids}
    for row in rows:
        found[row[0]].append(row)
    return {run: _chain(run, of_run) for run, of_run in found.items()}


def _chain(run: str, rows: list[sql.Row]) -> Chain:
    """A chain of the caller's own: what comes of a commit that is rolled back is in no other."""
    known = _KNOWN.get(run)
    if known is not None and known.rows == rows:
        return replace(known, rows=rows, envelopes=[*known.envelopes])
    return Chain(rows=rows, envelopes=_stored(rows))


def value_of(run: Run, chain: Chain, log: str) -> Snapshot:
    """The run's value; recomputed unless row and chain are, byte by byte, what is known.

    Raises:
        VerificationError: as ``recomputed``.
    """
    if chain.snapshot is not None and chain.sealed == (log, *_row(run)):
        return chain.snapshot
    snapshot = recomputed(run, chain.envelopes, log)
    remember(run, chain, log, snapshot)
    return snapshot


def expect_grants(envelopes: Sequence[Stored], program: Program) -> None:
    """Return if a program's grants are those that the run's genesis seals.

    Raises:
        VerificationError: PRG-011.
    """
    sealed, found = body_of(envelopes[0].data).get("capabilities"), capabilities_hash(program)
    if sealed != found:
        text = "The run's grants are not those that its genesis seals."
        raise VerificationError("PRG-011", text, at=0, expected=str(sealed), found=found)


def remember(run: Run, chain: Chain, log: str, snapshot: Snapshot) -> None:
    """Remember what a run's row and chain say, for the next commit to compare them with.

    It need not be committed: what is stored otherwise differs from it, and is recomputed.
    """
    values = snapshot.slots.values()
    refs = [each for each in values if type(each) is str and each.startswith(PREFIX)]
    chain.sealed, chain.snapshot, chain.refs = (log, *_row(run)), snapshot, frozenset(refs)
    if snapshot.state in life.TERMINAL or run.quarantined:
        _KNOWN.pop(run.name, None)
        return
    _KNOWN[run.name] = chain
    if len(_KNOWN) > KNOWN_MAX:
        with suppress(KeyError, RuntimeError, StopIteration):  # another thread drops one too
            del _KNOWN[next(iter(_KNOWN))]


def verified(run: Run) -> Verified:
    """Recompute the run's newest segment and its snapshot from what is stored.

    Raises:
        VerificationError: LOG-001 to LOG-004, at the first bad place.
    """
    envelopes = stored_envelopes(str(run.id))
    value = recomputed(run, envelopes, run.workspace.origin)
    return Verified(snapshot=value, envelopes=len(envelopes))


def recomputed(run: Run, envelopes: Sequence[Stored], log: str) -> Snapshot:
    """The run's value, from its newest segment among these envelopes, all of it recomputed.

    ``log``: the name of the log that the run's row is in; its envelopes must name it too.

    Raises:
        VerificationError: LOG-001 to LOG-004, at the first bad place.
    """
    segment, first_n = _newest(envelopes)
    check_chain(segment, run=run.name, first_n=first_n, head=run.head)
    _check_head(run, segment)
    if (sealed := log_of(segment[-1])) != log:  # it would have the other's revocations and budgets
        text, at = "The run's row was moved to another log.", segment[-1].n
        raise VerificationError("LOG-003", text, at=at, expected=sealed, found=log)
    return _sealed_snapshot(run, segment[-1])


def trusted(run: Run, envelopes: Sequence[Stored]) -> Snapshot:
    """A damaged run's last value: its snapshot where a whole last envelope seals it.

    Else the little that its newest whole envelope says: state and step, and no slots. An
    envelope that is itself at fault is not believed, whatever it says.
    """
    left = envelopes
    while True:
        segment, first_n = _newest(left)
        found = chain_faults(segment, run=run.name, first_n=first_n, head=run.head)
        faults = {fault.at for fault in found}
        whole = [each for each in segment if each.n not in faults]
        if whole or len(segment) == len(left):
            break
        left = left[: -len(segment)]  # nothing of it is whole: the segment before is asked
    if segment and segment[-1].n not in faults:
        try:
            return _own_snapshot(run, segment[-1])
        except VerificationError:
            pass  # the snapshot is the damage: the envelopes are asked instead
    state, step = _last_said(whole) or (life.READY, run.step)
    if run.state in life.TERMINAL and (run.state != life.COMPLETED or _at_the_end(run, whole)):
        state = run.state  # a finished run keeps its state; none is finished by its row alone
    return Snapshot(
        run=RunId(str(run.id)),
        program=run.program_hash,
        policy=run.policy_hash,
        state=state,
        step=step,
    )


def _last_said(envelopes: Sequence[Stored]) -> tuple[str, str] | None:
    """State and step after the newest of these envelopes that says so."""
    for each in reversed(envelopes):
        body = body_of(each.data)
        to = part_of(body, "state").get("to")
        if to in life.STATES:
            return str(to), str(body.get("step", ""))
    return None


def _at_the_end(run: Run, envelopes: Sequence[Stored]) -> bool:
    """Whether the chain itself holds the last step's result, after which a run is completed."""
    body = body_of(envelopes[-1].data) if envelopes else {}
    step = programs.shape_of(run).steps.get(str(body.get("step")))
    return body.get("kind") == "result" and step is not None and step.then == COMPLETED


def part_of(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The fields of an object within an envelope; none where there is no object."""
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def commitments(body: Mapping[str, Any]) -> dict[str, str]:
    """The refs of the secrets that an envelope commits to, with their commitments."""
    listed = body.get("secrets")
    secrets = [each for each in listed if isinstance(each, dict)] if type(listed) is list else []
    return {str(each["ref"]): str(each.get("c")) for each in secrets if "ref" in each}


def _newest(envelopes: Sequence[Stored]) -> tuple[Sequence[Stored], int]:
    """The newest segment of a chain, and the ``n`` that it begins with."""
    start = last_segment(envelopes)
    segment = envelopes[start:]
    return segment, segment[0].n if segment and (start or starts_segment(segment[0])) else 0


def _check_head(run: Run, segment: Sequence[Stored]) -> None:
    if not segment:
        raise VerificationError("LOG-002", "The run has no envelopes.", at=0, expected=run.head)
    last = segment[-1]
    if last.n + 1 != run.length:
        raise VerificationError(
            "LOG-002",
            f"Envelope n = {last.n + 1} (event #{last.n + 2}) is missing.",
            at=last.n + 1,
            expected=run.head,
        )
    if last.hash != run.head:
        raise VerificationError(
            "LOG-004",
            "The run's head differs from its last envelope.",
            at=last.n,
            expected=str(run.head),
            found=last.hash,
        )


def _sealed_snapshot(run: Run, last: Stored) -> Snapshot:
    """The run's snapshot, if the last envelope seals it and the run's row repeats it."""
    snapshot = _own_snapshot(run, last)
    row = (run.name, run.state, run.step, run.program_hash, run.policy_hash)
    value = (snapshot.run, snapshot.state, snapshot.step, snapshot.program, snapshot.policy)
    if row != value:
        raise VerificationError("LOG-003", "The run's row differs from its snapshot.", at=last.n)
    return snapshot


def _own_snapshot(run: Run, last: Stored) -> Snapshot:
    """The run's snapshot, if it is the one that the last envelope seals."""
    expected = snapshot_of(last)
    found = snapshot_hash(bytes(run.snapshot))
    if expected != found:
        raise VerificationError(
            "LOG-003", "The run's snapshot was changed.", at=last.n, expected=expected, found=found
        )
    return decode_snapshot(bytes(run.snapshot))


def hold_of(run: Run) -> str:
    """The name of what the run waits for a person about; empty for nothing, or a damaged row."""
    if run.state != APPROVAL:
        return ""
    try:
        return hold_id(decode_snapshot(bytes(run.snapshot)))
    except VerificationError:
        return ""  # whoever decides about it comes to the runtime, which finds the damage
