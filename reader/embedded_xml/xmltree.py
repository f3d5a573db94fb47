"""Embedded XML, parsed without trust, and read by local names."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from lxml import etree

from reader.kinds import WIDE_BOMS, begins_as_xml
from reader.reader import clean
from reader.reasons import ExtractionError

XML_BYTES_MAX: Final = 5 * 1024 * 1024  # the largest sample is 30 KB
_VALUE_CHARS_MAX: Final = 20_000  # of one value; what a person accepts is the whole of it
_DECLARATION: Final = re.compile(r"\A\s*<\?xml[^>]*\?>")


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
        return _tidied(self.element.text)

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

    def strings(
        self, unread: Collection[str], above: tuple[str, ...] = ()
    ) -> Iterator[tuple[tuple[str, ...], str]]:
        """Each text and attribute of this element and of those below, in order.

        Each with the names that lead to it; an attribute's begins with "@". ``unread`` are the
        names of elements whose own text is left out.
        """
        path = (*above, self.name)
        for name, value in self.element.attrib.items():
            if said := _tidied(str(value)):
                yield (*path, f"@{etree.QName(name).localname}"), said
        if self.name not in unread and (said := self.text):
            yield path, said
        for child in self.element.iterchildren(tag=etree.Element):
            yield from Node(child).strings(unread, path)
            if said := _tidied(child.tail):
                yield (*path, "text"), said  # after an element, where no value ends


def _tidied(text: str | None) -> str | None:
    """A text with its lines kept and other white space single; None where nothing is left.

    Raises:
        ExtractionError: DOC-013, it is too long to be looked at.
    """
    if text and len(text) > _VALUE_CHARS_MAX:
        raise ExtractionError("DOC-013")
    lines = (" ".join(line.split()) for line in clean(text or "").splitlines())
    return "\n".join(line for line in lines if line) or None


def looks_like_xml(name: str, data: bytes) -> bool:
    """Whether an embedded file claims to be XML, by its name or its beginning."""
    return name.lower().endswith(".xml") or begins_as_xml(data)


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
    wide = data.startswith(WIDE_BOMS)
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
