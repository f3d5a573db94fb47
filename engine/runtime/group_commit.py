"""Group commit: what several threads ask for at once is decided and stored in one transaction.

The first caller becomes the leader and commits the jobs of all callers that wait by then; the
others find their answers ready. A lone caller commits at once.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections, transaction

from engine.ops import timings
from engine.runtime.transaction import Commit
from engine.store import sql

log = logging.getLogger(__name__)

T = TypeVar("T")
TOGETHER_MAX = 64  # jobs in one transaction


@dataclass(slots=True, eq=False)
class Job(Generic[T]):
    """Work for a commit, done under the locks of these runs and logs.

    ``work`` may be called again, where another job in its transaction failed: it touches
    nothing but the commit.
    """

    work: Callable[[Commit], T]
    runs: tuple[str, ...] = ()  # their names
    logs: tuple[UUID, ...] = ()
    answer: list[T] = field(default_factory=list)  # one, once it is committed
    error: BaseException | None = None
    done: bool = False  # it is committed, or known to have failed
    is_leader: bool = False  # it commits for all that wait
    called: threading.Event | None = None  # set for the caller that waits

    def outcome(self) -> T:
        """The answer of a job that is done.

        Raises:
            Exception: whatever its work raised; nothing of it was written then.
        """
        if self.error is not None:
            raise self.error
        return self.answer[0]


@dataclass(slots=True)
class GroupCommit:
    """The waiting jobs, and whether a leader commits; both under the lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    waiting: list[Job[Any]] = field(default_factory=list)
    busy: bool = False


_group = GroupCommit()


def committed(job: Job[T]) -> T:
    """The job's ``outcome``, once everything that it wrote is committed.

    In a transaction of the caller's it is a part of that one.
    """
    with timings.spent(timings.COMMIT):
        if connections[DEFAULT_DB_ALIAS].in_atomic_block:
            [answer], commit = sql.in_transaction(partial(_together, [job]))
            transaction.on_commit(partial(_call, commit.after))
            return answer
        _await(job)
    return job.outcome()


def commit_together(batch: Sequence[Job[Any]]) -> None:
    """Commit jobs in one transaction; if that fails, each in its own. ``outcome`` has each result.

    Not within a transaction of the caller's, and no two jobs may be about one run.
    """
    try:
        answers, commit = sql.in_transaction(partial(_together, batch))
    except Exception as error:  # noqa: BLE001 - handed to the one whose job it is
        if len(batch) == 1:
            batch[0].error, batch[0].done = error, True
            return
        for job in batch:
            commit_together([job])
        return
    except BaseException as error:
        for job in batch:
            job.error, job.done = error, True
        raise
    for job, answer in zip(batch, answers, strict=True):
        job.answer.append(answer)
        job.done = True
    commit.keep()
    _call(commit.after)


def _together(batch: Sequence[Job[T]]) -> tuple[list[T], Commit]:
    """Decide and write jobs in the present transaction."""
    runs = {run for job in batch for run in job.runs}
    commit = Commit(runs, {each for job in batch for each in job.logs})
    answers = [job.work(commit) for job in batch]
    commit.write()
    return answers, commit


def _await(job: Job[T]) -> None:
    """Wait until the job is done; the first to come commits for all that wait by then."""
    with _group.lock:
        job.is_leader, _group.busy = not _group.busy, True
        if not job.is_leader:
            _group.waiting.append(job)
            job.called = threading.Event()
    try:
        if job.called is None:
            commit_together([job])
        else:
            job.called.wait()
        while job.is_leader and not job.done:
            batch = _next()
            try:
                commit_together(batch)
            finally:  # whatever ends this thread, no job waits for ever
                for each in batch:
                    if each.called is not None:
                        each.called.set()
    finally:
        _leave(job)


def _next() -> list[Job[Any]]:
    """The next jobs that can share a transaction: no two of them about one run."""
    seen: set[str] = set()
    taken: list[Job[Any]] = []
    left: list[Job[Any]] = []
    with _group.lock:
        for job in _group.waiting:
            fits = len(taken) < TOGETHER_MAX and seen.isdisjoint(job.runs)
            (taken if fits else left).append(job)
            seen.update(job.runs)
        _group.waiting = left
    return taken


def _leave(job: Job[T]) -> None:
    """Leave, and make the job that waits longest the leader."""
    with _group.lock:
        if not job.done and job in _group.waiting:  # interrupted before its turn
            _group.waiting.remove(job)
        if not job.is_leader:
            return
        _group.busy = bool(_group.waiting)
        if _group.waiting:
            first = _group.waiting[0]
            first.is_leader = True
            if first.called is not None:
                first.called.set()


def _call(after: Sequence[Callable[[], object]]) -> None:
    """What follows a commit. It stands, whatever fails here: the sweep makes it good."""
    for call in after:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - told, and the commit stands
            name = type(error).__name__  # its text may be personal
            log.error("after a commit, %s failed", name)  # noqa: TRY400
