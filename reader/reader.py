"""pypdf, held at arm's length: a document's structure, annotations and embedded files."""

import hashlib
import io
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Any, Final

from pypdf import PdfReader
from pypdf.generic import ArrayObject, DictionaryObject, StreamObject

from reader.reasons import ExtractionError

_FILES_MAX: Final = 64  # embedded files looked at
_TREE_DEPTH_MAX: Final = 16  # levels of a name tree
_ANNOTATIONS_MAX: Final = 500  # of one page
_ANNOTATION_CHARS_MAX: Final = 2_000
_ANNOTATED: Final = {
    "/FreeText": ("/Contents",),
    "/Stamp": ("/Name", "/Subj", "/Contents"),
    "/Widget": ("/V",),
}
_LOOK_DEPTH_MAX: Final = 40  # objects within what an annotation looks like
_UNSEEN_KEYS: Final = frozenset({"/P", "/Kids", "/Popup", "/Rect", "/A", "/AA", "/StructParent"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedFile:
    """A file inside the PDF; ``data`` is None when it cannot be decoded."""

    name: str
    data: bytes | None


def open_pdf(data: bytes, *, pages_max: int) -> PdfReader:
    """A reader for a document that can be opened and has an acceptable number of pages.

    Raises:
        ExtractionError: DOC-004 encrypted, DOC-005 no pages, DOC-006 too many, DOC-009 broken.
    """
    try:
        reader = PdfReader(io.BytesIO(data), strict=False)
        encrypted = reader.is_encrypted
    except Exception as error:  # anything at all on hostile bytes; MemoryError included
        raise _broken(error) from error
    if encrypted:
        _decrypt(reader)
    try:
        count = len(reader.pages)
    except Exception as error:
        raise _broken(error) from error
    if count == 0:
        raise ExtractionError("DOC-005")
    if count > pages_max:
        raise ExtractionError("DOC-006")
    return reader


def check_sound(data: bytes) -> None:
    """Accept a document whose structure can be read as it stands, without any repair.

    Two programs repair a damaged file in two ways: what one pays is not what the other shows.

    Raises:
        ExtractionError: DOC-017.
    """
    try:
        reader = PdfReader(io.BytesIO(data), strict=True)
        if reader.is_encrypted:
            reader.decrypt("")
        len(reader.pages)
    except Exception as error:
        raise ExtractionError("DOC-017") from error


def _decrypt(reader: PdfReader) -> None:
    """Many documents are encrypted with an empty user password, which anyone may open."""
    try:
        opened = bool(reader.decrypt(""))
    except Exception as error:
        raise ExtractionError("DOC-004") from error
    if not opened:
        raise ExtractionError("DOC-004")


def _broken(error: Exception) -> ExtractionError:
    return ExtractionError("DOC-008" if isinstance(error, MemoryError) else "DOC-009")


def annotated(page: Any) -> list[str]:
    """The words of notes, stamps and filled-in fields, which no page content holds."""
    return [
        clean(value.lstrip("/#"))[:_ANNOTATION_CHARS_MAX]
        for note in _notes(page)
        for key in _ANNOTATED.get(str(_resolved(note.get("/Subtype"))), ())
        if isinstance(value := _resolved(note.get(key)), str)
    ]


def drawn_notes(page: Any) -> list[str]:
    """All that each note, stamp and field of a page has, and its size; a plain link is free.

    Raises:
        ExtractionError: DOC-009, more than is looked at.
    """
    looks: list[str] = []
    for note in _notes(page):
        if note.get("/Subtype") != "/Link" or "/AP" in note:
            left, bottom, right, top = map(float, _resolved(note.get("/Rect")) or (0, 0, 0, 0))
            digest = hashlib.sha256(f"{right - left:.0f} {top - bottom:.0f}".encode())
            _add_to(digest, note, 0, _UNSEEN_KEYS)
            looks.append(digest.hexdigest())
    return looks


def _notes(page: Any) -> list[DictionaryObject]:
    """The annotations of a page, where they are not more than are looked at."""
    listed = _resolved(page.get("/Annots"))
    notes = [*map(_resolved, listed)] if isinstance(listed, ArrayObject) else []
    if len(notes) > _ANNOTATIONS_MAX:
        raise ExtractionError("DOC-009")
    return [note for note in notes if isinstance(note, DictionaryObject)]


def _add_to(digest: Any, value: Any, depth: int, unseen: Set[str] = frozenset()) -> None:
    """Add an object, with what it refers to, to a hash; but not these keys of a field."""
    value = _resolved(value)
    if depth > _LOOK_DEPTH_MAX:
        raise ExtractionError("DOC-009")
    if isinstance(value, StreamObject):
        digest.update(bytes(value.get_data()))
    if isinstance(value, DictionaryObject):
        for key in sorted(set(value) - unseen):
            part = _resolved(value.get(key))
            if not unseen or key != "/V" or type(part) is not DictionaryObject:  # a signature
                digest.update(str(key).encode())
                _add_to(digest, part, depth + 1, unseen if key == "/Parent" else frozenset())
    elif isinstance(value, ArrayObject):
        for each in value:
            _add_to(digest, each, depth + 1)
    else:
        digest.update(repr(value).encode())


def clean(text: str) -> str:
    """The text without what no encoder takes or no reader sees: lone surrogates, controls."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(char for char in text if char in "\n\t" or char.isprintable() or char.isspace())


def embedded_files(reader: PdfReader) -> list[EmbeddedFile]:
    """Every file in the name tree or associated with the document, once under each name."""
    found: list[EmbeddedFile] = []
    seen: set[bytes] = set()
    for spec in _file_specs(reader):
        if len(found) >= _FILES_MAX:
            raise ExtractionError("DOC-018")
        item = _embedded(spec)
        mark = hashlib.sha256(f"{item.name}\0".encode() + (item.data or b"")).digest()
        if mark not in seen:
            seen.add(mark)
            found.append(item)
    return found


def _file_specs(reader: PdfReader) -> Iterator[DictionaryObject]:
    root = _resolved(reader.trailer.get("/Root"))
    if not isinstance(root, DictionaryObject):
        return
    names = _resolved(root.get("/Names"))
    if isinstance(names, DictionaryObject):
        yield from _leaves(_resolved(names.get("/EmbeddedFiles")), 0)
    holders = [root, *(_resolved(page) for page in reader.pages)]
    for holder in holders:
        listed = _resolved(holder.get("/AF"))
        for item in listed if isinstance(listed, ArrayObject) else [listed]:
            spec = _resolved(item)
            if isinstance(spec, DictionaryObject):
                yield spec


def _leaves(node: Any, depth: int) -> Iterator[DictionaryObject]:
    if not isinstance(node, DictionaryObject) or depth > _TREE_DEPTH_MAX:
        return
    names = _resolved(node.get("/Names"))
    if isinstance(names, ArrayObject):
        for item in names[1 : 2 * _FILES_MAX : 2]:
            spec = _resolved(item)
            if isinstance(spec, DictionaryObject):
                yield spec
    kids = _resolved(node.get("/Kids"))
    if isinstance(kids, ArrayObject):
        for kid in kids[:_FILES_MAX]:
            yield from _leaves(_resolved(kid), depth + 1)


def _embedded(spec: DictionaryObject) -> EmbeddedFile:
    name = str(_resolved(spec.get("/UF")) or _resolved(spec.get("/F")) or "")
    try:
        kinds = _resolved(spec.get("/EF"))
        stream = _resolved(kinds.get("/UF")) or _resolved(kinds.get("/F"))
        if not isinstance(stream, StreamObject):
            return EmbeddedFile(name=name, data=None)
        return EmbeddedFile(name=name, data=bytes(stream.get_data()))
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - it cannot be decoded; the caller decides what that means
        return EmbeddedFile(name=name, data=None)


def _resolved(value: Any) -> Any:
    return value.get_object() if hasattr(value, "get_object") else value
