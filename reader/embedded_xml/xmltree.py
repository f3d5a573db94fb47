"""Embedded XML, parsed without trust, and read by local names."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lxml import etree

from reader.reader import clean
from reader.reasons import ExtractionError

XML_BYTES_MAX: Final = 5 * 1024 * 1024  # the largest sample is 30 KB
_VALUE_CHARS_MAX: Final = 2_000
_DECLARATION: Final = re.compile(r"\A\s*<\?xml[^>]*\?>")
_BOMS: Final = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class Node:
    """One element; paths are local names, ``a|b`` for either, namespaces do not matter."""

    element: etree._Element

    @property
    def name(self) -> str:
        return str(etree.QName(self.element).localname)

    @property
    def namespace(self) -> str:
        return str(etree.QName(self.element).namespace or "")

    @property
    def text(self) -> str | None:
        """The element's own text, tidied: lines kept, other white space single; None if empty."""
        raw = clean((self.element.text or "")[:_VALUE_CHARS_MAX])
        lines = (" ".join(line.split()) for line in raw.splitlines())
        return "\n".join(line for line in lines if line) or None

    def attribute(self, name: str) -> str | None:
        value = self.element.get(name)
        return None if value is None else clean(value).strip()

    def all(self, path: str) -> Iterator["Node"]:
        """Every element at the path below this one."""
        head, _, rest = path.partition("/")
        wanted = head.split("|")
        for child in self.element.iterchildren(tag=etree.Element):
            node = Node(child)
            if node.name in wanted:
                yield from node.all(rest) if rest else iter((node,))

    def values(self, path: str) -> list[str]:
        """The non-empty texts at the path."""
        return [node.text for node in self.all(path) if node.text]

    def value(self, path: str) -> str | None:
        """The first non-empty text at the path."""
        return next(iter(self.values(path)), None)


def looks_like_xml(name: str, data: bytes) -> bool:
    """Whether an embedded file claims to be XML, by its name or its beginning."""
    head = data[:64]
    if head.startswith(_BOMS[1:]):
        head = head.replace(b"\0", b"")
    head = head.lstrip(b"\xef\xbb\xbf\xff\xfe").lstrip()
    return name.lower().endswith(".xml") or head.startswith(b"<")


def parse(data: bytes) -> Node:
    """The root element, with entities, DTDs and the network off.

    Raises:
        ExtractionError: DOC-013 not well-formed or too large, DOC-014 a DTD.
    """
    if len(data) > XML_BYTES_MAX:
        raise ExtractionError("DOC-013")
    try:
        root = etree.fromstring(data, _parser())
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        root = _reparsed(data, error)
    if root is None:
        raise ExtractionError("DOC-013")
    info = root.getroottree().docinfo
    if info.internalDTD is not None or info.externalDTD is not None or info.doctype:
        raise ExtractionError("DOC-014")
    return Node(root)


def _reparsed(data: bytes, error: Exception) -> etree._Element:
    """A second try for files whose byte-order mark and declared encoding disagree."""
    if b"<!DOCTYPE" in data:
        raise ExtractionError("DOC-014") from error
    wide = data.startswith(_BOMS[1:])
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
        return etree.fromstring(_DECLARATION.sub("", text), _parser())
    except (etree.XMLSyntaxError, ValueError) as again:
        raise ExtractionError("DOC-013") from again


def _parser() -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        dtd_validation=False,
        no_network=True,
        huge_tree=False,
        recover=False,
        remove_comments=True,
        remove_pis=True,
    )
