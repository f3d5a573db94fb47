"""The documents as pages: whole, with links that lead somewhere, and without HTML of their own."""

import os
import re
from collections.abc import Iterator
from functools import cache
from html import escape, unescape
from pathlib import Path
from urllib.parse import urlencode, urljoin

import pytest
from django.conf import settings
from django.test import RequestFactory

from dashboard import urls
from dashboard.docs import addresses, documents
from pipeline.steps.reasons import REASONS, RULES
from tests.dashboard.visitor import Visitor, words
from tests.house.repository import ROOT, source_of

NAMES = sorted(file.stem for file in (ROOT / "docs").glob("*.md"))
OUTSIDE = {"https://genai.owasp.org/resource/owasp-top-10-for-agentic-applications-for-2026/"}
BLOCK = re.compile(r"^```.*?^```$|^ {4}.*?$", re.M | re.S)
HOSTILE = """# A <i>

<b onclick=x> [c](javascript:x) [the keys](../SECURITY.md#e) [f](own.md#g)

| CAP-001 |
| ---: |
| XXX-001 `/runs/new/` `/healthz` `1 "2"` |

```mermaid
CAP-001 <u>
```
"""
TAGS = {
    *("p", "table", "thead", "tbody", "tr", "th", "td", "code", 'code class="sentence"'),
    *('h1 id="a-i"', 'a href="/docs/own/#g"', 'a href="/docs/rules/CAP-001/"'),
    *('div class="scroll" tabindex="0"', 'a href="/runs/new/"', 'pre tabindex="0"'),
}


def faults(name: str, page: str, visitor: Visitor) -> Iterator[str]:
    """What the page of a document lacks, and its links that lead nowhere."""
    source = BLOCK.sub("", source_of(ROOT / "docs" / f"{name}.md"))
    article = page.partition("<article")[2].partition("</article>")[0]
    title = re.findall(r"<h1 id=\S+>(.*?)</h1>", article)
    if [unescape(each) for each in title] != [source.partition("\n")[0][2:]]:
        yield f"title {title}"
    if (shown := article.count("<tr>")) != len(re.findall(r"^\|(?! ---)", source, re.M)):
        yield f"{shown} rows"
    yield from re.findall(r"\]\(|&lt;!--|<a [^>]*>(?:(?!</a>).)*<a| style=", article)
    for href in {*re.findall(r'href="([^"]*)"', article)} - OUTSIDE:
        path, _, anchor = urljoin(f"/docs/{name}/", unescape(href)).partition("#")
        found = visitor.get(path)
        if found.status_code != 200 or f'id="{anchor or "main"}"' not in found.content.decode():
            yield href


def test_every_document_is_a_whole_page_whose_links_lead_somewhere(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visitor, "get", cache(visitor.get))
    pages = {name: visitor.read(f"/docs/{name}/") for name in NAMES}
    assert {name: gaps for name in NAMES if (gaps := [*faults(name, pages[name], visitor)])} == {}
    listed = re.findall(r'<li><a href="/docs/([\w-]+)/">', visitor.read("/docs/"))
    assert sorted([*listed, "index"]) == sorted([*NAMES, "addresses", "threat-model"])
    visitor.read("/docs/nothing/", 404)


def test_the_door_leads_in_the_order_in_which_one_reads(visitor: Visitor) -> None:
    door = visitor.read("/docs/")
    titles = [words(each) for each in re.findall(r"<h2[^>]*>(.*?)</h2>", door)]
    groups = ["Tutorial", "How-to pages", "Threat model", "Command line and addresses"]
    assert titles == ["Start in 5 minutes", *groups, "How it works", "Rules", "The four verdicts"]
    pages = ("tutorial", "operations", "threat-model", "addresses")
    for part, page in zip(groups, pages, strict=True):
        assert f'<a href="/docs/{page}/">' in door.partition(f">{part}<")[2].partition("<h2")[0]


@pytest.mark.parametrize(
    ("sought", "codes", "said"),
    [
        ("cap-001", {"CAP-001"}, "1 of {all} rules matches"),
        ("CAP001", {"CAP-001"}, "1 of {all} rules matches"),
        ("concurrent DUPLICATE  lease", {"FSM-008"}, "1 of {all} rules matches"),
        ("MODEL Tokens", {"BUD-004", "MDL-003"}, "2 of {all} rules match"),
        ("' OR 1=1 \u202e<i>", set(), "No rule matches"),
    ],
)
def test_a_rule_is_found_by_its_code_and_by_words(
    visitor: Visitor, sought: str, codes: set[str], said: str
) -> None:
    page = visitor.read(f"/docs/?{urlencode({'q': sought})}")
    count = len({*RULES, *REASONS})
    assert {*re.findall(r'href="/docs/rules/([A-Z]{3}-\d{3})/"', page)} == codes
    assert f"{said.format(all=count)} “<bdi>{escape(sought)}</bdi>”." in page
    searched = f"Searched the code, title, reason, next step and example of all {count} rules"
    assert (searched in page) == (not codes)


def test_every_address_says_the_methods_that_it_takes(visitor: Visitor) -> None:
    """Asked of each view itself: what it refuses names what it takes."""
    shown = {each.path: each for each in addresses.addresses()}
    assert len(shown) == len(urls.urlpatterns)
    for pattern in urls.urlpatterns:
        request = RequestFactory().options("/")
        allowed = pattern.callback(request)["Allow"]
        path = re.sub(r"<\w+:", "<", f"/{pattern.pattern}")
        assert shown[path].methods == allowed.replace("GET, HEAD", "GET"), path
    page = visitor.read("/docs/addresses/")
    assert page.count("<br>") == len(shown)
    opened = [each.path for each in shown.values() if each.is_link]
    assert [path for path in opened if visitor.get(path).status_code not in (200, 302)] == []
    assert "/theme/" not in opened


def test_a_document_brings_no_html_and_is_read_again_once_it_changed(
    visitor: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "FOLDER", tmp_path)
    monkeypatch.setattr(settings, "BASE_DIR", tmp_path.parent)
    file = tmp_path / "own.md"
    file.write_text(HOSTILE)
    article = visitor.read("/docs/own/").partition('prose">')[2].partition("</article>")[0]
    assert {*re.findall(r"<(\w[^>]*)>", article)} == TAGS
    assert "&lt;b onclick=x&gt; [c](javascript:x) the keys (<code>SECURITY.md</code>)" in article
    assert re.search("XXX-001 <a .*</a> <code>/healthz</code> <code", article)
    assert '<pre tabindex="0">CAP-001 &lt;u&gt;' in article
    file.write_text("# Changed\n")
    os.utime(file, ns=(0, 1))
    assert "Changed</h1>" in visitor.read("/docs/own/")
