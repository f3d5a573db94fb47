"""What kind of document some bytes say that they are: a PDF, or XML."""

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from typing import Final

WIDE_BOMS: Final = (BOM_UTF16_LE, BOM_UTF16_BE)
_HEADER_BYTES: Final = 1024  # readers accept rubbish before a PDF's header up to here
_XML_BYTES: Final = 64


def is_pdf(data: bytes) -> bool:
    """Whether the header of a PDF stands where its readers look for one."""
    return b"%PDF-" in data[:_HEADER_BYTES]


def begins_as_xml(data: bytes) -> bool:
    """Whether the first sign is that of an element or a declaration."""
    head = data[:_XML_BYTES]
    if head.startswith(WIDE_BOMS):
        head = head.replace(b"\0", b"")
    return head.lstrip(BOM_UTF8 + BOM_UTF16_LE).lstrip().startswith(b"<")
