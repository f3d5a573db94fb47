"""Why a document cannot be read: stable codes, and a sentence for people."""

from typing import Final

REASONS: Final[dict[str, str]] = {
    "DOC-001": "The file is empty, so there is nothing to read. Upload the invoice again.",
    "DOC-002": "The file is larger than 10 MB, the most that is read. Send a smaller file.",
    "DOC-003": "The file is neither a PDF nor an XML invoice: its beginning does not say so. Save"
    " the invoice as a PDF and upload that.",
    "DOC-004": "The PDF is protected with a password or a scheme that cannot be opened. Save it"
    " without protection and upload it again.",
    "DOC-005": "The PDF has no pages, so there is no invoice to read. Check the file and upload it"
    " again.",
    "DOC-006": "The PDF has more than 50 pages, the most that is read. Upload the invoice without"
    " its attachments.",
    "DOC-007": "Reading the file took longer than 10 seconds and was stopped. Export the invoice to"
    " a simpler PDF and upload that.",
    "DOC-008": "Reading the file needed more memory than the 576 MB allowed and was stopped. Export"
    " the invoice to a simpler PDF and upload that.",
    "DOC-009": "The PDF is damaged and cannot be read. Ask the sender for the file again.",
    "DOC-010": "The pages of the PDF are blank, so there is no invoice to read. Ask the sender for"
    " the file again.",
    "DOC-011": "The invoice data names no amount to pay. Ask the sender for a correct file.",
    "DOC-012": "The invoice data names no currency that is known. Ask the sender for a correct"
    " file.",
    "DOC-013": "The invoice data cannot be read, and no page is trusted in its place. Ask the"
    " sender for a correct file.",
    "DOC-014": "The invoice data declares a document type, which invoices never do and attacks"
    " use. Ask the sender for a correct file.",
    "DOC-015": "The data is not an invoice (of EN 16931, as CII or UBL). Upload the invoice"
    " itself.",
    "DOC-016": "The amount to pay does not fit its currency: too many decimals, or too large. Ask"
    " the sender for a correct invoice.",
    "DOC-017": "The PDF is damaged and can be read only by repairing it, so what you see may not"
    " be what was read. Ask the sender for the file again.",
    "DOC-018": "The document has more than 2,000 pieces of text, pictures and drawings, the most"
    " that a person is asked to accept. Upload the invoice without its attachments.",
}


class ExtractionError(Exception):
    """A document that cannot be read, for a known and permanent reason.

    ``text`` says what happened, why, and what to do next. Neither it nor
    ``code`` ever holds anything that stands in the document.
    """

    def __init__(self, code: str) -> None:
        self.code = code
        self.text = REASONS[code]
        super().__init__(f"{code}: {self.text}")

    def __reduce__(self) -> tuple[type["ExtractionError"], tuple[str]]:
        return (type(self), (self.code,))


class ReaderLostError(Exception):
    """The process that reads documents could not work: that says nothing of the document.

    Its text says how it ended, and holds nothing that stands in the document.
    """
