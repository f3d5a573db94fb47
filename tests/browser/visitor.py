"""What a visitor does on the pages, and what the pages then show."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import FilePayload, Locator, Page, Response, expect

from pipeline.application import STEPS

ROOT = Path(__file__).resolve().parent.parent.parent
PLAIN = ROOT / "samples" / "plain.pdf"
INJECTORS = ("tool_injection", "double_exec", "corrupt_hash", "skip_step", "reorder_steps")
RUN_URL = re.compile(r"/runs/([A-Z0-9]{4}-\d{2})/$")
SUPPLIER_URL = re.compile(r"/suppliers/[0-9a-f-]{36}/$")
HERE = "#rail-short summary strong"  # "3 of 7 · vault", also where it is not drawn
END_MS = 60_000  # what a run may take on a busy machine


def begin(
    page: Page,
    *,
    sample: str = "plain",
    document: Path | FilePayload | None = None,
    pace: str = "real",
    model: str = "faithful",
    proposal: str = "",
    card: str = "pm_card_visa",
    hold: bool = False,
) -> str:
    """Fill in the form for a new run and send it; returns the code of the run."""
    page.goto("/runs/new/")
    page.check(f'[name=sample][value="{sample}"]')
    if document is not None:
        page.set_input_files("#document", document)
    page.check(f'[name=pace][value="{pace}"]')
    page.check(f'[name=model][value="{model}"]')
    page.select_option("#payment_method", card)
    page.set_checked("[name=hold]", hold)
    if proposal:
        page.fill("#proposal", proposal)
    page.click("text=Start this run")
    page.wait_for_url(RUN_URL)
    return code_of(page)


def code_of(page: Page) -> str:
    """The code of the run whose page this is."""
    found = RUN_URL.search(page.url)
    assert found is not None
    return found[1]


def upload(name: str, content: bytes, kind: str = "application/pdf") -> FilePayload:
    """A file for the upload field that lies on no disk."""
    return FilePayload(name=name, mimeType=kind, buffer=content)


def be_live(page: Page) -> None:
    """Wait until the page hears of news by its socket."""
    expect(page.locator("#link")).to_have_attribute("data-link", "live", timeout=END_MS)


def cut_off(page: Page) -> None:
    """Take the network away, and wait until the page itself knows it."""
    page.context.set_offline(True)
    page.evaluate(
        "() => new Promise(done => navigator.onLine"
        " ? addEventListener('offline', done, { once: true }) : done())"
    )


def shows(page: Page, state: str) -> None:
    """Wait until the page, of itself, shows the run in this state."""
    expect(page.locator("#run-state")).to_contain_text(state, timeout=END_MS)


def until(page: Page, holds: Callable[[], bool]) -> None:
    """Wait until something holds that the page does not show; each look is a round trip to it."""
    deadline = time.monotonic() + END_MS / 1000
    while not holds():
        assert time.monotonic() < deadline, f"nothing came of it at {page.url}"
        expect(page.locator("body")).to_be_attached()


def reload_until(page: Page, state: str) -> None:
    """Reload the page, as people without JavaScript do, until it shows this state."""
    deadline = time.monotonic() + END_MS / 1000
    while state not in page.locator("#run-state").inner_text():
        assert time.monotonic() < deadline, f"not {state}: {page.locator('#title').inner_text()}"
        page.reload()


def pause_before(page: Page, step: str) -> None:
    """Press "Next step" until the run, which goes step by step, is paused before this one."""
    shows(page, "PAUSED")
    for coming in range(number(page) + 1, STEPS.index(step) + 2):
        page.click("#act-step")
        at_step(page, coming)
        shows(page, "PAUSED")


def number(page: Page) -> int:
    """The number of the step that the run is at."""
    text = page.locator(HERE).text_content() or ""
    return int(text.split(maxsplit=1)[0])


def at_step(page: Page, wanted: int) -> None:
    """Wait until the page, of itself, shows the run at this step."""
    expect(page.locator(HERE)).to_contain_text(f"{wanted} of {len(STEPS)}", timeout=END_MS)


def paused_before(page: Page, step: str) -> str:
    """Begin a run of the plain invoice and hold it before a step; returns its code."""
    if step == "propose":  # one press of the arena, instead of a form and three presses
        page.goto("/attack/")
        page.click("#arena-start")
        page.wait_for_url("**/attack/?run=*")
        page.goto(f"/runs/{page.url.partition('run=')[2]}/")
        code = code_of(page)
    else:
        code = begin(page, pace="step")
    be_live(page)
    pause_before(page, step)
    return code


def paid(page: Page, sample: str = "plain") -> str:
    """Begin a run, wait until it is paid; returns its code."""
    code = begin(page, sample=sample)
    be_live(page)
    shows(page, "SUCCESS")
    return code


def fire(page: Page, injector: str, **params: str) -> None:
    """Fire an injector from the console of the run's page, and wait until it is judged."""
    score = page.locator("#score")
    fired = int((score.text_content() or "").split(maxsplit=1)[0])
    if params:
        page.locator(f"#settings-{injector}").evaluate("it => { it.open = true }")
    for name, text in params.items():
        page.fill(f"#{injector}-{name}", text)
    page.click(f"#fire-{injector}")
    expect(score).to_contain_text(f"{fired + 1} fired", timeout=END_MS)


def verdict(page: Page, word: str | re.Pattern[str]) -> Locator:
    """The latest verdict, in the row of its attack, once it bears this word."""
    card = page.locator("#verdict")
    expect(card).to_have_attribute("data-verdict", word, timeout=END_MS)
    return card


def compared(page: Page) -> Locator:
    """The latest verdict with the other agents' losses: from then on it stays as it is."""
    expect(page.locator("#verdict .sides > div")).to_have_count(3, timeout=END_MS)
    return page.locator("#verdict")


def lanes_fit(page: Page, width: int, height: int) -> bool:
    """Whether all of the lanes is seen without scrolling, on a screen of this size."""
    page.set_viewport_size({"width": width, "height": height})
    box = page.locator("#lanes .drawing").bounding_box()
    return box is not None and box["y"] >= 0 and box["y"] + box["height"] <= height


def tab(page: Page, name: str) -> None:
    """Open one of the tabs under the lanes."""
    page.click(f".tabs [data-tab={name}]")


def seqs(page: Page) -> list[int]:
    """The numbers of the envelopes in the page's list, in their order."""
    rows = page.locator("#rows tr[data-seq]")
    return [int(text) for text in rows.evaluate_all("rows => rows.map(row => row.dataset.seq)")]


def head(page: Page) -> str:
    """The head of the run's chain as its page shows it, in full."""
    return (
        page.locator("#tail .hash [title], #tail .hash[title]").first.get_attribute("title") or ""
    )


def downloaded(page: Page, link: str) -> Path:
    """The file that a link gives."""
    with page.expect_download() as got:
        page.click(link)
    return got.value.path()


def linked(page: Page, reader: Page, code: str) -> None:
    """Make a link to a run and its personal data, and let another browser open it."""
    page.goto(f"/links/?grants=view&of={code}")
    page.check("[name=personal]")
    page.click("text=Make the link")
    reader.goto(page.locator("#its-link").inner_text())
    reader.click("#offered button")
    reader.wait_for_url(f"**/runs/{code}/")


def get(page: Page, path: str) -> tuple[int, str]:
    """Status and text of an address, fetched with this visitor's cookies."""
    answer = page.context.request.get(path)
    return answer.status, answer.text()


def open_page(page: Page, path: str) -> Response:
    """Open an address in this tab."""
    response = page.goto(path)
    assert response is not None
    return response


def verify(page: Page, code: str) -> str:
    """Let the audit list recompute the chain; returns the heading of its answer."""
    page.goto(f"/runs/{code}/audit/")
    page.click("text=/^Verify all/")
    page.wait_for_url("**/audit/verify/?key=")
    return page.locator("h1").inner_text()


def erase(page: Page, code: str) -> None:
    """Go through the form of the erasure, as a person who means it."""
    page.goto(f"/runs/{code}/?tab=invoice")
    page.click("#facts a[href^='/privacy/']")
    confirmed(page, code)
    page.wait_for_url(f"**/privacy/certificates/{code}/")


def approve(page: Page, *rules: str) -> None:
    """Approve what these rules hold, one after the other."""
    for rule in rules:
        expect(page.locator("#outcome")).to_contain_text(f"rule {rule}", timeout=END_MS)
        page.click("#act-approve")


def register(page: Page, name: str) -> str:
    """Register a supplier by the form; returns the address of its page."""
    page.goto("/suppliers/")
    page.fill("#name", name)
    page.fill("#tax_id", "NL 004495445 B01")
    page.fill("#iban", "NL91 ABNA 0417 1643 00")
    page.fill("#email", "administratie@windtechniek.example")
    page.click("text=Add supplier")
    page.wait_for_url(SUPPLIER_URL)
    return urlsplit(page.url).path


def erase_with_runs(page: Page, path: str) -> None:
    """Go through the form of the erasure of a supplier and its runs, and wait its ten seconds."""
    page.goto(f"/privacy{path}")
    confirmed(page, page.locator(".crumbs [aria-current]").inner_text())
    page.wait_for_url(f"**/privacy{path}certificate/", timeout=END_MS)


def confirmed(page: Page, code: str) -> None:
    """Fill in an erasure's form, as a person who means it, and send it."""
    page.select_option("#reason", "art17-1-a")
    page.fill("#confirm", f"ERASE {code}")
    page.click("form button.danger")


def erase_supplier(page: Page, path: str) -> None:
    """Go through the form of a supplier's erasure."""
    page.goto(path)
    code = page.locator(".crumbs [aria-current]").inner_text()
    page.click("text=Erase this supplier")
    confirmed(page, code)
    page.wait_for_url(f"**{path}certificate/")
