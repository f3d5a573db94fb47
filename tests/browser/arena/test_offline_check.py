"""*Check only* without a server: the page finds the fault itself, and says what it cannot say."""

import json

import pytest
from playwright.sync_api import Page, expect

from dashboard.arena import box as arena
from engine.queries import dry_run
from tests.browser import visitor
from tests.browser.arena.test_arena import LINE, says
from tests.browser.conftest import Complaints

NO_NETWORK = "ERR_INTERNET_DISCONNECTED|WebSocket connection|ERR_FAILED"
SOUND = "The syntax is correct. The verdict needs the server."
CHECKED = """async texts => {
  const { checked } = await import("/static/js/syntax.js");
  return texts.map(text => checked(text, "text"));
}"""
# Where the server's own reader stops, the page stops too.
BROKEN = (
    *("", " ", "{", "[", "x", '{"a" 1}', '{"a": }', '{"a": 1 "b": 2}', '{\n  "a": 1\n  "b": 2\n}'),
    *("[1 2]", "[1}", '{"a": 1]', "{1: 2}", "{'a': 1}", "01", "-", "+1", "1.", "1e", "tru", "nul"),
    *('"abc', '{"a', '{"ü": 1, 💥}', '["💥💥" 1]', "{} {}", "[] x", "1 2", "\n\n  ]"),
    *("//", "{/**/}", "\u00a01", "[1] \u2028"),
)
# Here the server's reader names another place of the same fault, or none.
ELSEWHERE = {
    "[1,]": (1, 4),
    '{"a": 1,}': (1, 9),
    '"a\nb"': (1, 3),
    '"\\x"': (1, 2),
    '"\\u12g4"': (1, 2),
    "\ufeff{}": (1, 1),
    "NaN": (1, 1),
    "[-Infinity]": (1, 2),
    "[" * 50_000: (1, 50_001),
}
TWICE = {
    '{"a": 1, "a": 2}': (1, 10),
    '{"a": 1,\n "\\u0061": 2}': (2, 2),
    '[{"a": {"b": 1}, "b": {"b": 1, "b": 1}}]': (1, 32),
    '{"__proto__": 1, "__proto__": 2}': (1, 18),
}
FINE = (
    *("{}", "[]", " [ ] ", "0", "-0", "1e400", "-1.5E-7", '"\\ud800"', '"\\u2028 \u2028 ü 💥"'),
    *('{"a": {"a": [{"a": 1}, {"a": 1}]}}', "[" * 50_000 + "]" * 50_000, '{"": 1, " ": 2}'),
)
# Texts that begin as JSON and are changed at random places, held against the browser's reader.
AGREES = """async ([seeds, rounds]) => {
  const { faultOf } = await import("/static/js/syntax.js");
  let state = 1;
  const roll = most => { state = state * 48271 % 2147483647; return state % most; };
  const letters = '{}[],:"\\\\ \\n\\t0123456789-+.eEtrufalsn/b';
  const reads = text => { try { JSON.parse(text); return true; } catch { return false; } };
  const wrong = [], counts = {true: 0, false: 0};
  for (let round = 0; round < rounds; round += 1) {
    let text = seeds[roll(seeds.length)];
    for (let change = roll(4); change > 0; change -= 1) {
      const at = roll(text.length + 1);
      text = text.slice(0, at) + letters[roll(letters.length)].repeat(roll(2))
        + text.slice(at + roll(2));
    }
    const fault = faultOf(text);
    const sound = fault === null || fault.kind === "twice";
    counts[sound] += 1;
    if (sound !== reads(text)) wrong.push(text);
    if (fault && !(fault.at >= 0 && fault.at <= text.length)) wrong.push(text);
  }
  return [wrong, counts.true, counts.false];
}"""


@pytest.fixture
def box(page: Page) -> Page:
    """The arena's page, loaded before anything is cut off."""
    page.goto("/attack/")
    return page


def test_it_stops_where_the_server_stops(box: Page) -> None:
    found = box.evaluate(CHECKED, list(BROKEN))
    here = {text: (one["line"], one["column"]) for text, one in zip(BROKEN, found, strict=True)}
    there = {text: arena.place(text.encode(), dry_run.parse(text.encode()).text) for text in BROKEN}
    assert here == there


def test_it_finds_other_faults_and_keys_that_stand_twice(box: Page) -> None:
    for kind, cases in (("syntax", ELSEWHERE), ("twice", TWICE)):
        found = box.evaluate(CHECKED, list(cases))
        assert {one["kind"] for one in found} == {kind}
        assert [(one["line"], one["column"]) for one in found] == list(cases.values())
    assert box.evaluate(CHECKED, list(FINE)) == [None] * len(FINE)
    both = box.evaluate(CHECKED, ['{"a": 1, "a": 2'])[0]  # a broken syntax is told first
    assert (both["kind"], both["column"]) == ("syntax", 16)


def test_it_agrees_with_the_browsers_own_reader(box: Page) -> None:
    seeds = [*FINE[:10], json.dumps({"tool": "x", "args": {"a": [1.5, -2e3, None, True, "\\"]}})]
    wrong, sound, broken = box.evaluate(AGREES, [seeds, 20_000])
    assert wrong == []
    assert min(sound, broken) > 2_000


def test_offline_the_box_is_checked_here_and_later_by_the_gate(
    box: Page, complaints: Complaints
) -> None:
    complaints.expect(NO_NETWORK)
    posted: list[str] = []
    box.on("request", lambda sent: posted.append(sent.url) if sent.method == "POST" else None)
    visitor.cut_off(box)
    box.fill("#arena-proposal", '{\n  "tool": "wire_transfer"\n  "args": {}\n}')
    said = says(box, "FAULT")
    assert "Not JSON: line 3, column 3: a comma or a } is missing." in said
    assert "Checked in the browser; the server cannot be reached" in said
    box.fill("#arena-proposal", '{"tool": "x", "tool": "y", "args": {}}')
    expect(box.locator(LINE)).to_contain_text('A key twice: line 1, column 15: the key "tool"')
    box.fill("#arena-proposal", '{"tool": "wire_transfer", "args": {}}')
    assert says(box, "SOUND") == SOUND
    box.check("[name=mode][value=hex]")
    expect(box.locator(LINE)).to_contain_text("Unreadable: line 1, column 1: this is no hex digit")
    box.fill("#arena-proposal", "7B 7")
    expect(box.locator(LINE)).to_contain_text("one is missing")
    box.check("[name=mode][value=percent]")
    box.fill("#arena-proposal", "%FF")
    expect(box.locator(LINE)).to_contain_text("these bytes are not UTF-8")
    box.fill("#arena-proposal", "{%22a%22: %5B1 2%5D}")
    expect(box.locator(LINE)).to_contain_text("line 1, column 10: a comma or a ] is missing")
    assert posted == []
    box.check("[name=mode][value=text]")
    box.fill("#arena-proposal", '{"tool": "wire_transfer", "args": {}}')
    assert says(box, "SOUND") == SOUND
    box.context.set_offline(False)
    assert "CAP-001" in says(box, "BLOCKED")


def test_check_only_is_pressed_by_the_keyboard_without_a_server(
    page: Page, complaints: Complaints
) -> None:
    complaints.expect(NO_NETWORK)
    visitor.begin(page, hold=True)
    visitor.be_live(page)
    visitor.cut_off(page)
    expect(page.locator("#link")).to_have_attribute("data-link", "offline")
    visitor.tab(page, "model")
    check = page.locator("#arena-check")
    expect(check).not_to_have_attribute("aria-disabled", "true")
    expect(page.locator("#arena-propose")).to_have_attribute("aria-disabled", "true")
    page.fill("#arena-proposal", "{")
    check.press("Enter")
    assert "line 1, column 2" in says(page, "FAULT")
    expect(check).to_be_focused()


def test_a_server_that_is_gone_is_noticed_too(box: Page, complaints: Complaints) -> None:
    complaints.expect("ERR_CONNECTION_REFUSED")
    box.route("**/attack/check/", lambda route: route.abort("connectionrefused"))
    box.fill("#arena-proposal", "[1,]")
    assert "line 1, column 4" in says(box, "FAULT")
    box.fill("#arena-proposal", "[1]")
    box.click("#arena-check")
    assert says(box, "SOUND") == SOUND
    assert box.url.endswith("/attack/")


def test_a_proposal_that_cannot_be_sent_is_not_lost(box: Page) -> None:
    visitor.cut_off(box)
    box.fill("#arena-proposal", "mine")
    box.click("#arena-propose")
    expect(box.locator(LINE)).to_contain_text("Not proposed: no connection to the server")
    assert box.input_value("#arena-proposal") == "mine"


def test_hostile_keys_stay_text(box: Page) -> None:
    visitor.cut_off(box)
    box.fill(
        "#arena-proposal", '{"<img src=x onerror=alert(1)>": 1, "<img src=x onerror=alert(1)>": 2}'
    )
    says(box, "FAULT")
    expect(box.locator("img, [onerror]")).to_have_count(0)
