"""Commits that several jobs share: all of them or each by itself, and never half a one."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from django.db import DataError, IntegrityError, connection

from engine.entropy import uuid7
from engine.evidence.fsck.audit import audit
from engine.models import Envelope, Run, Workspace
from engine.runtime import chains, create_run, decide, group_commit
from engine.runtime.group_commit import Job, commit_together, committed
from engine.runtime.transaction import Commit
from engine.store import sql
from nanovm_core.core.events import RunStarted
from pipeline.application import INVOICES
from tests.kit.house import House

pytestmark = pytest.mark.postgres


def making(workspace: Workspace) -> Job[create_run.CreatedRun]:
    """The making of a run over nothing: its genesis is all that counts here."""
    return create_run.create_job(new(workspace), uuid7())


AGENTS = 4  # envelopes by which two agents begin, with the first run of a log


def new(workspace: Workspace) -> create_run.NewRun:
    """A run that is to be made over nothing."""
    return create_run.NewRun(
        workspace=workspace,
        program=INVOICES.source(),
        policy=INVOICES.policy_source(),
        slots={"payment_method": "pm_card_visa", "advisor": "none"},
        model="faithful",
    )


def test_jobs_share_a_commit_and_one_that_fails_spoils_no_other(house: House) -> None:
    workspace, tried = chains.create(), list[Commit]()

    def fail(commit: Commit) -> create_run.CreatedRun:
        tried.append(commit)
        raise ZeroDivisionError

    bad = Job(fail, logs=(workspace.id,))
    jobs = [making(workspace), bad, making(workspace)]
    commit_together(jobs)
    made = {jobs[0].outcome().run.id, jobs[2].outcome().run.id}
    assert {run.id for run in Run.objects.all()} == made
    assert len(tried) == 2  # once with the others, once by itself
    with pytest.raises(ZeroDivisionError):
        bad.outcome()
    seqs = Envelope.objects.order_by("seq").values_list("seq", flat=True)
    assert list(seqs) == [*range(1 + AGENTS + 2)]
    assert audit().exit_status == 0


def test_a_code_that_another_run_has_is_drawn_anew(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter(["AAAA-01", "AAAA-01", "AAAA-01", "BBBB-02", "AAAA-01", "CCCC-03"])
    monkeypatch.setattr(create_run, "run_code", lambda: next(drawn))
    workspace = chains.create()
    first, second = jobs = [making(workspace) for _ in range(2)]
    commit_together(jobs)  # the same twice, so each is made by itself
    third = create_run.make_run(new(workspace), uuid7())
    codes = [first.outcome().run.code, second.outcome().run.code, third.run.code]
    assert codes == ["AAAA-01", "BBBB-02", "CCCC-03"]
    assert audit().exit_status == 0


def test_whatever_else_is_there_already_is_tried_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = iter(["AAAA-01", "BBBB-02"])  # a third one is not drawn
    monkeypatch.setattr(create_run, "run_code", lambda: next(codes))
    workspace, run = chains.create(), uuid7()
    create_run.make_run(new(workspace), run)
    with pytest.raises(IntegrityError, match="pipeline_run"):
        create_run.make_run(new(workspace), run)
    assert Envelope.objects.count() == 1 + AGENTS + 1  # the log's own, and the first genesis
    assert audit().exit_status == 0


@pytest.mark.parametrize("count", [2, 21])
def test_every_row_of_a_large_commit_is_stored(house: House, count: int) -> None:
    workspace = chains.create()
    jobs = [making(workspace) for _ in range(count)]
    commit_together(jobs)
    assert {job.outcome().run.id for job in jobs} == {run.id for run in Run.objects.all()}
    seqs = Envelope.objects.order_by("seq").values_list("seq", flat=True)
    assert list(seqs) == list(range(1 + AGENTS + count))
    assert audit().exit_status == 0


@pytest.mark.parametrize("change", ["length = 7", "head = 'other'", "holder = 'another'"])
def test_nothing_is_written_of_a_run_that_changed_under_its_lock(house: House, change: str) -> None:
    run = committed(making(chains.create())).run
    before = Envelope.objects.count()

    def changed(commit: Commit) -> None:
        locked = commit.runs[run.name]
        decide.apply(commit, locked, [RunStarted()])
        sql.change(f"UPDATE pipeline_run SET {change} WHERE id = %s", (sql.key(run.id),))

    with pytest.raises((RuntimeError, DataError), match=r"under its lock|division by zero"):
        committed(Job(changed, runs=(run.name,)))
    assert Envelope.objects.count() == before
    assert Run.objects.get(id=run.id).length == 1
    assert audit().exit_status == 0


class EndedError(BaseException):
    """The thread that commits for all is told to end."""


def test_who_waits_for_a_thread_that_is_ended_is_told(house: House) -> None:
    began, queued = Event(), Event()

    def slow(_: Commit) -> str:
        began.set()
        assert queued.wait(30)
        return "slow"

    def ended(_: Commit) -> str:
        raise EndedError

    def fine(_: Commit) -> str:
        return "fine"

    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(alone, slow)
        assert began.wait(30)
        behind = [waits(threads, work, number) for number, work in enumerate((ended, fine), 1)]
        queued.set()
        assert first.result(30) == "slow"
        for each in behind:  # they shared the commit that was broken off
            assert isinstance(each.exception(30), EndedError)
    assert committed(Job(lambda _: "goes on")) == "goes on"


def alone(work: Callable[[Commit], str]) -> str:
    try:
        return committed(Job(work))
    finally:
        connection.close()


def waits(threads: ThreadPoolExecutor, work: Callable[[Any], str], number: int) -> Future[str]:
    """A job in line on a thread of its own, once so many wait."""
    future = threads.submit(alone, work)
    while len(group_commit._group.waiting) < number:
        assert not future.done()
    return future


def test_no_two_jobs_about_one_run_share_a_commit_and_they_keep_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    about = (("a",), ("b",), ("a", "c"), ("c",), ("d",))
    jobs = [Job(lambda _: "", runs=runs) for runs in about]
    monkeypatch.setattr(group_commit, "_group", group_commit.GroupCommit(waiting=[*jobs]))
    batches = [group_commit._next() for _ in range(4)]
    first, a_c, c, none = ([job.runs for job in batch] for batch in batches)
    assert (first, a_c, c, none) == ([("a",), ("b",), ("d",)], [("a", "c")], [("c",)], [])
