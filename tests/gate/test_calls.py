"""Calls of agents from outside: judged once, handed out once, reported once."""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from django.db import connections

from engine import application
from engine.evidence import bundles, signer
from engine.evidence.fsck.audit import audit
from engine.models import AdapterCall, Envelope, Run, Secret
from engine.privacy import erasure
from engine.privacy.crypto_shred import destroy_orphans
from engine.queries.runs import head_of
from engine.runtime import agents, api, group_commit
from engine.runtime.group_commit import Job
from engine.store import turns
from engine.vault import secret_store
from engine.vault.key_store import keystore
from engine.worker import tasks
from engine.worker.drive import drive_patiently, take_turns
from gate import asked, calls, identity, queries
from gate.doors import wire
from gate.replies import ALLOWED, DONE, FAILED, HELD, REFUSED, RUNNING, UNKNOWN, GateError, Reply
from nanovm_core import verify
from nanovm_core.core.lifecycle import FAILED as ENDED
from tests.gate.conftest import Desk
from tests.kit.clock import Leap
from tests.kit.house import bodies, sql

COPIES = 20
TIMEOUT_MS = 600_000  # of the desk's step


def code(call: Callable[..., object], *args: Any, **named: Any) -> str:
    """The code that a call is refused with; empty where it is answered."""
    try:
        call(*args, **named)
    except GateError as error:
        return error.code
    return ""


def at_once(call: Callable[[], Reply]) -> list[Reply | str]:
    """What COPIES threads are answered with."""

    def answered(_: int) -> Reply | str:
        try:
            return call()
        except GateError as error:
            return error.code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(COPIES) as threads:
        return [*threads.map(answered, range(COPIES))]


def warrants(found: list[Reply | str]) -> list[str]:
    return [each.warrant for each in found if isinstance(each, Reply) and each.warrant]


@pytest.mark.postgres
@pytest.mark.parametrize("tool", ["mail", "send"])
def test_copies_of_a_request_are_one_run_and_one_effect(desk: Desk, tool: str) -> None:
    found = at_once(lambda: desk.ask(tool=tool))
    assert [each for each in found if isinstance(each, str)] == ["GAT-004"] * (COPIES - 1)
    assert len(warrants(found)) == (tool == "mail")
    assert desk.run().length == Envelope.objects.filter(run=str(desk.run().id)).count()
    drive_patiently(str(desk.run().id))
    assert Run.objects.count() == AdapterCall.objects.count() == 1
    assert len(desk.sent) == (tool == "send")
    assert audit().damage == ()


@pytest.mark.postgres
def test_a_warrant_is_handed_out_once_after_an_approval(desk: Desk) -> None:
    held = desk.ask(to="all")
    assert (held.verdict, held.rule, held.warrant) == (HELD, "mail-to-all", "")
    assert desk.ask(to="all") == held._replace(replayed=True)
    api.approve(str(desk.run().id), "visitor")
    take_turns()
    assert calls.answer(desk.holder, "1")[::8] == (ALLOWED, "")
    found = at_once(lambda: desk.ask(to="all"))
    assert len(warrants(found)) == 1
    assert found.count("GAT-004") == COPIES - 1
    assert AdapterCall.objects.count() == 1


def test_an_id_is_one_call(desk: Desk) -> None:
    desk.ask("a", "send", to="ada", cents=60_000)
    again = calls.ask(desk.holder, "a", b' {"args":{"cents":60000, "to":"ada"},"tool":"send"}')
    assert (again.verdict, again.rule, again.replayed) == (REFUSED, "desk-limit", True)
    assert code(desk.ask, "a", "send", cents=60_001) == "GAT-002"
    assert code(desk.ask, "a", "mail") == code(calls.ask, desk.holder, "a", b"{") == "GAT-002"
    for request in ("", "x" * 201, "a\nb", "ä"):
        assert code(desk.ask, request) == code(calls.answer, desk.holder, request) == "GAT-005"
    assert Run.objects.count() == 1


def test_a_call_is_made_by_its_upstream_or_by_who_asked(desk: Desk) -> None:
    assert desk.ask("a", "send").verdict == RUNNING
    drive_patiently(str(desk.run("a").id))
    assert calls.answer(desk.holder, "a").result == {"ok": True}
    assert [args for _, args in desk.sent] == [{"to": "ada", "cents": 120}]
    assert desk.ask("b").verdict == ALLOWED
    assert code(calls.report, desk.holder, "a", DONE) == "GAT-007"
    reply = calls.report(desk.holder, "b", DONE, b'{"id": 7}')
    assert (reply.verdict, reply.result, reply.tool) == (DONE, {"id": 7}, "mail")
    assert reply.checks == dict.fromkeys(reply.checks, "passed") | {"anomaly": "not reached"}
    assert code(calls.report, desk.holder, "b", DONE) == "GAT-007"
    assert desk.ask("b") == reply._replace(replayed=True)
    desk.ask("c")
    exact = b'{"id":%b,"sum":98.70}' % (b"7" * 30)
    assert wire.written(calls.report(desk.holder, "c", DONE, exact).result) == exact


@pytest.mark.parametrize("outcome", [FAILED, UNKNOWN])
def test_a_report_says_what_became_of_a_call(desk: Desk, outcome: str) -> None:
    desk.ask()
    if outcome == UNKNOWN:  # a report counts while its run is paused, and its warrant stays out
        api.pause(str(desk.run().id), "visitor")
        assert calls.answer(desk.holder, "1").verdict == RUNNING
        assert code(desk.ask) == "GAT-004"
    text = "nanovm looked: nothing was sent."  # by an agent, under a rule's name
    reply = calls.report(desk.holder, "1", outcome, code="any-mail", text=text)
    own = {FAILED: "GAT-015", UNKNOWN: "GAT-016"}[outcome]
    assert (reply.verdict, reply.rule) == (outcome, own)
    ends = r"Its warrant ends at \d\d:\d\d:\d\d UTC\. " if outcome == UNKNOWN else ""
    assert re.fullmatch(f"{ends}teller reports {outcome}: any-mail: {text}", reply.why)
    assert code(calls.report, desk.holder, "1", UNKNOWN) == "GAT-007"
    if outcome == UNKNOWN:
        api.decline(str(desk.run().id), "visitor")
        assert desk.ask()[::4] == (UNKNOWN, "POL-023", "")
        assert "payment" not in desk.ask().why  # it may have been a mail
    assert audit().damage == ()


def test_a_word_of_the_agent_frees_no_budget(desk: Desk) -> None:
    lone = desk._replace(token=identity.issue(desk.log.id, "buyer", "bank_assistant", by="visitor"))
    paid = {"recipient": "BE68539007547034", "amount": 2_000, "subject": "", "date": "2026-01-01"}
    for request in "12":
        assert lone.ask(request, "send_money", **paid).verdict == ALLOWED
        said = calls.report(lone.holder, request, FAILED)
        assert (said.verdict, said.rule) == (UNKNOWN, "GAT-022")
        assert said.why.endswith(" UTC. buyer reports failed")
    third = lone.ask("3", "send_money", **paid)
    assert (third.verdict, third.rule, third.warrant) == (HELD, "BUD-001", "")


def test_what_is_not_reported_is_counted_all_the_same(desk: Desk) -> None:
    asked = {"order": "7", "amount": 49, "reason": "late"}
    for agent, count in (("clerk", 11), ("other", 10)):
        token = identity.issue(desk.log.id, agent, "help_desk", by="visitor")
        lone = desk._replace(token=token)
        found = [lone.ask(str(number), "refund.issue", **asked).rule for number in range(count)]
        assert found == ["small"] * min(count, 10) + ["many"] * (count - 10)
        assert calls.answer(lone.holder, "0").checks["rate"] == "passed"  # as it was judged
    lone = desk._replace(token=identity.issue(desk.log.id, "buyer", "bank_assistant", by="visitor"))
    said = [lone.ask(str(n), "update_scheduled_transaction", id=1) for n in range(21)]
    assert [each.rule for each in said[19:]] == ["payment", "CAP-041"]
    assert said[20].why.endswith("At most 20 calls in 24 h, by all agents.")


def test_without_a_report_a_person_decides(desk: Desk, leap: Leap) -> None:
    desk.ask()
    take_turns()
    assert calls.answer(desk.holder, "1").verdict == ALLOWED
    leap(TIMEOUT_MS + 1)
    take_turns()
    late = calls.answer(desk.holder, "1")
    assert (late.verdict, late.rule) == (UNKNOWN, "FSM-014")
    assert desk.ask() == late._replace(replayed=True)
    api.approve(str(desk.run().id), "visitor")  # a person lets it be made again, under its key
    assert desk.ask().warrant
    assert calls.report(desk.holder, "1", DONE).verdict == DONE


def test_a_warrant_that_nobody_took_is_known_to_be_unused(desk: Desk, leap: Leap) -> None:
    desk.ask(to="all")
    api.approve(str(desk.run().id), "visitor")
    leap(TIMEOUT_MS // 2)
    assert (tasks.stranded(), turns.waiting_ms()) == ([], 0)
    leap(TIMEOUT_MS // 2 + 1)
    take_turns()
    late = desk.ask(to="all")
    assert (late.verdict, late.rule) == (FAILED, "FSM-014")
    assert "was not made" in late.why
    assert not AdapterCall.objects.exists()


def test_a_suspended_agent_calls_nothing(desk: Desk) -> None:
    desk.ask("held", to="all")
    api.approve(str(desk.run("held").id), "visitor")
    agents.suspend(desk.log.id, "teller", by="visitor")
    for tool in ("mail", "send"):
        reply = desk.ask(tool, tool)
        assert (reply.verdict, reply.rule, reply.warrant) == (REFUSED, "CAP-040", "")
    assert desk.ask("held", to="all")[::4] == (HELD, "CAP-040", "")
    agents.resume(desk.log.id, "teller", by="visitor")
    take_turns()
    assert desk.sent == []
    assert not AdapterCall.objects.exists()
    assert desk.ask("mail").rule == "CAP-040"  # it ended, and does not go on
    (shown,) = asked.of_runs([head_of(desk.run("mail"))]).values()
    assert shown.rule == "CAP-040"  # on pages too
    assert desk.ask("held", to="all").warrant


def test_a_refusal_ends_its_run_alone(desk: Desk) -> None:
    rules = {"rob": "CAP-001", "send": "CAP-005"}
    found = {tool: desk.ask(tool, tool, cents="much") for tool in rules}
    assert {tool: each.rule for tool, each in found.items()} == rules
    broken = calls.ask(desk.holder, "nan", b'{"tool":"send","args":{"cents":NaN}}')
    assert (broken.verdict, broken.rule, broken.checks["schema"]) == (REFUSED, "CAP-013", "refused")
    assert desk.ask("next").verdict == ALLOWED
    assert {*Run.objects.exclude(ended_ms=None).values_list("state", flat=True)} == {ENDED}
    [each] = queries.folded(desk.log.id, [*queries.hours(desk.log.id)])
    assert (each.agent, each.counts) == ("teller", {REFUSED: 3, ALLOWED: 1})


@pytest.mark.parametrize(
    ("tool", "args", "most"), [("mail", {}, 1), ("send", {"cents": 60_000}, 1), ("send", {}, 3)]
)
def test_a_call_has_few_commits(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tool: str, args: dict[str, Any], most: int
) -> None:
    desk.ask("first", "send")  # which declares the payer
    found: list[Job[Any]] = []
    real = group_commit.commit_together

    def counted(jobs: Sequence[Job[Any]]) -> None:
        found.extend(jobs)
        real(jobs)

    monkeypatch.setattr(group_commit, "commit_together", counted)
    desk.ask("1", tool, **args)
    if most > 1:
        drive_patiently(str(desk.run().id))
    names = [getattr(each.work, "__qualname__", "") for each in found]
    assert len([each for each in names if "_within" not in each]) == most  # which reads a ledger


def test_a_hidden_value_is_in_the_vault_alone_and_erased_with_its_call(desk: Desk) -> None:
    desk.ask(body="plainly personal")
    calls.report(desk.holder, "1", DONE, b'"plainly sent"')
    assert "plainly" not in str(bodies(desk.run()))
    assert code(desk.ask, body="else") == "GAT-002"
    run = desk.run().id
    left = Secret.objects.filter(run=run, erased_ms=None)
    assert {*left.values_list("slot", flat=True)} == {"args.body", "asked", "proposal", "result"}
    assert erasure.erase_run(str(run), "art17-1-a", "operator").state == "done"
    assert not left.exists()
    assert code(desk.ask, body="plainly personal") == "GAT-010"
    assert calls.answer(desk.holder, "1")[::7] == (DONE, None)
    assert audit().damage == ()


def test_keys_of_a_call_that_is_being_made_are_no_orphans(desk: Desk) -> None:
    run = str(UUID(int=1, version=5))  # which does not begin with a time
    ref = secret_store.seal_values(run, desk.log.origin, {"proposal": b"{}"})["proposal"].ref
    destroy_orphans()
    assert [*keystore().keys([ref])] == [ref]


def test_a_stranger_checks_a_call(desk: Desk, tmp_path: Any, capsys: Any) -> None:
    desk.ask("a", to="all")
    desk.ask("b", "send", cents="x")
    for request, outcome in (("c", UNKNOWN), ("d", DONE)):
        desk.ask(request)
        calls.report(desk.holder, request, outcome)
    desk.ask("e", "send")
    drive_patiently(str(desk.run("e").id))
    for run in (*Run.objects.all(), None):
        file = tmp_path / "bundle.zip"
        bundles.write_bundle(desk.log, run, file, signer.checkpoint(desk.log.id), disclosures=True)
        key = signer.verifiers(desk.log.origin)[0].vkey
        assert verify.main([str(file), "--key", key, "--explain"]) == 0
    said, asked = capsys.readouterr().out, ' (triggered by agent:teller)\n    proposal "{'
    texts = ("call of send done\n    cents 120\n    to ada\n    allowed by rule small",
             'call of mail done\n    body "Hello"', "call of mail without a recorded answer",
             f"by rule CAP-005{asked}", f"rule mail-to-all{asked}")  # fmt: skip
    assert [text for text in texts if text not in said.rpartition("as recorded:")[2]] == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE gate_call SET tool = 'send'",
        "UPDATE gate_call SET agent = 'else'",
        "DELETE FROM gate_call",
        "INSERT INTO gate_call SELECT id, workspace_id, 'teller', 'desk', 'mail', created_ms"
        " FROM pipeline_run WHERE model <> 'agent'",
    ],
)
def test_a_changed_row_of_the_list_is_named(desk: Desk, change: str) -> None:
    desk.house.new(workspace=desk.log)
    desk.ask()
    with pytest.MonkeyPatch.context() as patch:  # also while the program is left out
        patch.delitem(application._INSTALLED, "desk")
        assert audit().damage == ()
    sql((change, []))
    assert "list of calls" in audit().damage[0].text
