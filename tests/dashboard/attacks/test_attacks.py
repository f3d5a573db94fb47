"""Verdicts on the page: every field is computed, and a breach is shown when there is one."""

import json
import re
from dataclasses import replace
from uuid import uuid4

import pytest

from dashboard.runs import frames
from dashboard.runs.statechart_svg import ROUTES, pairs
from dashboard.templatetags.show import lower_first, mark_difference, mark_part
from dashboard.verdicts import cards
from engine.clock import now_ms
from engine.models import AdapterCall, Envelope, Run
from engine.queries.record import record_of
from engine.queries.runs import RunHead
from engine.runtime import api
from engine.worker import tasks
from sabotage import fire
from sabotage.ablation.guards import claim_of
from sabotage.baseline.comparison import TOLD_PAID
from sabotage.kit.injector import Fired, Injector, Target
from sabotage.models import Attack
from tests.dashboard.visitor import TRANSFER, Visitor, by_code, words
from tests.kit.house import sql
from tests.kit.trees import PLACE

pytestmark = pytest.mark.usefixtures("db")

# What an ordinary agent does under an attack besides losing money.
NOTICE = {
    "skip_step": f": {TOLD_PAID}",
    "reorder_steps": ": paid, and checked its limit afterwards",
}


def test_an_attack_under_way_shows_no_rule_that_its_verdict_will_not_name(owner: Visitor) -> None:
    run = owner.make(pace="step")
    row = {"id": uuid4(), "run_id": run.id, "workspace_id": run.workspace, "created_ms": now_ms()}
    attack = Attack.objects.create(injector="double_exec", **row)
    assert cards.of_run(by_code(run.code)).total == 0  # none has a verdict
    api.start(run.id, "attacker:double_exec")
    page = page_of(owner, run)
    assert ('class="card verdict"' in page, ">FSM-002</text>" in page) == (False, False)
    assert frames.said(record_of(by_code(run.code)).rows[-1:]) == "An attack was blocked."
    Attack.objects.filter(pk=attack.pk).update(created_ms=now_ms() - cards.JUDGED_MS_MAX)  # cut off
    assert "FSM-002" in words(page_of(owner, run).partition('class="card verdict"')[2])


def page_of(owner: Visitor, run: RunHead) -> str:
    return owner.read(f"/runs/{run.code}/")


def shown(page: str, verdict: str) -> bool:
    """Whether the run's page shows this as the latest verdict."""
    return bool(re.search(rf'id="verdict"[^>]*data-verdict="{verdict}"', page))


def test_verdict_names_rule_line_proposal_grants_and_event(owner: Visitor, ready: RunHead) -> None:
    assert "No attacks yet." in page_of(owner, ready)
    page = owner.read(owner.fire(ready, "tool_injection", proposal=TRANSFER))
    said = words(page)
    assert "BLOCKED" in said
    assert 'href="/docs/rules/CAP-001/"' in page
    [(decided, refused)] = re.findall(r"Decided in (\S+) refused in (\S+) ungranted", said)
    assert decided in said.partition("What will be removed from the copy")[2]
    assert "capabilities.py:" in refused
    assert "<mark>&quot;wire_transfer&quot;</mark>" in page
    [granted] = re.findall(r"<h[23]>Tool allowlist</h[23]><pre[^>]*>(.*?)</pre>", page, re.S)
    tools = json.loads(granted.replace("&quot;", '"'))
    assert set(tools) == {"stripe.create_payment_intent", "notify.send_email"}
    event = re.findall(rf'href="(/runs/{ready.code}/events/\d+/)"', page)[0]
    assert "CAP-001" in owner.read(event)
    assert not AdapterCall.objects.filter(tool="wire_transfer").exists()
    latest = page_of(owner, ready)
    assert shown(latest, "BLOCKED")
    assert "1 fired · 0 got through" in latest


def test_a_late_delivery_hides_no_outcome_of_an_attack(owner: Visitor, paid: RunHead) -> None:
    owner.fire(paid, "corrupt_hash")
    tasks.deliver(paid.id, Run.objects.get(id=paid.id).program_hash)
    last = Envelope.objects.filter(run=paid.id).latest("n")
    assert json.loads(bytes(last.bytes))["kind"] == "ignored"
    assert shown(page_of(owner, paid), "DETECTED")


def test_the_row_says_what_happens_without_the_check(
    owner: Visitor, ready: RunHead, without_queue: dict[str, Injector]
) -> None:
    owner.fire(ready, "all")
    page = words(page_of(owner, ready))
    for name, injector in without_queue.items():
        claim = claim_of(name, injector.read({}))
        assert claim
        consequence = f"Without this check: {lower_first(claim.shows)}"
        assert f"ordinary agent{NOTICE.get(name, '')} {consequence}" in page
    assert "Rule CAP-001 (this tool is not on the allowlist)" in page


def test_a_changed_argument_shows_both_values_and_no_page_a_slot(
    owner: Visitor, paid: RunHead, ready: RunHead
) -> None:
    bill = {"amount_minor": 128_450, "currency": "EUR", "payee": "{{payee}}", "memo": "{{ memo }}"}
    other = {**bill, "amount_minor": "{{amount}}", "payee": "Mirage", "note": "{{x}}"}
    run = owner.paused("authorize")
    for args, said in (
        ({**bill, "amount_minor": 128_449}, "EUR 1,284.50 → EUR 1,284.49 to the invoice's payee"),
        ({**bill, "currency": "USD"}, "EUR 1,284.50 → USD 1,284.50 to the invoice's payee"),
        (other, "EUR 1,284.50 → “the invoice's amount” to the invoice's payee → Mirage, note none"),
    ):
        call = json.dumps({"tool": "stripe.create_payment_intent", "args": args})
        verdict = owner.read(owner.fire(run, "tool_injection", proposal=call))
        row = re.sub(r"(?s)<textarea.*?</textarea>", "", page_of(owner, run))
        assert f"Stopped: {said}" in words(row)
        step = owner.read(f"/runs/{run.code}/steps/4/")
        assert not re.findall(r".*\{\{.*", verdict + row + step)


def test_the_runtimes_own_refusal_is_an_attack_with_its_comparison(owner: Visitor) -> None:
    run = owner.make("injected", model="gullible")
    page_of(owner, run)
    page = page_of(owner, run)  # a second look counts no second attack
    assert shown(page, "BLOCKED")
    assert re.search(r"gate/__init__\.py:\d+", page)
    assert "1 fired · 0 got through" in page
    assert "ordinary agent: USD 50,000.00 lost" in words(page)
    assert Attack.objects.get(run_id=run.id).evidence["calls"] == 0
    Attack.objects.update(created_ms=1)  # as where it was judged before the last refusal
    assert "own-head" not in page_of(owner, run)


def test_no_proposal_breaks_the_verdict(owner: Visitor, ready: RunHead) -> None:
    for proposal in (
        *("", "7", '{"tool": "<mark>"}', '{"args": [1]}', "[" * 15_000, '{"a":1e400,"a":NaN}'),
        '{"tool": "notify.send_email", "args": 1}',
        '{"tool": "\\ud800", "args": {}}',
    ):
        assert "BLOCKED" in owner.read(owner.fire(ready, "tool_injection", proposal=proposal))
    page_of(owner, ready)


def test_htmx_gets_a_fresh_key_and_nothing_that_sockets_tell(owner: Visitor, paid: RunHead) -> None:
    url = f"/runs/{paid.code}/attacks/tool_injection/"
    response = owner.post(url, {"proposal": TRANSFER}, headers={"HX-Request": "true"})
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
    owner: Visitor, ready: RunHead, without_queue: dict[str, Injector]
) -> None:
    for _ in range(2):
        owner.fire(ready, "all", **{"Idempotency-Key": "c" * 32})
    shots = Attack.objects.order_by("created_ms").values_list("injector", "verdict", "integrity")
    assert {name for name, _, _ in shots} == {*without_queue}
    assert len(shots) == len(without_queue)
    assert {integrity for _, _, integrity in shots} == {"HELD"}
    assert shots[len(shots) - 1][:2] == ("corrupt_hash", "DETECTED")
    assert ("tool_injection", "BLOCKED", "HELD") in shots
    assert by_code(ready.code).quarantined


def test_of_all_it_is_told_which_one_could_not_be_made(
    owner: Visitor,
    ready: RunHead,
    without_queue: dict[str, Injector],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def closed(_: Target) -> Fired:
        raise cards.InjectionError("The door is closed.")

    url = f"/runs/{ready.code}/attacks/all/"
    shut = replace(without_queue["skip_step"], inject=closed)
    monkeypatch.setattr(fire, "INJECTORS", {**without_queue, "skip_step": shut})
    page = owner.refused(url)
    told = "skip_step: The door is closed. The others were fired."
    assert told in words(page)
    assert {*Attack.objects.values_list("injector", flat=True)} == {*without_queue} - {"skip_step"}
    assert told in owner.post(url, {}, headers={"HX-Request": "true"}).content.decode()
    monkeypatch.setattr(cards, "INJECTORS", {"skip_step": shut})
    assert "The others were" not in owner.post(url, {}).content.decode()


def test_an_attack_that_cannot_be_made_says_what_to_change(owner: Visitor, paid: RunHead) -> None:
    url = f"/runs/{paid.code}/attacks"
    said = words(owner.refused(f"{url}/tool_injection/", {"proposal": "x" * 70_000}))
    assert "may have up to 65,536 bytes" in said
    assert not Attack.objects.exists()
    assert owner.post(f"{url}/magic/").status_code == 404


def test_verify_names_the_damaged_event(owner: Visitor, paid: RunHead) -> None:
    row = Envelope.objects.get(run=paid.id, n=4)
    changed = bytes(row.bytes).replace(b'"kind":"result"', b'"kind":"resulT"')
    change = f"UPDATE pipeline_envelope SET bytes = %s {PLACE}"
    sql((change, (changed, row.workspace_id.hex, row.seq)))
    page = owner.post(f"/runs/{paid.code}/audit/verify/").content.decode()
    said = words(page)
    assert "DETECTED" in said
    assert "The first damaged event is #5" in said
    assert "<mark>" in page
    assert len(re.findall(r"\b[0-9a-f]{64}\b", re.sub(r"</?mark>", "", page))) > paid.length
    after = by_code(paid.code)
    assert (after.quarantined, after.head) == (True, "0" * 64)
    assert "QUARANTINED" in page_of(owner, paid)
    assert "do not match the stored hash" in owner.read(f"/runs/{paid.code}/events/5/")


def test_a_damaged_value_reads_as_damaged_and_breaks_no_page(owner: Visitor, paid: RunHead) -> None:
    change = "UPDATE pipeline_secret SET ciphertext = zeroblob(60) WHERE run_id = %s AND slot = %s"
    sql((change, (paid.id.replace("-", ""), "seller")))
    for page in (f"/runs/{paid.code}/", f"/privacy/{paid.code}/"):
        assert "the stored bytes were changed" in owner.read(page)


def test_a_hostile_text_is_text_where_a_part_of_it_is_marked() -> None:
    assert mark_part("a<i>b", "<i>") == "a<mark>&lt;i&gt;</mark>b"
    assert mark_part("<i>", "") == "&lt;i&gt;"
    assert mark_difference("<b>", "<i>") == "&lt;<mark>b</mark>&gt;"


@pytest.mark.parametrize("shape", ["wide", "tall"])
def test_every_move_of_the_table_has_an_arrow_and_no_other(shape: str) -> None:
    assert set(ROUTES[shape]) == pairs("run") | pairs("agent")
