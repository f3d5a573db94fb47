"""Verdicts on the page: every field is computed, and a breach is shown when there is one."""

import json
import re
from dataclasses import replace

import pytest
from django.db import connection

from dashboard.runs import frames
from dashboard.runs.statechart_svg import ROUTES, SIZES, pairs, statechart_of
from dashboard.templatetags.show import mark_difference, mark_part
from dashboard.verdicts import cards
from nanovm_core.core.lifecycle import STATES
from pipeline.models import AdapterCall, Envelope, Run
from pipeline.runtime import api
from pipeline.worker import tasks
from sabotage import fire
from sabotage.kit.injector import Fired, Injector, Target
from sabotage.models import Attack
from tests.dashboard.visitor import TRANSFER, Visitor, by_code, words


def test_a_verdict_names_rule_line_proposal_calls_and_event(visitor: Visitor) -> None:
    run = visitor.make(pace="step")
    while by_code(run.code).step != "authorize":
        visitor.command(by_code(run.code), "step")
        visitor.driven(run.code)
    page = visitor.read(visitor.fire(run, "tool_injection", proposal=TRANSFER))
    said = words(page)
    assert "BLOCKED" in said
    assert 'href="/docs/rules/CAP-001/"' in page
    assert re.search(r"capabilities\.py:\d+ ungranted", said)
    assert "<mark>&quot;wire_transfer&quot;</mark>" in page
    assert "stripe.create_payment_intent" in said
    event = re.search(rf'href="(/runs/{run.code}/events/\d+/)"', page)
    assert event
    assert "CAP-001" in visitor.read(event[1])
    assert not AdapterCall.objects.filter(tool="wire_transfer").exists()


def test_the_run_page_shows_the_latest_verdict(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    assert "No verdict yet" in visitor.read(f"/runs/{run.code}/")
    visitor.fire(run, "tool_injection", proposal=TRANSFER)
    page = visitor.read(f"/runs/{run.code}/")
    assert re.search(r'id="verdict"[^>]*data-verdict="BLOCKED"', page)
    assert "1 fired · 0 got through" in page


def test_a_late_delivery_does_not_hide_what_became_of_an_attack(visitor: Visitor) -> None:
    run = visitor.make()
    visitor.fire(run, "corrupt_hash")
    tasks.deliver(run.id, Run.objects.get(id=run.id).program_hash)
    kinds = [json.loads(bytes(each.bytes))["kind"] for each in Envelope.objects.filter(run=run.id)]
    assert kinds[-1] == "ignored"
    page = visitor.read(f"/runs/{run.code}/")
    assert re.search(r'id="verdict"[^>]*data-verdict="DETECTED"', page)


def test_the_runtimes_own_refusal_is_a_verdict_too(visitor: Visitor) -> None:
    run = visitor.make("injected", model="gullible")
    page = visitor.read(f"/runs/{run.code}/")
    assert re.search(r'id="verdict"[^>]*data-verdict="BLOCKED"', page)
    assert re.search(r"capabilities\.py:\d+ ungranted", page)
    assert not Attack.objects.exists()


def test_an_attack_after_the_end_is_ignored(visitor: Visitor) -> None:
    run = visitor.make()
    page = words(visitor.read(visitor.fire(run, "tool_injection", proposal=TRANSFER)))
    assert "IGNORED" in page
    assert by_code(run.code).label == "SUCCESS"


def test_no_proposal_breaks_the_verdict(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    for proposal in (
        *("", "{", "[]", "7", '{"tool": 7}', '{"tool": "<mark>"}', '{"args": [1]}', "[" * 15_000),
        '{"tool": "notify.send_email", "args": {"bcc": "x"}}',
        '{"tool": "notify.send_email", "args": 1}',
        '{"a":1e400,"a":NaN}',
        '{"tool": "\\ud800", "args": {}}',
        '{"tool": "\u202e", "args": {}}',
    ):
        assert "BLOCKED" in visitor.read(visitor.fire(run, "tool_injection", proposal=proposal))
        visitor.read(f"/runs/{run.code}/")


def test_a_double_click_fires_once(visitor: Visitor) -> None:
    run = visitor.make()
    form = {"proposal": TRANSFER, "Idempotency-Key": "b" * 32}
    assert visitor.fire(run, "tool_injection", **form) == visitor.fire(
        run, "tool_injection", **form
    )
    assert Attack.objects.count() == 1


def test_htmx_gets_a_fresh_key_and_nothing_that_the_socket_tells(visitor: Visitor) -> None:
    run = visitor.make()
    url = f"/runs/{run.code}/attacks/tool_injection/"
    response = visitor.post(url, {"proposal": TRANSFER}, headers={"HX-Request": "true"})
    page = response.content.decode()
    assert "<html" not in page
    assert re.findall(r'id="([a-z]+)[^"]*" *[^>]*hx-swap-oob', page)[0] == "answered"
    assert not [name for name in frames.FRAGMENTS if f'id="{name}"' in page]
    assert re.search(r'id="key-tool_injection".*?value="[0-9a-f]{32}"', page, re.S)


@pytest.fixture
def without_queue(monkeypatch: pytest.MonkeyPatch) -> dict[str, Injector]:
    """The injectors that need no worker: the browser's tests fire all of them."""
    left = {name: each for name, each in cards.INJECTORS.items() if name != "double_exec"}
    monkeypatch.setattr(cards, "INJECTORS", left)
    return left


def test_all_are_fired_once_and_the_one_that_damages_comes_last(
    visitor: Visitor, without_queue: dict[str, Injector]
) -> None:
    run = visitor.make(pace="step")
    form = {"Idempotency-Key": "c" * 32}
    for _ in range(2):
        visitor.fire(run, "all", **form)
    shots = Attack.objects.order_by("created_ms").values_list("injector", "verdict", "integrity")
    told = {name: (verdict, integrity) for name, verdict, integrity in shots}
    assert len(shots) == len(told) == len(without_queue)
    assert {integrity for _, integrity in told.values()} == {"HELD"}
    assert shots[len(shots) - 1][0] == "corrupt_hash"
    assert told["corrupt_hash"][0] == "DETECTED"
    assert told["tool_injection"][0] == "BLOCKED"
    assert by_code(run.code).quarantined


def test_of_all_it_is_told_which_one_could_not_be_made(
    visitor: Visitor,
    without_queue: dict[str, Injector],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def closed(_: Target) -> Fired:
        raise cards.InjectionError("The door is closed.")

    run = visitor.make(hold=True)
    shut = replace(without_queue["skip_step"], inject=closed)
    monkeypatch.setattr(fire, "INJECTORS", {**without_queue, "skip_step": shut})
    response = visitor.post(f"/runs/{run.code}/attacks/all/", {})
    assert response.status_code == 422
    told = "skip_step: The door is closed. The others were fired."
    assert told in words(response.content.decode())
    fired = {*Attack.objects.values_list("injector", flat=True)}
    assert fired == {*without_queue} - {"skip_step"}
    live = visitor.post(f"/runs/{run.code}/attacks/all/", {}, headers={"HX-Request": "true"})
    assert told in live.content.decode()
    monkeypatch.setattr(cards, "INJECTORS", {"skip_step": shut})
    alone = visitor.post(f"/runs/{run.code}/attacks/all/", {})
    assert "The others were" not in alone.content.decode()


def test_an_attack_that_cannot_be_made_says_what_to_change(visitor: Visitor) -> None:
    run = visitor.make()
    url = f"/runs/{run.code}/attacks/tool_injection/"
    response = visitor.post(url, {"proposal": "x" * 70_000})
    assert response.status_code == 422
    assert "may have up to 65,536 bytes" in words(response.content.decode())
    assert not Attack.objects.exists()


def test_no_such_injector_is_a_404(visitor: Visitor) -> None:
    run = visitor.make()
    assert visitor.post(f"/runs/{run.code}/attacks/magic/").status_code == 404


def test_a_breach_is_shown_from_the_record_of_the_attack(visitor: Visitor) -> None:
    run = visitor.make()
    visitor.fire(run, "tool_injection", proposal=TRANSFER)
    assert "BREACHED" not in visitor.read(f"/runs/{run.code}/")
    Attack.objects.update(integrity="BREACHED")
    page = visitor.read(f"/runs/{run.code}/")
    assert re.search(r'role="alert"[^>]*><div class="banner-breach">', page)
    assert "Integrity BREACHED" in words(page)


def test_verify_recomputes_a_whole_chain(visitor: Visitor) -> None:
    run = visitor.make()
    page = words(visitor.post(f"/runs/{run.code}/audit/verify/").content.decode())
    assert f"Verified {run.length} of {run.length}" in page
    assert "missed" in page  # what it does not prove stands beside it


def test_verify_names_the_damaged_event(visitor: Visitor) -> None:
    run = visitor.make()
    damage(run.id, 4, b'"kind":"result"', b'"kind":"resulT"')
    page = visitor.post(f"/runs/{run.code}/audit/verify/").content.decode()
    said = words(page)
    assert "DETECTED" in said
    assert "The first bad place is event #5" in said
    assert "<mark>" in page
    assert len(re.findall(r"\b[0-9a-f]{64}\b", re.sub(r"</?mark>", "", page))) > run.length
    after = by_code(run.code)
    assert (after.quarantined, after.head) == (True, "0" * 64)
    assert "QUARANTINED" in visitor.read(f"/runs/{run.code}/")
    assert "no longer hash" in visitor.read(f"/runs/{run.code}/events/5/")


def test_one_damaged_run_leaves_the_others_whole(visitor: Visitor) -> None:
    bad, good = visitor.make(), visitor.make()
    damage(bad.id, 2, b'"v":', b'"w":')
    visitor.post(f"/runs/{bad.code}/audit/verify/")
    page = words(visitor.post(f"/runs/{good.code}/audit/verify/").content.decode())
    assert f"Verified {good.length} of {good.length}" in page


def test_junk_in_the_record_breaks_no_page(visitor: Visitor) -> None:
    run = visitor.make()
    for n, junk in enumerate((b"\xff\xfe", b"[]", b"{}", b'{"at_ms":"x","state":7}', b""), 3):
        damage(run.id, n, None, junk)
        for path in ("", f"events/{n + 1}/", "audit/", "steps/2/", "events?after=0"):
            visitor.read(f"/runs/{run.code}/{path}")
        visitor.read("/audit/")
    assert "DETECTED" in visitor.post(f"/runs/{run.code}/audit/verify/").content.decode()


def test_a_damaged_value_reads_as_damaged_and_breaks_no_page(visitor: Visitor) -> None:
    run = visitor.make()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pipeline_secret SET ciphertext = zeroblob(60) WHERE run_id = %s AND slot = %s",
            [run.id.replace("-", ""), "seller"],
        )
    assert "the stored bytes were changed" in visitor.read(f"/runs/{run.code}/")
    assert "the stored bytes were changed" in visitor.read(f"/privacy/{run.code}/")


def test_a_hostile_text_is_text_where_a_part_of_it_is_marked() -> None:
    assert mark_part("a<i>b", "<i>") == "a<mark>&lt;i&gt;</mark>b"
    assert mark_part("<i>", "") == "&lt;i&gt;"
    assert mark_difference("<b>", "<i>") == "&lt;<mark>b</mark>&gt;"


@pytest.mark.parametrize("state", STATES)
def test_the_machine_draws_every_state_inside_its_picture(state: str) -> None:
    machine = statechart_of(state, (state, "", state))
    for drawing in machine.drawings:
        nodes = [node for group in drawing.groups for node in group.nodes]
        assert len(nodes) == len(STATES)
        assert [node.mark != "" for node in nodes].count(True) == 1
        assert all(node.x + node.width <= SIZES[drawing.shape][0] for node in nodes)
        assert all(node.y + node.height <= SIZES[drawing.shape][1] for node in nodes)


@pytest.mark.parametrize("shape", ["wide", "tall"])
def test_every_move_of_the_table_has_an_arrow_and_no_other(shape: str) -> None:
    assert set(ROUTES[shape]) == set(pairs())


def test_the_granted_tools_are_the_programs_own(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    page = visitor.read(visitor.fire(run, "tool_injection", proposal=TRANSFER))
    granted = re.search(r"<h[23]>All that is granted</h[23]><pre[^>]*>(.*?)</pre>", page, re.S)
    assert granted
    tools = json.loads(granted[1].replace("&quot;", '"'))
    assert set(tools) == {"stripe.create_payment_intent", "notify.send_email"}
    assert api.check(run.id) is None


def damage(run_id: str, n: int, old: bytes | None, new: bytes) -> None:
    """Change stored bytes behind the application's back, as a thief of the file would."""
    row = Envelope.objects.get(run=run_id, n=n)
    data = bytes(row.bytes).replace(old, new) if old is not None else new
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER IF EXISTS pipeline_envelope_no_update")
        change = "UPDATE pipeline_envelope SET bytes = %s WHERE workspace_id = %s AND seq = %s"
        cursor.execute(change, [data, row.workspace_id.hex, row.seq])
