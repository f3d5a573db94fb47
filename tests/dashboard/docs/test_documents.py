"""The documents as pages: whole, with links that lead somewhere, and without HTML of their own."""

import os
import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import urljoin

import pytest
from django.conf import settings

from dashboard.docs import documents
from tests.dashboard.visitor import Visitor
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
    assert sorted([*listed, "index"]) == NAMES
    visitor.read("/docs/nothing/", 404)


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
