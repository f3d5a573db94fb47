"""The chains of a log that are no run's: the log's own, and those of agents."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from engine.store import records, sql
from nanovm_core.core.envelope import LOG_RUN, ZERO, Stored

CHAIN = (  # one chain of a log
    "SELECT n, bytes, hash FROM pipeline_envelope WHERE run = %s AND workspace_id = %s ORDER BY n"
)
_LENGTH = "SELECT MAX(n) + 1 FROM pipeline_envelope WHERE run = %s AND workspace_id = %s"
_END = CHAIN.replace("n, bytes, hash", "n, hash") + " DESC LIMIT 1"


def read_chain(workspace: UUID) -> list[Stored]:
    """The log's own envelopes, which belong to no run, in order of ``n``; nothing is recomputed."""
    rows = sql.execute(CHAIN, (LOG_RUN, sql.key(workspace)))
    return [Stored(n, sql.blob(data), str(leaf)) for n, data, leaf in rows]


def length(workspace: UUID) -> int:
    """How many envelopes the log's own chain has, whatever the workspace's row says."""
    [(length,)] = sql.execute(_LENGTH, (LOG_RUN, sql.key(workspace)))
    return int(length or 0)


def end(workspace: UUID, owner: str) -> tuple[int, str]:
    """The ``n`` and ``prev`` of the next envelope on an owner's chain, by what is stored of it."""
    for n, leaf in sql.execute(_END, (owner, sql.key(workspace))):
        return int(n) + 1, str(leaf)
    return 0, ZERO


def revocations(
    workspace: UUID, envelopes: Sequence[Stored] | None = None
) -> Iterator[tuple[str, str]]:
    """Grant and tool of each sealed revocation: in these envelopes, or in all that can be read."""
    for each in read_chain(workspace) if envelopes is None else envelopes:
        body = records.body_of(each.data)
        if body.get("kind") == "capability" and (given := records.part_of(body, "in")):
            yield str(given.get("grant")), str(body.get("tool"))
