"""Which business document some XML is, and the invoice that it codes."""

from typing import Final

from reader.embedded_xml.cii import is_cii, read_cii
from reader.embedded_xml.structured import Coded
from reader.embedded_xml.ubl import is_ubl, read_ubl
from reader.embedded_xml.xmltree import Node
from reader.reasons import ExtractionError

_OTHER_DOCUMENTS: Final = (
    "Order",
    "OrderResponse",
    "DespatchAdvice",
    "Reminder",
    "Quotation",
    "Statement",
    "RemittanceAdvice",
    "Catalogue",
    "CrossIndustryOrder",
    "CrossIndustryQuotation",
    "CrossIndustryDespatchAdvice",
    "SCRDMCCBDACIOMessageStructure",
    "SCRDMCCBDACIDAMessageStructure",
)


def coded_in(root: Node) -> Coded | None:
    """The invoice that the XML codes; None where it is no business document.

    Raises:
        ExtractionError: DOC-015, it is another one.
    """
    if is_cii(root):
        return read_cii(root)
    if is_ubl(root):
        return read_ubl(root)
    if root.name in _OTHER_DOCUMENTS:
        raise ExtractionError("DOC-015")
    return None
