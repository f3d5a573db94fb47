"""Adds a switched-off layer (optional content group) to a finished document."""

import io
from typing import cast

from pypdf import PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, TextStringObject

from samples.generated.hiding import LAYER
from samples.generated.hybrid import written


def switched_off(pdf: bytes) -> bytes:
    """The document whose marked contents belong to a layer that is off."""
    writer = PdfWriter(clone_from=io.BytesIO(pdf))
    group = DictionaryObject(
        {NameObject("/Type"): NameObject("/OCG"), NameObject("/Name"): TextStringObject("Notes")}
    )
    held = writer._add_object(group)
    for page in writer.pages:
        resources = cast(DictionaryObject, page["/Resources"].get_object())
        resources[NameObject("/Properties")] = DictionaryObject({NameObject(f"/{LAYER}"): held})
    defaults = DictionaryObject(
        {NameObject("/BaseState"): NameObject("/ON"), NameObject("/OFF"): ArrayObject([held])}
    )
    writer._root_object[NameObject("/OCProperties")] = DictionaryObject(
        {NameObject("/OCGs"): ArrayObject([held]), NameObject("/D"): defaults}
    )
    return written(writer)
