"""The red team's box: each preset is answered, a check keeps nothing, a proposal is a real one."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from dashboard.arena import box
from dashboard.arena import target as arena_target
from dashboard.arena.box import BoxError, Typed
from engine.models import Envelope, Run, Workspace
from engine.queries import dry_run
from engine.queries.runs import RunHead
from sabotage.kit.code_locations import where
from sabotage.models import Attack
from tests.dashboard.visitor import TRANSFER, Visitor, by_code, words

pytestmark = pytest.mark.usefixtures("db")

PRESETS = tuple(box.presets().values())
LINE = re.compile(r'id="arena-line"[^>]*data-word="(\w*)">(.*?)</p>', re.S)
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def target(owner: Visitor) -> Iterator[RunHead]:
    """The run that one press makes."""
    with owner.pressed("/attack/start/") as there:
        yield by_code(there.partition("run=")[2])


def check(visitor: Client, run: RunHead | None, text: str, mode: str = "text") -> tuple[str, str]:
    """The word and the sentence under the box after *Check only*."""
    form = {"proposal": text, "mode": mode, **({"run": run.code} if run else {})}
    response = visitor.post("/attack/check/", form)
    assert response.status_code == 200
    found = LINE.search(response.content.decode())
    assert found
    return found[1], words(found[2])


def propose(visitor: Client, run: RunHead, text: str, mode: str = "text", **more: Any) -> Attack:
    """*Propose it*; the attack that it leads to."""
    form = {"proposal": text, "mode": mode, "run": run.code, **more}
    response = visitor.post("/attack/propose/", form)
    assert response.status_code == 303, words(response.content.decode())
    found = re.fullmatch(rf"/runs/{run.code}/attacks/([0-9a-f-]+)/", response["Location"])
    assert found
    assert visitor.get(response["Location"]).status_code == 200
    return Attack.objects.get(pk=found[1])


def everything() -> dict[str, list[str]]:
    """Every row of every table."""
    rows = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {table}")
            rows[table] = sorted(map(repr, cursor.fetchall()))
    return rows


def filled(name: str, run: RunHead) -> Typed:
    return box.filled(box.presets()[name], run)


def test_a_visitor_without_a_run_is_offered_one(arrive: Callable[[], Visitor]) -> None:
    visitor = arrive()
    page = visitor.read("/attack/")
    assert "You have no run yet" in words(page)
    assert 'action="/attack/start/"' in page
    assert "stripe.create_payment_intent" in page
    word, said = check(visitor, None, TRANSFER)
    assert (word, "CAP-001" in said) == ("BLOCKED", True)
    assert check(visitor, None, '{"tool": "notify.send_email", "args": {}}')[0] == "READ"
    said = words(visitor.refused("/attack/propose/", {"proposal": TRANSFER, "mode": "text"}))
    assert "no run to attack yet" in said


def test_one_press_leads_a_run_to_its_model_not_past_it(owner: Visitor, target: RunHead) -> None:
    assert (target.label, target.step) == ("PAUSED", "propose")
    rows = Envelope.objects.filter(run=target.id).values_list("bytes", flat=True)
    assert not any(b"model.propose" in bytes(data) for data in rows)
    page = owner.read("/attack/")
    assert target.code in page
    assert "&quot;amount_minor&quot;: 128450" in page  # the faithful call of this run


# The others are checked below, and the gate's rules in tests/core/gate.
@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.soak)])
def test_each_preset_is_judged_and_the_check_foretells_it(
    owner: Visitor, target: RunHead, every: int
) -> None:
    for number, preset in enumerate(PRESETS[::every]):
        if number and number % 3 == 1:  # the faithful call first; then three refusals a run
            target = arena_target.new_run(Workspace.objects.get())
        typed = box.filled(preset, target)
        assert "$" not in typed.text
        page = owner.read(f"/attack/?run={target.code}&preset={preset.id}")
        assert "<img" not in page
        foretold = dry_run.judged(target.id, typed.raw())
        word, said = check(owner, target, typed.text, typed.mode)
        attack = propose(owner, target, typed.text, typed.mode)
        assert (attack.verdict, attack.rule) == (foretold.word, foretold.rule), preset.id
        assert word == attack.verdict, preset.id
        if attack.verdict == "BLOCKED":
            assert attack.where == where(foretold.rule, text=foretold.text), preset.id
        assert attack.rule in said
        assert attack.where in said
        assert attack.integrity == "HELD"
        assert attack.verdict == ("ACCEPTED" if preset.id == "faithful" else "BLOCKED")


EXPECTED = {
    "ungranted": "CAP-001",
    "look-alike": "CAP-019",
    "other-tool": "CAP-006",
    "cent-more": "POL-010",
    "negative": "CAP-006",
    "string-amount": "CAP-005",
    "other-currency": "POL-010",
    "huge": "CAP-012",
    "duplicate-key": "CAP-011",
    "same-key": "CAP-003",
    "forged-actor": "CAP-010",
    "extra-field": "CAP-003",
    "reorder": "CAP-010",
    "deep": "CAP-016",
    "invalid-utf8": "CAP-018",
    "too-large": "CAP-017",
}


def test_the_presets_reach_the_rules_that_they_are_about(target: RunHead) -> None:
    found = {each.id: dry_run.judged(target.id, filled(each.id, target).raw()) for each in PRESETS}
    assert {name: found[name].rule for name in EXPECTED} == EXPECTED
    levels = {level.number: level.rules for level in box.levels() if level.rules}
    wrong = [each.id for each in PRESETS if found[each.id].rule not in levels.get(each.level, ())]
    assert [name for name in wrong if box.presets()[name].level in levels] == []


def test_a_check_keeps_nothing(owner: Visitor, target: RunHead) -> None:
    before = everything()
    for preset in PRESETS[::4]:
        typed = box.filled(preset, target)
        check(owner, target, typed.text, typed.mode)
    assert everything() == before


def test_an_accepted_call_leaves_the_run_waiting_to_be_paid_once(
    owner: Visitor, target: RunHead
) -> None:
    attack = propose(owner, target, filled("faithful", target).text)
    assert (attack.verdict, attack.integrity) == ("ACCEPTED", "HELD")
    assert by_code(target.code).step == "authorize"
    again = propose(owner, target, filled("faithful", target).text)
    assert (again.verdict, again.rule) == ("BLOCKED", "FSM-004")


def test_three_refused_answers_end_the_run_and_the_rest_is_ignored(
    owner: Visitor, target: RunHead
) -> None:
    for left in ("3 more refused answers end", "2 more refused answers end",
                 "1 more refused answer ends"):  # fmt: skip
        assert left in words(owner.read("/attack/"))
        assert propose(owner, target, TRANSFER).verdict == "BLOCKED"
    assert by_code(target.code).label == "FAILED"
    assert check(owner, target, TRANSFER)[0] == "IGNORED"
    assert propose(owner, target, TRANSFER).verdict == "IGNORED"


def test_a_double_click_proposes_once(owner: Visitor, target: RunHead) -> None:
    key = {"Idempotency-Key": "c" * 32}
    assert propose(owner, target, TRANSFER, **key) == propose(owner, target, TRANSFER, **key)
    assert Attack.objects.count() == 1


def test_invalid_json_is_told_with_line_and_column(owner: Visitor, target: RunHead) -> None:
    word, said = check(owner, target, '{\n  "tool": "x",\n  "args": {]\n}')
    assert (word, "line 3, column 12" in said, "CAP-010" in said) == ("BLOCKED", True, True)
    word, said = check(owner, target, '{\r\n  "tool": "ä%FF"}', "percent")
    assert (word, "line 2, column 13" in said, "CAP-018" in said) == ("BLOCKED", True, True)


def test_the_line_alone_is_what_a_script_gets(owner: Visitor, target: RunHead) -> None:
    form = {"proposal": TRANSFER, "mode": "text", "run": target.code}
    response = owner.post("/attack/check/", form, headers={"X-Arena-Line": "1"})
    said = response.content.decode()
    assert "<form" not in said
    assert re.search(r"Would be BLOCKED by CAP-001 at nanovm_core/\S+\.py:\d+ \w+", words(said))


def test_a_run_that_needs_nobody_is_attacked_as_it_stands(owner: Visitor, ready: RunHead) -> None:
    before = dict[str, object](Run.objects.values().get(id=ready.id))
    word, said = check(owner, ready, filled("faithful", ready).text)
    attack = propose(owner, ready, filled("faithful", ready).text)
    assert (word, attack.verdict) == ("BLOCKED", "BLOCKED")
    assert attack.rule in said
    after = dict[str, object](Run.objects.values().get(id=ready.id))
    changed = {name for name in after if after[name] != before[name]}
    assert changed <= {"head", "length", "snapshot"}  # the attack is sealed
    assert by_code(ready.code).label == "READY"


@pytest.mark.usefixtures("target")
def test_a_held_payment_is_foretold(owner: Visitor) -> None:
    run = arena_target.led(owner.make("over_limit", pace="step").id)
    word, said = check(owner, run, filled("faithful", run).text)
    assert (word, "POL-020" in said) == ("HELD", True)


@pytest.mark.parametrize(
    ("text", "mode", "raw"),
    [
        ("a\r\nb", "text", b"a\nb"),
        ("%FFa%25\n", "percent", b"\xffa%\n"),
        ("7b 7D\nff", "hex", b"{}\xff"),
        ("€", "text", "€".encode()),
        ("", "text", b""),
    ],
)
def test_what_was_typed_becomes_these_bytes(text: str, mode: str, raw: bytes) -> None:
    assert Typed(text=text, mode=mode).raw() == raw


@pytest.mark.parametrize(
    ("text", "mode"),
    [("%", "percent"), ("%G1", "percent"), ("abc", "hex"), ("xx", "hex"), ("x" * 65_537, "text")],
)
def test_what_is_no_bytes_is_said_and_not_sent(
    owner: Visitor, target: RunHead, text: str, mode: str
) -> None:
    with pytest.raises(BoxError):
        Typed(text=text, mode=mode).raw()
    assert check(owner, target, text, mode)[0] == "UNREADABLE"
    form = {"proposal": text, "mode": mode, "run": target.code}
    assert "Nothing was proposed" in words(owner.refused("/attack/propose/", form))
    assert not Attack.objects.exists()


def test_what_was_typed_stays_text_on_every_page(owner: Visitor, target: RunHead) -> None:
    for text in (HOSTILE, f'{{"tool": "{HOSTILE}", "args": {{}}}}', "</textarea>" + HOSTILE, "\0"):
        form = {"proposal": text, "mode": "text", "run": target.code}
        assert "<img" not in owner.post("/attack/check/", form).content.decode()
    attack = propose(owner, target, f'{{"tool": "{HOSTILE}", "args": {{}}}}')
    for page in (f"/runs/{target.code}/", f"/runs/{target.code}/attacks/{attack.pk}/"):
        assert "<img" not in owner.read(page)
    assert owner.get("/attack/", {"preset": HOSTILE}).status_code == 200
