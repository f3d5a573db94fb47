"""The Markdown files of docs/ as pages of the site."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from html import escape, unescape
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.urls import Resolver404, resolve
from django.utils.html import strip_tags
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt

from pipeline.steps.reasons import REASONS, RULES

FOLDER = settings.BASE_DIR / "docs"
COMMENT = re.compile(r"^<!--.*-->$", re.M)  # marks a place for tests, and is no text


class Document(NamedTuple):
    title: str
    html: SafeString


def document(slug: str) -> Document | None:
    """The page of the file of that name, or None. A changed file is rendered again.

    HTML in a file is shown as text. A link to another file of docs/ leads to its page; one to a
    file without a page is that file's path. Rules, and addresses of pages that
    every visitor has, are links.
    """
    file = FOLDER / f"{slug}.md"
    return _rendered(file, file.stat().st_mtime_ns) if file.is_file() else None


def groups() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """The pages in the groups of docs/index.md: name, title, and what its line there says."""
    for part in _source(FOLDER / "index.md").split("\n## ")[1:]:
        lines = re.findall(r"^- \[.*\]\(([\w-]+)\.md\): (.*)$", part, re.M)
        if lines:
            yield _first(part), [(slug, _title(slug), re.sub(r"[*`]", "", t)) for slug, t in lines]


@lru_cache(maxsize=64)
def _rendered(file: Path, _changed_ns: int) -> Document:
    source = _source(file)
    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(source)
    for pattern, put in SHAPES.items():  # text is escaped, so each tag is the renderer's own
        html = re.sub(pattern, put, html, flags=re.S)
    return Document(_first(source), SafeString(html))


def _source(file: Path) -> str:
    return COMMENT.sub("", file.read_text("utf-8"))


def _title(slug: str) -> str:
    return _first(_source(FOLDER / f"{slug}.md"))


def _first(text: str) -> str:
    """The heading that a document or a part of one begins with."""
    return text.partition("\n")[0].removeprefix("# ")


def _heading(found: re.Match[str]) -> str:
    anchor = re.sub(r"[^\w\- ]", "", unescape(strip_tags(found[2]))).lower().replace(" ", "-")
    return f'<{found[1]} id="{anchor}">{found[2]}</{found[1]}>'


def _link(found: re.Match[str]) -> str:
    name, mark, anchor = unescape(found[1]).partition("#")
    if not name or ":" in name:
        return found[0]
    file = (FOLDER / name).resolve()
    if file.parent == FOLDER and file.suffix == ".md":
        return f'<a href="/docs/{file.stem}/{escape(mark + anchor)}">{found[2]}</a>'
    path = file.relative_to(settings.BASE_DIR).as_posix()
    code = f"<code>{escape(path)}</code>"
    return code if strip_tags(found[2]) in path else f"{found[2]} ({code})"


def _code(found: re.Match[str]) -> str:
    text = unescape(found[1])
    shown = f'<code class="sentence">{found[1]}</code>' if " " in text else found[0]
    try:
        view, _, given = resolve(text.partition("#")[0])
    except Resolver404:
        return shown
    is_everyones = view.__module__.startswith("dashboard.") and not given
    return f'<a href="{found[1]}">{shown}</a>' if is_everyones else shown


def _rule(found: re.Match[str]) -> str:
    code = found[0]
    is_rule = code in RULES or code in REASONS
    return f'<a href="/docs/rules/{code}/">{code}</a>' if is_rule else code


SHAPES: Mapping[str, str | Callable[[re.Match[str]], str]] = {
    "<pre><code[^>]*>": '<pre tabindex="0">',
    "</code></pre>": "</pre>",
    "<table>": '<div class="scroll" tabindex="0"><table>',
    "</table>": "</table></div>",
    ' style="[^"]*"': "",  # of an aligned cell: the site allows no inline style
    r"<(h\d)>(.*?)</h\d>": _heading,
    '<a href="([^"]*)">(.*?)</a>': _link,
    "<code>(.*?)</code>": _code,
    r"<(?:pre|a) .*?</(?:pre|a)>|<[^>]*>|\b[A-Z]{3}-\d{3}\b": _rule,  # not in tags, blocks, links
}
