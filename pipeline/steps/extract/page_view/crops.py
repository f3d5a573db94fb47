"""Pictures of the places on a page that a decision rests on, for the person who decides."""

import base64
import io
from typing import Final

from pipeline.steps.extract.invoice import Crop
from pipeline.steps.extract.page_view.pdfium import Box, Sheet

CROPS_MAX: Final = 6  # of one document
_AROUND: Final = (170.0, 14.0, 40.0, 14.0)  # points left, above, right and below: with its label
_BYTES_MAX: Final = 24_000
_TEXT_CHARS_MAX: Final = 200


def crop(sheet: Sheet, page: int, box: Box, name: str, text: str) -> Crop:
    """A place with what its text layer says there; the picture is as the page shows it."""
    left, top, right, bottom = _AROUND
    part = Box(
        left=max(0.0, min(box.left - left, sheet.width - 1)),
        top=max(0.0, min(box.top - top, sheet.height - 1)),
        right=min(sheet.width, max(box.right + right, 1)),
        bottom=min(sheet.height, max(box.bottom + bottom, 1)),
    )
    png, scale = b"", 2.0
    while not png or (len(png) > _BYTES_MAX and scale > 0.2):
        buffer = io.BytesIO()
        sheet.drawn(part, scale).save(buffer, "PNG", optimize=True)
        png, scale = buffer.getvalue(), scale / 1.5
    encoded = base64.b64encode(png).decode()
    return Crop(name=name, text=text[:_TEXT_CHARS_MAX], page=page, png=encoded)
