"""The page that checks files in the browser: real bundles, and every kind of bad input."""

import base64
import json
import random
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Page, expect

from nanovm_core.core.envelope import canonical_hash
from tests.browser import visitor
from tests.browser.conftest import Complaints
from tests.browser.look import looks_well
from tests.browser.proof.test_verdicts import VERDICTS
from tests.core.proof import bundles as kit

EVENTS, EVENTS_AT_ONCE = 10_000, 60
# How many events are checked before the page gets its turn, at most; and the long tasks (ms).
TURNS = """async key => {
  const { verify } = await import("/static/js/verify/verify.js");
  const long = [], channel = new MessageChannel();
  new PerformanceObserver(all => long.push(...all.getEntries().map(it => it.duration)))
    .observe({ type: "longtask" });
  let [here, most, going] = [0, 0, true];
  channel.port1.onmessage = () => { here = 0; if (going) channel.port2.postMessage(0); };
  channel.port2.postMessage(0);
  let last = 0;
  const progress = count => { here += count - last; last = count; most = Math.max(most, here); };
  const [file] = document.getElementById("files").files;
  const { word } = await verify(file, { keys: [key], progress });
  going = false;
  return { word, most, long };
}"""


@pytest.fixture(scope="module")
def taken(browser: Any, base_url: str) -> Iterator[dict[str, bytes]]:
    """What a visitor took along of a run that paid: bundle, log, export, receipt and key."""
    context = browser.new_context(base_url=base_url)
    page = context.new_page()
    code = visitor.paid(page)
    get = context.request.get
    visitor.until(page, lambda: bool(get(f"/runs/{code}/receipt.json").ok))
    page.goto("/audit/")
    log = re.search(r"/audit/[0-9a-f]+/", page.content())
    key = re.search(r"--key &#x27;([^&]+)&#x27;|--key '([^']+)'", get(f"/runs/{code}/").text())
    assert log
    assert key
    yield {
        "bundle.zip": get(f"/runs/{code}/bundle.zip").body(),
        "log.zip": get(f"{log[0]}bundle.zip").body(),
        "log.ndjson": visitor.downloaded(page, "text=Log as NDJSON").read_bytes(),
        "receipt.json": get(f"/runs/{code}/receipt.json").body(),
        "key": (key[1] or key[2]).encode(),
        "code": code.encode(),
        "address": get(f"/runs/{code}/receipt.json?check=1").url.encode(),
    }
    context.close()


def choose(page: Page, *files: FilePayload | Path, key: bytes = b"") -> None:
    """Choose files, once the keys are typed in."""
    page.fill("#keys", key.decode())
    given: Any = list(files)
    page.set_input_files("#files", given)


def of(taken: dict[str, bytes], name: str) -> FilePayload:
    return visitor.upload(name, taken[name], "application/octet-stream")


def says(page: Page, text: str | re.Pattern[str]) -> None:
    expect(page.locator("#headline")).to_contain_text(text)


def test_what_a_visitor_took_along_is_verified_without_the_server(
    page: Page, taken: dict[str, bytes], complaints: Complaints
) -> None:
    page.goto("/verify/")
    visitor.cut_off(page)
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url))
    for name in ("bundle.zip", "log.zip", "log.ndjson", "receipt.json"):
        choose(page, of(taken, name), key=taken["key"])
        says(page, "Verified under your own key.")
        expect(page.locator("#progress")).to_contain_text(name)
    choose(page, of(taken, "bundle.zip"))
    says(page, "Not verified against your own key (UNPINNED).")
    expect(page.locator("#open")).to_contain_text("who made it: anyone can make such a file")
    choose(page, of(taken, "receipt.json"), of(taken, "log.zip"), key=taken["key"])
    says(page, re.compile(r"Your receipt's event #\d+ is in this log, unchanged\."))
    page.click("#break")
    expect(page.locator("#broken")).to_contain_text(re.compile(r"was flipped .* Seen\."))
    assert asked == []
    page.context.set_offline(False)
    looks_well(page)


def test_the_export_of_the_log_is_what_the_command_line_verifies(
    page: Page, taken: dict[str, bytes], tmp_path: Path
) -> None:
    program, export = tmp_path / "verify.py", tmp_path / "log.ndjson"
    program.write_bytes(page.context.request.get("/verify.py").body())
    export.write_bytes(taken["log.ndjson"])
    words = [sys.executable, "-I", str(program), str(export), "--key", taken["key"].decode()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=visitor.END_MS / 1000)
    assert (done.returncode, done.stdout.split()[0]) == (0, "PASS"), done
    *lines, last = map(json.loads, taken["log.ndjson"].splitlines())
    assert [each["seq"] for each in lines] == list(range(last["count"]))
    assert last["head"] == canonical_hash(taken["log.ndjson"].splitlines()[-2])


def test_a_receipt_in_the_address_is_checked_without_asking(
    page: Page, taken: dict[str, bytes]
) -> None:
    page.goto("/verify/")
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url))
    made = taken["address"].decode().partition("#")[2]
    assert made.startswith("r=")
    page.evaluate("to => { location.hash = to }", made)
    says(page, "Intact. Not verified against your own key (UNPINNED).")
    for cut, said in ((made[:403], "Neither a bundle"), (made[:402], "was cut off")):
        page.evaluate("to => { location.hash = to }", cut)
        says(page, said)
    assert asked == []


def test_300_flipped_bytes_of_300_are_seen(page: Page, taken: dict[str, bytes]) -> None:
    page.goto("/verify/")
    roll, key = random.Random(2026), taken["key"].decode()  # noqa: S311
    for name in ("bundle.zip", "log.zip"):
        sent, data = [], base64.b64encode(taken[name]).decode()
        with zipfile.ZipFile(BytesIO(taken[name])) as archive:
            sizes = {each.filename: each.file_size for each in archive.infolist()}
        places = [(part, at) for part, size in sizes.items() for at in range(size)]
        for part, at in roll.sample(places, 150):
            flip = {"name": part, "at": at, "bit": roll.randrange(8)}
            sent.append([data, [key], None, flip])
        found = page.evaluate(VERDICTS, sent)
        assert sum(each["code"] in (1, 2) for each in found) == 150
        (whole,) = page.evaluate(VERDICTS, [[data, [key], None, None]])
        assert whole["code"] == 0


CANCEL = """async (check) => {
  check.click();
  const cancel = document.getElementById("cancel");
  while (cancel.hidden) await new Promise(requestAnimationFrame);
  cancel.click();
}"""


def large() -> bytes:
    log = kit.whole_log(0)
    for number in range(EVENTS // 4):
        kit.begin(log, kit.run_id(number))
        log.add(kit.run_id(number), "terminal", outcome="completed")
    return kit.packed(kit.log_members(log))


def test_10000_events_are_verified_while_the_page_goes_on(page: Page) -> None:
    page.goto("/verify/")
    choose(page, visitor.upload("large.zip", large()), key=kit.LOG_KEY.vkey.encode())
    says(page, "Verified under your own key.")
    found = page.evaluate(TURNS, kit.LOG_KEY.vkey)
    assert (found["word"], found["most"] <= EVENTS_AT_ONCE) == ("PASS", True), found
    page.locator("text=/^Check$/").evaluate(CANCEL)  # a fast machine is done before two clicks
    expect(page.locator("#progress")).to_have_text("Cancelled.")
    expect(page.locator("#verdict")).to_be_hidden()


@pytest.mark.soak  # a busy machine makes any task long
def test_10000_events_are_verified_without_a_long_task(page: Page) -> None:
    page.goto("/verify/")
    choose(page, visitor.upload("large.zip", large()), key=kit.LOG_KEY.vkey.encode())
    says(page, "Verified under your own key.")
    tried = [page.evaluate(TURNS, kit.LOG_KEY.vkey)["long"] for _ in range(5)]
    assert [] in tried


def bad(taken: dict[str, bytes], tmp_path: Path) -> dict[str, tuple[Any, str]]:
    """Files that are not what is asked for, and what the page says of each."""
    huge = tmp_path / "huge.zip"
    with huge.open("wb") as file:
        file.truncate(2 * 2**30)
    log = kit.whole_log()
    bomb = kit.packed({**kit.log_members(log), "envelopes.ndjson": bytes(2**22)})
    raw = {
        "text.txt": (b"An invoice of Nordlicht Papier", "Choose a bundle (.zip)"),
        "cut.zip": (taken["log.zip"][:-40], "the file was cut off or changed. Download it again."),
        "cut.ndjson": (taken["log.ndjson"][:-40], "a file that was cut off is not verifiable"),
        "bomb.zip": (bomb, "nvelopes.ndjson unpacks to more than a bundle holds"),
        "foreign.zip": (kit.packed(kit.log_members(log)), "Signed by another installation"),
        "photos.zip": (kit.packed({"x.png": b"PNG"}), "zip without manifest.json is no bundle"),
    }
    files: dict[str, tuple[Any, str]] = {
        name: (visitor.upload(name, data), said) for name, (data, said) in raw.items()
    }
    return {**files, "huge.zip": (huge, "2,048 MB: a browser checks up to 256 MB.")}


def test_bad_files_are_named_with_what_to_do(
    page: Page, taken: dict[str, bytes], tmp_path: Path
) -> None:
    visitor.begin(page, hold=True)
    page.goto("/verify/")
    for file, said in bad(taken, tmp_path).values():
        choose(page, file)
        says(page, said)
    choose(page, of(taken, "bundle.zip"))  # of another workspace here, whose key is the same
    says(page, "Intact.")
    expect(page.locator("#headline")).not_to_contain_text("another installation")
    choose(page, of(taken, "bundle.zip"), key=b"not-a-key")
    says(page, "ot-a-key is no key for this")


def test_without_ed25519_or_https_nothing_passes(
    page: Page, taken: dict[str, bytes], arrive: Callable[..., Page]
) -> None:
    page.add_init_script(
        "const real = crypto.subtle.importKey; SubtleCrypto.prototype.importKey = function (...all)"
        "{ return all[2] === 'Ed25519' ? Promise.reject(new DOMException('no', "
        "'NotSupportedError')) : real.apply(this, all); }"
    )
    page.goto("/verify/")
    choose(page, of(taken, "bundle.zip"), key=taken["key"])
    says(page, "not everything is proved (UNPROVEN)")
    expect(page.locator("#stages tr", has_text="Signed checkpoint")).to_contain_text(
        "This browser has no Ed25519"
    )
    plain = arrive()
    plain.add_init_script("Object.defineProperty(crypto, 'subtle', { value: undefined })")
    plain.goto("/verify/")
    expect(plain.locator("#insecure")).to_contain_text("use the command line")
    expect(plain.locator("#check")).to_be_hidden()


def test_the_offline_file_verifies_from_the_disk(
    page: Page, taken: dict[str, bytes], tmp_path: Path, complaints: Complaints
) -> None:
    complaints.expect("^foreign request: file://")
    file = tmp_path / "offline.html"
    file.write_bytes(page.context.request.get("/verify/offline.html").body())
    page.context.set_offline(True)
    page.goto(file.as_uri())
    choose(page, of(taken, "bundle.zip"), key=taken["key"])
    says(page, "Verified under your own key.")


def test_without_javascript_the_command_line_is_offered(arrive: Callable[..., Page]) -> None:
    plain = arrive(java_script_enabled=False)
    plain.goto("/verify/")
    expect(plain.locator("#insecure")).to_contain_text("needs JavaScript")
    expect(plain.locator("#check")).to_be_hidden()
    plain.click("text=Command line")
    expect(plain.locator("pre:visible")).to_contain_text("python3 -I verify.py FILE --key")
