"""What counts as seen on a page, and what a page that shows another thing than its text is."""

import base64
import io
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image
from reportlab.lib.colors import Color, HexColor, black, white
from reportlab.lib.utils import ImageReader

from reader import PAGES_MAX, Extraction, extract
from reader.page_view import page, recognise
from reader.page_view.crops import CROPS_MAX
from reader.page_view.lines import lines_of
from reader.page_view.page import viewed
from reader.page_view.pdfium import Box, Char, opened, sheets
from reader.reader import open_pdf
from samples.generated import hiding, remap
from samples.generated.pen import A4, MANNERS, Pen, Spot
from samples.generated.raster import rectangles, stamp_picture, word_picture
from tests.kit.pdf_builder import invoice_lines
from tests.kit.reading import forget, read_here

Hook = Callable[[Pen], None]
DUE = "EUR 1,000.00"
FORGED = "Amount due EUR 9,000.00"
LINES = [*invoice_lines()[:-1], "Widgets, ten pieces of the large kind"]


def spot(text: str, y: float = 500, size: float = 10, paper: Any = white) -> Spot:
    return Spot(
        page=1, x=60, y=y, width=150, size=size, bold=False, text=text, ink=black, paper=paper
    )


def paper(
    hook: Hook | None = None, *, amount: str | None = DUE, manner: str = "whole", **options: Any
) -> bytes:
    """An honest invoice of EUR 1,000.00, with whatever the hook adds to its page."""
    pen = Pen(options.pop("size", A4), "Helvetica", manner, at_page_end=hook, **options)
    for place, line in enumerate(LINES):
        pen.text(60, 780 - 18 * place, line)
    pen.text(60, 600, "Total due")
    if amount:
        pen.text(300, 600, amount, 10)
    return pen.done()


def shown(pdf: bytes) -> str:
    with viewed(pdf, open_pdf(pdf, pages_max=PAGES_MAX), lambda *_: None) as view:
        return "".join("".join(page.plain.split()) for page in view.shown)


def status(pdf: bytes) -> str:
    found = read_here(pdf).fields
    assert found.pay_status != "open" or found.total_due == "1000.00"
    return found.pay_status


def written(ink: Any, size: float = 10, x: float = 60, text: str = FORGED) -> Hook:
    return lambda pen: hiding.write(pen, Spot(**{**as_dict(spot(text)), "x": x}), ink, size)


def as_dict(of: Spot) -> dict[str, Any]:
    return {name: getattr(of, name) for name in of.__slots__}


def picture(text: str, x: float = 60, y: float = 500, size: float = 10) -> Hook:
    def hook(pen: Pen) -> None:
        word_picture(pen, x, y, text, size, black, white)

    return hook


@pytest.mark.parametrize("kind", sorted({*hiding.HIDES} - {"annotation", "form_field"}))
@pytest.mark.parametrize("manner", ["whole", pytest.param("form", marks=pytest.mark.reader)])
def test_hidden_text_is_not_seen_and_holds(kind: str, manner: str) -> None:
    def hook(pen: Pen) -> None:
        if manner == "form":
            pen.canvas.beginForm("hidden")
        hiding.HIDES[kind](pen, spot(f"{FORGED} {LINES[-2]}"), 0)  # with the account that is seen
        if manner == "form":
            pen.canvas.endForm()
            pen.canvas.doForm("hidden")

    if manner == "form" and kind in ("layer_off", "transparent"):
        return  # both are resources of the page
    pdf = paper(hook, margin=hiding.MARGIN if kind == "off_crop" else 0.0)
    pdf = hiding.switched_off(pdf) if kind == "layer_off" else pdf
    assert "9,000.00" not in shown(pdf)
    assert status(pdf) == "hidden_text"


def test_turned_texts_are_in_the_order_of_the_file_wherever_their_objects_are() -> None:
    box = Box(0, 0, 9, 9)
    sign = Char("", box, box, base=0.0, upright=False, made=False, owner=0)
    chars = [sign._replace(text=text, owner=owner) for text, owner in (("a", 9), ("b", 3))]
    assert [piece.text for piece in page._drawn_by({3, 9}, chars)] == ["a", "b"]


def test_two_texts_on_one_place_are_both_unseen() -> None:
    def hook(pen: Pen) -> None:
        pen.text(60, 500, "Amount due EUR 9,000.00")
        pen.text(60, 500, "Amount due EUR 8,111.11")

    text = shown(paper(hook))
    assert "9,000" not in text
    assert "8,111" not in text
    assert status(paper(hook)) != "open"


@pytest.mark.parametrize(
    "options",
    [{"turned": True}, *({"manner": e} for e in MANNERS), {"size": (2e3, 2e3)}, {"margin": 20.0}],
)
def test_honest_manner_is_seen(options: Any) -> None:
    pdf = paper(**options)
    assert "EUR1,000.00" in shown(pdf)
    assert status(pdf) == "open"


def test_contrast_and_height_count_at_their_limits() -> None:
    def grey(level: int) -> str:
        return shown(paper(written(Color(level / 255, level / 255, level / 255), 14)))

    assert "9,000.00" in grey(0x99)
    assert "9,000.00" in grey(255 - 44)
    assert "9,000.00" not in grey(255 - 36)
    assert "9,000.00" in shown(paper(written(black, 2.9)))  # 3.2 points from ascent to descent
    assert "9,000.00" not in shown(paper(written(black, 2.5)))


@pytest.mark.parametrize(("band", "ink", "size", "shows"), [
    ("#ffffff", "#dcdcdc", 14, True), ("#ffffff", "#ffff00", 14, True),
    ("#008000", "#ff0000", 14, True), ("#ffffff", "#000000", 2.5, True),
    ("#ffffff", "#fbfbfb", 14, False), ("#ffffff", "#ffffff", 14, False),
])  # fmt: skip
def test_pale_text_is_a_unit_where_it_shows(band: str, ink: str, size: float, shows: bool) -> None:
    said = "This invoice was already paid in cash so do not pay it"

    def hook(pen: Pen) -> None:
        pen.band(50, 490, 500, 25, HexColor(band))
        written(HexColor(ink), size, text=said)(pen)

    found = [unit.text for unit in read_here(paper(hook)).units if said in unit.text]
    assert [text.startswith("Pale text of ") for text in found] == [True] * shows


def test_band_of_another_colour_shows_its_text() -> None:
    def hook(pen: Pen) -> None:
        pen.band(290, 590, 200, 20, HexColor("#2f4858"))
        pen.text(300, 600, DUE, 10, ink=white)

    assert status(paper(hook, amount=None)) == "open"


@pytest.mark.parametrize("how", ["encoding", "type3"])
def test_font_that_says_another_amount_is_held(how: str) -> None:
    def hook(seen: str) -> Hook:
        place = Spot(**{**as_dict(spot("", 600)), "x": 300.0, "width": 80.0})
        return lambda pen: remap.draw(pen, place, how, seen, DUE)

    assert status(paper(hook(DUE), amount=None)) == "open"
    assert status(paper(hook("EUR 7,000.00"), amount=None)) == "hidden_text"
    assert status(paper(hook("USD 1,000.00"), amount=None)) == "hidden_text"


def test_font_that_says_another_account_is_held() -> None:
    said = "IBAN DE89 3704 0044 0532 0130 00"
    lines = [each for each in LINES if not each.startswith("IBAN")]

    def hook(seen: str) -> Hook:
        place = Spot(**{**as_dict(spot("", 560)), "width": 250.0})
        return lambda pen: remap.draw(pen, place, "type3", seen, said)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "LINES", lines)
        assert status(paper(hook(said))) == "open"
        assert status(paper(hook("IBAN GB89 3704 0044 0532 0130 55"))) == "hidden_text"


@pytest.mark.parametrize(("text", "held"), [
    (FORGED, True), ("IBAN GB33 BUKB 2020 1555 5555 55", True),
    ("Payable to Beta Steel GmbH", True), ("Payable to Beta Steel SA", True),
    ("Logo of the workshop", False), (f"Total due {DUE}", False),
])  # fmt: skip
def test_what_is_beside_the_page_may_name_no_other_money(text: str, held: bool) -> None:
    hooks = [(lambda pen, k=k: hiding.HIDES[k](pen, spot(text), 0)) for k in APART]
    expected = "hidden_text" if held else "open"
    assert [status(paper(hook)) for hook in hooks] == [expected] * 2


def test_alternative_text_that_differs_from_what_is_drawn_is_held() -> None:
    def marked(text: str) -> Hook:
        def hook(pen: Pen) -> None:
            said = f"feff{DUE.encode('utf-16-be').hex()}"
            pen.canvas._code.append(f"/Span << /ActualText <{said}> >> BDC")
            pen.text(300, 600, text, 10)
            pen.canvas._code.append("EMC")

        return hook

    assert status(paper(marked(DUE), amount=None)) == "open"
    assert status(paper(marked("EUR 7,000.00"), amount=None)) == "hidden_text"


APART = ("annotation", "form_field")


def stamped(angle: float, text: str = "PAID") -> Hook:
    image = ImageReader(stamp_picture(text, angle))
    return lambda pen: pen.canvas.drawImage(image, 300, 300, 140, 140, "auto", True)


def strokes(pen: Pen) -> None:
    for x, y, wide, high in rectangles("PAID"):
        pen.canvas.rect(200 + 40 * x, 400 + 40 * y, 40 * wide, 40 * high, stroke=0, fill=1)


def nameless(pen: Pen) -> None:
    """Glyphs that a parser reads as spaces."""
    remap.draw(pen, spot("", 400), "type3", "PAID", "    ")


@pytest.mark.parametrize(
    "hook", [stamped(0), stamped(25), stamped(180), picture("PAID", size=30), strokes, nameless]
)
def test_picture_or_drawing_is_a_unit_that_a_person_accepts(hook: Hook) -> None:
    plain, marked = (read_here(paper(each)).units for each in (None, hook))
    new = {unit.mark for unit in marked} - {unit.mark for unit in plain}
    assert {unit.kind for unit in marked if unit.mark in new} <= {"picture", "drawing"}
    assert new


@pytest.mark.parametrize(
    "hook",
    [
        picture("9", 293.5, 600),
        picture("USD", 362, 600),
        lambda pen: pen.canvas.line(291, 603, 296, 603),
        lambda pen: pen.canvas.rect(340, 600, 1.1, 1.1, stroke=0, fill=1),
        lambda pen: pen.canvas.line(300, 598, 362, 609),
    ],
    ids=["digit", "currency", "minus", "point", "struck"],
)
def test_nothing_is_drawn_in_or_beside_the_amount(hook: Hook) -> None:
    assert status(paper(hook)) == "hidden_text"


def test_frames_rules_and_bands_may_be_at_the_amount() -> None:
    def hook(pen: Pen) -> None:
        pen.canvas.setLineWidth(1.2)
        pen.canvas.line(370, 596, 370, 612)  # a short rule of a table
        pen.canvas.roundRect(285, 590, 90, 24, 5)
        pen.rule(285, 595, 372)

    assert status(paper(hook)) == "open"


def scan_of(pdf: bytes) -> bytes:
    with opened(pdf) as document:
        image = next(sheets(document)).drawn(scale=3.0)
    pen = Pen(A4, "Helvetica", "whole")
    pen.picture(ImageReader(image.convert("RGB")), 0, 0, *A4)
    return pen.done()


def test_scan_is_read_and_held() -> None:
    fields = read_here(scan_of(paper())).fields
    assert (fields.pay_status, fields.total_due) == ("scanned", "1000.00")


@pytest.mark.reader
def test_each_field_of_a_scan_has_its_crop_and_noise_is_no_invoice() -> None:
    found = read_here(scan_of(paper()))
    fields = found.fields
    read = {
        "amount due": fields.total_due,
        "currency": fields.currency,
        "seller": fields.seller,
        "IBAN": fields.iban,
        "invoice number": fields.invoice_number,
        "due date": fields.due_date,
    }
    assert {each.name: each.text for each in found.crops} == read
    assert None not in read.values()
    files = [io.BytesIO(base64.b64decode(each.png)) for each in found.crops]
    pixels = [recognise.text_of(Image.open(each).convert("L"), psm=6) for each in files]
    wanted = ("1,000.00", "EUR", fields.seller, "1904", fields.invoice_number, "2026")
    assert [text for text, part in zip(pixels, wanted, strict=True) if str(part) not in text] == []
    noise = Image.effect_noise((300, 400), 90).convert("RGB")
    pen = Pen(A4, "Helvetica", "whole")
    pen.picture(ImageReader(noise), 0, 0, *A4)
    assert status(pen.done()) == "incomplete"


def test_hidden_text_asks_for_what_is_due_or_holds() -> None:
    def asking(amount: str) -> Hook:
        said = f"Please note that the whole amount payable by you now is {amount} and no more"

        def hook(pen: Pen) -> None:
            pen.text(60, 560, "VAT EUR 20.00")
            hiding.HIDES["invisible_mode"](pen, spot(said, 500), 0)

        return hook

    assert status(paper(asking("EUR 20.00"))) == "hidden_text"
    assert status(paper(asking(DUE))) == "open"


def test_crops_are_few_small_and_of_the_right_place() -> None:
    def hook(pen: Pen) -> None:
        for y in range(100, 500, 20):
            hiding.HIDES["invisible_mode"](pen, spot(FORGED, y), 0)

    found: Extraction = read_here(paper(hook))
    assert len(found.crops) == CROPS_MAX
    first = found.crops[0]
    data = base64.b64decode(first.png)
    assert len(data) <= 24_000
    image = Image.open(io.BytesIO(data))
    assert image.format == "PNG"
    assert (first.name, first.page) == ("amount due", 1)
    assert DUE in recognise.text_of(image.convert("L"), psm=7)


def test_recogniser_that_is_missing_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    recognise.engine.cache_clear()
    with monkeypatch.context() as patch:
        patch.setitem(__import__("sys").modules, "tesserocr", None)
        assert status(paper()) == "unverified"
        assert status(scan_of(paper())) == "incomplete"  # a person reads it alone
    recognise.engine.cache_clear()
    forget()


def test_child_reads_pictures_as_the_parent_would() -> None:
    def hook(pen: Pen) -> None:
        for place in range(40):
            pen.canvas.circle(60 + 11 * (place % 20), 450 + 13 * (place // 20), 3 + place % 5)

    assert recognise.engine().GetVariableAsString("debug_file") == ""  # it opens no file later

    def belgian(pen: Pen) -> None:  # its banks are in a file of a library
        pen.text(60, 500, "IBAN BE68 5390 0754 7034")

    for each in (hook, stamped(25), belgian):
        assert extract(paper(each)) == read_here(paper(each))


def line_text(*chars: tuple[str, float, float]) -> list[list[str]]:
    made = []
    for text, left, base in chars:
        box = Box(left=left, top=base - 9, right=left + 6, bottom=base + 2)
        made.append(
            Char(text=text, box=box, mark=box, base=base, upright=True, made=False, owner=1)
        )
    return [[piece.text for piece in line] for line in lines_of(made)]


def test_lines_have_words_columns_and_superscripts() -> None:
    assert line_text(("b", 6, 20), ("a", 0, 20)) == [["ab"]]
    assert line_text(("a", 0, 20), ("b", 8, 20)) == [["a b"]]
    assert line_text(("a", 0, 20), ("b", 16, 20)) == [["a", "b"]]
    assert line_text(("a", 0, 20), ("2", 6, 17)) == [["a2"]]
    assert line_text(("b", 0, 32), ("a", 0, 20)) == [["a"], ["b"]]
    assert line_text(("a", 0, 20), ("a", 0.3, 20)) == [["a"]]


@pytest.mark.parametrize(("x", "y"), [(-100, 838), (60, 852), (-100_000, 500), (900, 500)])
def test_text_beside_the_page_is_not_printed(x: float, y: float) -> None:
    def beside(pen: Pen) -> None:
        for each in ((x, y, "HIDDEN", 10), (60, 8, "IN THE FOOT", 10)):
            pen.text(*each)

    assert "HIDDEN" not in shown(paper(beside))
