"""Calls of foreign agents on the pages: folded in lists, a run's page each, decided, erased."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from dashboard import urls
from engine.evidence import signer
from engine.models import Link, Run, Secret
from engine.queries.runs import RunHead, by_id
from engine.runtime import agents as runtime
from engine.worker.drive import drive_patiently
from gate import calls, identity, queries, replies
from gate.asked import of_runs as asked_of
from gate.identity import Holder
from gate.models import Call
from nanovm_core.core.vault import TOMBSTONE
from pipeline.queries import stuck_runs
from tests.dashboard.sharing.test_links import made, used
from tests.dashboard.visitor import Visitor, words
from tests.gate.conftest import installed

pytestmark = pytest.mark.usefixtures("db")

BAD = (b"\xff{", b'{"tool":"send","args":{"to":"\\ud800","\\ud800":[[1e999]]}}')
# The addresses of a run at which a call has its page, too; the others say 404 or why not.
PAGES = (
    *("run", "news", "event", "event_bytes", "step", "calls", "run_audit", "verify", "report_page"),
    *("run_export", "privacy", "inbox_row", "receipt", "bundle"),
)


@pytest.fixture(scope="module")
def bot(own_folder: None, owner: Visitor, ready: RunHead) -> Iterator[Holder]:
    """An agent from outside in the owner's workspace, which has an invoice that did not start."""
    with pytest.MonkeyPatch.context() as patch:
        installed(patch)
        log = Run.objects.get(id=ready.id).workspace_id
        yield identity.holder(identity.issue(log, "bank-bot", "desk", by="visitor"))


def ask(bot: Holder, request: str, tool: str, **args: Any) -> RunHead:
    """A call, made as far as it goes."""
    calls.ask(bot, request, json.dumps({"tool": tool, "args": args}).encode())
    drive_patiently(str(calls.run_of(bot, request)))
    return by_id(str(calls.run_of(bot, request)))


@pytest.fixture(scope="module")
def asked(bot: Holder) -> Mapping[str, RunHead]:
    """A call of each verdict, by it."""
    mail = {"to": "ada", "body": "Dear Ada"}
    found = {
        "allowed": ask(bot, "1", "mail", **mail),
        "held": ask(bot, "2", "send", to="GB29", cents=20_000),
        "refused": ask(bot, "3", "send", to="GB29", cents=60_000),
        "unknown tool": ask(bot, "4", "rob", bank=[15, "x\u202e"], c=1, d=2, e=3),
        "done": ask(bot, "5", "send", to="DE89", cents=120),
    }
    ask(bot, "6", "mail", **mail)
    calls.report(bot, "6", "unknown", code="TIMED-OUT")
    found["unknown"] = by_id(str(calls.run_of(bot, "6")))
    for at, raw in enumerate(BAD):
        calls.ask(bot, f"bad {at}", raw)
        found[f"bad {at}"] = by_id(str(calls.run_of(bot, f"bad {at}")))
    signer.checkpoint(bot.log)
    return found


def address(name: str, run: RunHead) -> str:
    """An address of a run."""
    values: dict[str, Any] = {"code": run.code, "number": 1, "place": 0, "name": "tool_injection"}
    values |= {"attack_id": uuid4(), "plan_id": uuid4()}
    [pattern] = [each for each in urls.urlpatterns if each.name == name]
    given = pattern.pattern.converters
    values["name"] = "resume" if name in ("command", "inbox_decide") else values["name"]
    return reverse(name, kwargs={key: values[key] for key in given})


@pytest.mark.parametrize("verdict", ["allowed", "held", "done", "bad 1"])
def test_every_address_of_a_run_answers_for_a_call(
    owner: Visitor, asked: Mapping[str, RunHead], verdict: str
) -> None:
    of_runs = [each for each in urls.urlpatterns if "code" in each.pattern.converters]
    run = asked[verdict]
    for name in (str(each.name) for each in of_runs):
        path = address(name, run)
        read, sent = owner.get(path), owner.post(path, {"confirm": "no"})
        b"".join(getattr(read, "streaming_content", ()))  # what it opened is closed with it
        assert read.status_code in ((200,) if name in PAGES else (200, 204, 302, 404, 405)), path
        assert sent.status_code in (200, 303, 404, 405, 409, 422), path
    page = words(owner.read(f"/runs/{run.code}/"))
    assert "Attack this run" not in page
    assert "Invoice" not in page


def test_the_page_says_what_was_asked_and_what_became_of_it(
    owner: Visitor, asked: Mapping[str, RunHead]
) -> None:
    said = {
        "held": "bank-bot asked for send · ON HOLD A person looks at more than 100.00. decided by",
        "refused": "( POL-003 ) The desk sends no more than 500.00.",
        "unknown tool": "bank-bot asked for rob · REFUSED",
        "bad 1": "bank-bot asked for send · REFUSED",
        "done": "bank-bot asked for send · DONE",
        "allowed": "bank-bot asked for mail · ALLOWED, not reported yet",
        "unknown": "bank-bot asked for mail · OUTCOME UNKNOWN",
    }
    pages = {each: words(owner.read(f"/runs/{asked[each].code}/")) for each in said}
    assert {each: said[each] in pages[each] for each in said} == dict.fromkeys(said, True)
    assert "schema passed permission refused" in pages["refused"]
    assert r"bank 15, x\u202e" in pages["unknown tool"]
    assert "body Dear Ada" in pages["allowed"]
    assert "Result send {“ok”:true}".replace("“", '"').replace("”", '"') in pages["done"]
    assert "Approve EUR 200.00 to GB29 (send)" in pages["held"]
    assert "Held for 1 reason A person looks at more than 100.00." in pages["held"]


def test_calls_are_folded_and_no_invoice(owner: Visitor, asked: Mapping[str, RunHead]) -> None:
    page = owner.read("/runs/")
    assert re.search(r"bank-bot · \d\d:00 to \d\d:00 · \d calls?: ", words(page))
    assert "Any state (1)" in words(page)
    assert not any(run.code in page for run in asked.values())
    assert not any(run.code in owner.read("/") for run in asked.values())
    table: Any = owner.get("/runs.csv")
    assert len(b"".join(table.streaming_content).splitlines()) == 2
    lines = re.findall(r'"(/runs/calls/bank-bot/[^"]+)"', owner.read("/runs/calls/"))
    opened = "".join(owner.read(line) for line in lines)
    assert all(f"/runs/{run.code}/" in opened for run in asked.values())
    assert "send cents 60000, to GB29 REFUSED POL-003" in words(opened)
    assert "c 1, d 2 and 1 more REFUSED CAP-001" in words(opened)
    owner.read("/runs/calls/bank-bot/2001-01-01T00/", 404)
    Visitor().read(lines[0], 404)


def test_a_folded_line_counts_what_its_opened_list_shows(owner: Visitor, bot: Holder) -> None:
    mail = {"to": "ada", "body": "x"}
    for name in ("waits", "yes", "no", "taken"):
        run = ask(bot, name, "mail", to="all", body="x")
        if name != "waits":
            owner.command(run, "decline" if name == "no" else "approve")
    assert "APPROVED, not asked for again yet" in owner.read("/agents/connect/bank-bot/")
    assert "No decision is needed: the agent has to ask again" in owner.read("/inbox/")
    calls.ask(bot, "taken", b'{"tool": "mail", "args": {"to": "all", "body": "x"}}')
    for name in ("failed", "done"):
        ask(bot, name, "mail", **mail)
        calls.report(bot, name, name)
    owner.command(ask(bot, "paused", "mail", **mail), "pause")
    for name, decision in (("unknown", ""), ("given up", "decline"), ("again", "approve")):
        ask(bot, name, "mail", **mail)
        calls.report(bot, name, "unknown", code="TIMED-OUT")
        if decision:
            owner.command(by_id(str(calls.run_of(bot, name))), decision)
    made = [by_id(str(each.run_id)) for each in Call.objects.all()]
    shown = Counter(each.verdict for each in asked_of(made).values())
    assert {*shown} == {*replies.VERDICTS}
    folded = queries.folded(bot.log, [*queries.hours(bot.log)])
    assert sum((Counter(each.counts) for each in folded), Counter()) == shown


def test_a_search_for_its_code_finds_a_call(owner: Visitor, asked: Mapping[str, RunHead]) -> None:
    run = asked["refused"]
    page = words(owner.read(f"/runs/?q={run.code.lower()}"))
    assert f"{run.code} bank-bot send" in page
    assert "Nothing matches" not in page


def test_a_held_call_is_decided_in_the_inbox(owner: Visitor, bot: Holder) -> None:
    before = owner.read("/runs/").count("Inbox (")
    run = ask(bot, "7", "send", to="GB29", cents=20_000)
    page = words(owner.read("/inbox/"))
    assert "bank-bot asks for send: cents 20000, to GB29" in page
    assert (
        "A person looks at more than 100.00. look-first May decide: you · Approve the call" in page
    )
    assert before or "Inbox (" in page
    opened = owner.read(f"/inbox/{run.code}/")
    guest = used(made(owner, "approve", run.code))
    for shown in (opened, guest.read(f"/l/{Link.objects.get().id}/approve/")):
        assert "Approve EUR 200.00 to GB29 (send)" in words(shown)
        assert "Arguments cents 20000 to GB29" in words(shown)
    viewed = used(made(owner, "view", run.code)).read(f"/runs/{run.code}/")
    assert "hidden, but for arguments of agents’ calls that the audit log has in clear" in viewed
    form = {
        name: re.search(rf'name="{name}" value="([^"]+)"', opened) for name in ("hold", "terms")
    }
    sent = {name: found[1].replace("&quot;", '"') for name, found in form.items() if found}
    answer = owner.post(f"/inbox/{run.code}/approve/", sent)
    assert "Approved: send for bank-bot" in words(owner.read(answer["Location"].split("#")[0]))
    drive_patiently(run.id)
    assert by_id(run.id).label == "SUCCESS"


def test_a_call_whose_agent_has_ended_can_only_be_declined(owner: Visitor, bot: Holder) -> None:
    held = ask(bot, "late", "send", to="GB29", cents=20_000)
    ask(bot, "lost", "mail", to="ada", body="x")
    calls.report(bot, "lost", "unknown", code="TIMED-OUT")
    lost = by_id(str(calls.run_of(bot, "lost")))
    assert "Let the agent make it again" in owner.read(f"/inbox/{lost.code}/")
    runtime.kill(bot.log, "bank-bot", by="visitor")
    for waits in ((held, lost), (lost,)):  # a held one ends once the agent is connected anew
        for path in (f"/{each}/{run.code}/" for each in ("inbox", "runs") for run in waits):
            assert "killed, or connected anew, after it asked: the call can" in owner.read(path)
            assert "act-approve" not in owner.read(path)
            assert "act-decline" in owner.read(path)
        if held in waits:
            identity.issue(bot.log, "bank-bot", "desk", by="visitor")


def test_many_calls_hide_no_invoice_that_waits(
    owner: Visitor, bot: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stuck_runs, "LISTED_MAX", 2)
    held = owner.make("over_limit")
    for number in range(3):
        ask(bot, f"many {number}", "mail", to="all", body="x")
    found = [run.code for run, _ in stuck_runs.of_workspace(bot.log)]
    assert held.code in found
    assert len(found) == stuck_runs.LISTED_MAX + 1


def test_a_hidden_value_is_on_the_page_of_its_own_call_alone(owner: Visitor, bot: Holder) -> None:
    run = ask(bot, "secret", "mail", to="all", body="hunter2")
    thief = ask(bot, "thief", "send", to=Secret.objects.get(run_id=run.id, slot="args.body").ref)
    assert "hunter2" in owner.read(f"/runs/{run.code}/")
    assert "body (in the vault), to all" in words(owner.read("/inbox/"))
    assert "hunter2" not in owner.read("/inbox/") + owner.read(f"/runs/{thief.code}/")


def test_erasing_a_call_takes_its_arguments_from_every_page(owner: Visitor, bot: Holder) -> None:
    run = ask(bot, "8", "mail", to="all", body="Dear Ada")
    assert owner.erase(run).status_code == 303
    for path in (f"/runs/{run.code}/", f"/runs/{run.code}/report/", f"/privacy/{run.code}/"):
        page = owner.read(path)
        assert "Dear Ada" not in page, path
        assert TOMBSTONE in page, path
    inventory = words(owner.read(f"/privacy/{run.code}/"))
    certificate = words(owner.read(f"/privacy/certificates/{run.code}/"))
    assert "in clear these arguments of the call, which no erasure removes: to" in inventory
    assert "that its program does not mark as ref: to. They are in clear" in certificate
    for wrong in ("contain no personal data", "no personal value", "name nobody", "mail folder"):
        assert wrong not in inventory + certificate, wrong


def test_a_foreign_agent_is_listed_apart_with_its_program(owner: Visitor, bot: Holder) -> None:
    run = ask(bot, "9", "send", to="GB29", cents=20_000)
    page = words(owner.read("/agents/"))
    assert "gate (1 from outside)" in page
    agent = words(owner.read("/agents/bank-bot/"))
    assert "program desk" in agent
    assert "send : granted" in agent
    assert run.code in agent
    runtime.kill(bot.log, "bank-bot", by="visitor")
    assert 'href="/agents/connect/bank-bot/#anew"' in owner.read("/agents/")
    answer = owner.post("/agents/bank-bot/declare/")
    assert answer["Location"] == "/agents/connect/bank-bot/#anew"
