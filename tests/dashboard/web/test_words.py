"""The words of the pages: plain product English, and a sentence for every code."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from uuid import UUID

import pytest

from dashboard.templatetags import counted
from dashboard.templatetags.show import refusal, values
from dashboard.verdicts import cards
from engine.evidence import signer
from engine.queries.runs import RunHead
from pipeline import reports
from pipeline.application import current
from pipeline.models import Supplier
from pipeline.steps.reasons import REASONS, RULES
from tests.core.kit.builders import ROOT
from tests.dashboard.visitor import Visitor, by_code

pytestmark = pytest.mark.usefixtures("own_folder", "db")

TERMS = re.compile(r"\b(sealed|envelopes?|genesis|seq|UNPINNED)\b", re.IGNORECASE)
CODE = re.compile(r'"([A-Z]{3}-[0-9]{3})"')
PARENTHESES = re.compile(r"\([^()]*\)")
RAW = frozenset({"script", "style", "pre", "code", "kbd", "textarea"})
VOID = frozenset({"input", "meta", "link", "br", "hr", "img", "path", "rect", "circle", "polygon"})
SAID = ("aria-label", "title", "placeholder", "data-label", "data-head")


class Visible(HTMLParser):
    """What a page shows or reads aloud, without scripts, raw views and what is typed into it."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, bool]] = []  # each element, and whether it is raw
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        raw = tag in RAW or "data-raw" in given or given.get("id") == "raw"
        if not self._is_raw:
            self.found += [given[name] or "" for name in SAID if name in given]
        if tag not in VOID:
            self.open.append((tag, raw))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not self._is_raw:
            self.found.append(data)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass  # the parts of an icon

    @property
    def _is_raw(self) -> bool:
        return any(raw for _, raw in self.open)


def visible(page: str) -> str:
    parser = Visible()
    parser.feed(page)
    return " ".join(" ".join(parser.found).split())


def faults(page: str) -> list[str]:
    """The terms of a page that no plain word goes before."""
    bare = PARENTHESES.sub(" ", visible(page))
    return [bare[max(0, m.start() - 30) : m.end()] for m in TERMS.finditer(bare)]


@pytest.fixture(scope="module")
def attacked(owner: Visitor) -> RunHead:
    """A run that was attacked by all five, outside a test's transaction: one uses threads."""
    run = owner.make(hold=True)
    for name in sorted(cards.INJECTORS, key=cards.LAST.__eq__):
        owner.fire(run, name, redeliveries="2")
    return by_code(run.code)


def test_the_pages_of_runs_are_in_plain_words(
    owner: Visitor, paid: RunHead, held: RunHead, attacked: RunHead
) -> None:
    failed, erased = owner.make("broken"), owner.make(hold=True)
    owner.erase(erased)

    signer.checkpoint(UUID(paid.workspace))
    attacks = re.findall(r'href="(/runs/[^"]*/attacks/[0-9a-f-]{36}/)"', owner.read(at(attacked)))
    paths = [f"/privacy/certificates/{erased.code}/", *dict.fromkeys(attacks)]
    assert len(paths) == 6
    for run in (paid, held, failed, attacked, by_code(erased.code)):
        paths += [at(run), f"{at(run)}steps/{run.number}/", f"/privacy/{run.code}/"]
        paths += [f"{at(run)}events/{number}/" for number in range(1, run.length + 1, 4)]
    paths += [f"{at(paid)}{end}" for end in ("calls/", "audit/", "steps/4/", "steps/6/")]
    pages = {path: owner.read(path) for path in paths}
    for run in (paid, attacked):
        verified = owner.read(f"{at(run)}audit/verify/")
        pages[f"{at(run)}report/"] = owner.read(f"{at(run)}report/")
        assert "your own key (UNPINNED)" in visible(verified) or run is attacked
        pages[f"{at(run)}audit/verify/"] = verified
    assert {path: found for path, page in pages.items() if (found := faults(page))} == {}


def test_the_other_pages_are_in_plain_words(owner: Visitor, paid: RunHead) -> None:
    shot = owner.post("/attack/gallery/widened_grant/")
    assert shot.status_code == 303
    gallery = owner.read("/attack/gallery/")
    shots = re.findall(r'href="(/attack/gallery/widened_grant/[0-9a-f-]+/)"', gallery)
    added = owner.post("/suppliers/", {"name": "Zephyr Instruments B.V."})["Location"]
    gone = owner.post("/suppliers/", {"name": "Somebody else"})["Location"]
    code = Supplier.objects.get(id=gone.split("/")[2]).code
    owner.post(f"{gone}erase/", {"reason": "art17-1-a", "confirm": f"ERASE {code}"})
    register = ("/suppliers/", added, f"{added}erase/", gone, f"{gone}certificate/")
    tour = [f"/tour/{number}/?run={paid.code}" for number in (2, 5, 8)]
    start = ("/", "/runs/", "/runs/new/", "/attack/", "/attack/gallery/", "/audit/", "/tour/1/")
    agents = ("/agents/", "/agents/payer/", "/docs/owasp/", "/verify/", "/ops/", "/reconcile/")
    pages = {path: owner.read(path) for path in (*start, *agents, shots[0], *register, *tour)}
    pages["404"] = owner.read("/runs/ZZZZ-00/", 404)
    pages["405"] = owner.read(f"{at(paid)}start/", 405)
    assert {path: found for path, page in pages.items() if (found := faults(page))} == {}


def test_every_code_of_the_product_has_its_sentence() -> None:
    folders = ("nanovm_core", "pipeline", "sabotage", "dashboard")
    files = [path for name in folders for path in (ROOT / name).rglob("*.py")]
    found = {code for path in files for code in CODE.findall(path.read_text("utf-8"))}
    assert found <= {*RULES, *REASONS}
    assert len(found) > 110
    for code in {*RULES, *REASONS}:
        sentence = refusal(code)
        assert re.fullmatch(r"[A-Z].*\. .*[.!]", sentence), code
        assert not TERMS.search(PARENTHESES.sub("", sentence)), code


def test_each_value_of_a_text_is_kept_whole_and_the_text_stays_text() -> None:
    shown = values("<b>Pay</b> (EUR 1,284.50) to DE89 3704 0044 by rule over-limit, in 2 days")
    whole = ["(EUR 1,284.50)", "DE89 3704 0044", "over-limit,"]
    assert re.findall(r'<span class="whole">(.*?)</span>', shown) == whole
    assert shown.startswith("&lt;b&gt;Pay&lt;/b&gt; ")


def test_a_refusal_is_said_from_its_code_and_not_from_the_stored_text() -> None:
    stored = "No pending effect with a sealed intent has this key."
    assert refusal("FSM-001", stored).startswith("No pending call has this key. ")
    assert stored not in refusal("FSM-001", stored)
    assert refusal("POL-020", "Over the limit.").endswith("Policy: “Over the limit.”")
    assert refusal("", "Paused.") == "Paused."
    assert refusal("NO-001") == "The request was refused."


def at(run: RunHead) -> str:
    return f"/runs/{run.code}/"


NUMBER = re.compile(
    r"\d[\d.,]*|\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|twenty"
    r"|thirty|forty|fifty|sixty|dozen|hundred|thousand)\b",
    re.IGNORECASE,
)
# Names, and what no code decides: laws, standards, an order of things, a guess at a duration.
NO_COUNT = re.compile(
    r"Error \d{3}\b|Art\. 1[57](\([0-9a-z]\))*|SHA-256|0x00|UTF-8|base64|7F3K-02|\b[123] · "
    r"|two files|\b90[ -]seconds?\b|\b[25] minutes\b|about ten seconds|less than 1 ms"
    r"|\b0[\0 ]+lost\b|\b" + r"\b|\b".join(sorted({*RULES, *REASONS}))
)
TAG = re.compile(r"{[{%#].*?[}%#]}", re.DOTALL)


def test_no_template_types_a_number_that_the_code_knows() -> None:
    for page in (ROOT / "templates").rglob("*.html"):
        text = NO_COUNT.sub("", visible(TAG.sub("\0", page.read_text())))
        assert (page.name, [each.group() for each in NUMBER.finditer(text)]) == (page.name, [])


def test_what_a_duplicate_gets_is_said_by_the_rule_that_decides(
    owner: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = current()
    monkeypatch.setitem(reports.BY, "colour", "the same colour")
    known = f"It is known by one of: {'; '.join(reports.BY.values())}. Any"
    assert f"again waits for a person. {known}" in visible(owner.read("/docs/threat-model/"))
    rules = [replace(r, outcome="deny") if r.id == "duplicate" else r for r in program.rules]
    monkeypatch.setattr(
        "dashboard.docs.views.current", lambda: replace(program, rules=tuple(rules))
    )
    assert f"again is refused. {known}" in visible(owner.read("/docs/threat-model/"))


def test_pages_count_what_there_is(owner: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, path in (("gallery", "/attack/"), ("injectors", "/attack/gallery/"), ("steps", "/")):
        monkeypatch.setitem(counted.COUNTS, name, lambda: 1_234)
        assert re.search(r"1,234 (other attacks|steps)", visible(owner.read(path))), path
