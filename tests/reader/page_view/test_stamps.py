"""What pictures and drawings say on a page, and which of it holds an invoice."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.colors import Color
from reportlab.lib.utils import ImageReader

from reader.page_view import pictures
from reader.page_view.pdfium import Box
from reader.page_view.pictures import Writing
from reader.page_view.pieces import RUNS_MAX, CrowdedError, pieces
from reader.page_view.stamps import PageWords, foreign, misread
from samples import generated
from samples.generated.fonts import VERA
from samples.generated.pen import Pen
from samples.generated.raster import rectangles
from tests.kit.pdf_builder import invoice_lines, text_pdf
from tests.kit.reading import read_here
from tests.reader.page_view.test_page_view import paper

RED, PALE, BLUE = (190, 30, 40), (200, 200, 203), (30, 60, 170)
PAGE = PageWords(["Acme Tools Ltd  INVOICE", "Total due EUR 1,000.00", "Betala in time"])


def stamp(
    text: str,
    size: float = 14,
    ink: tuple[int, int, int] = RED,
    frame: str = "box",
    angle: float = 0,
) -> Image.Image:
    """A stamp with 4 pixels a point; ``frame`` is box, ellipse, filled or none."""
    face = ImageFont.truetype(str(VERA), round(4 * size))
    margin = round(6 * size if frame == "ellipse" else 3 * size)
    wide, high = round(face.getlength(text)) + 2 * margin, round(5 * size) + 2 * margin
    image = Image.new("RGBA", (wide, high), (255, 255, 255, 0))
    pen = ImageDraw.Draw(image)
    edges = (4, 4, wide - 5, high - 5)
    if frame == "ellipse":
        pen.ellipse(edges, outline=ink, width=round(size / 3))
    elif frame != "none":
        pen.rectangle(edges, outline=ink, width=8, fill=ink if frame == "filled" else None)
    pen.text((margin, margin), text, font=face, fill=(255, 255, 255) if frame == "filled" else ink)
    return image.rotate(angle, expand=True, resample=Image.Resampling.BICUBIC)


def put(image: Image.Image, x: float = 150, y: float = 330) -> Callable[[Pen], Any]:
    place = (x, y, image.width / 4, image.height / 4)
    return lambda pen: pen.canvas.drawImage(ImageReader(image), *place, mask="auto")


def hold(hook: Callable[[Pen], Any]) -> str | None:
    return read_here(paper(hook)).fields.hold


STAMPS: dict[str, Any] = {
    "PAID": {"frame": "filled", "angle": 60},
    "ZAPŁACONO": {"size": 24, "ink": PALE, "angle": 30},
    "érvénytelen": {"frame": "none", "angle": -90},
}
MORE_STAMPS: dict[str, Any] = {
    "Muster": {"size": 10, "frame": "none"},
    "PAYÉ": {"frame": "ellipse", "angle": -45},
    "BETALD": {"size": 48, "ink": BLUE, "angle": 90},
    "storno": {"size": 9, "ink": BLUE, "frame": "none", "angle": 20},
    "OPRAVNÝ DOKLAD": {"frame": "filled", "ink": BLUE},
    "Ungültig": {"size": 30, "ink": PALE, "frame": "ellipse", "angle": 75},
}


@pytest.mark.parametrize("stamps", [STAMPS, pytest.param(MORE_STAMPS, marks=pytest.mark.reader)])
def test_stamp_of_any_size_colour_and_turn_is_held(stamps: dict[str, Any]) -> None:
    held = {text: hold(put(stamp(text, **options))) for text, options in stamps.items()}
    assert [text for text, code in held.items() if code is None] == []


def test_stamp_of_bars_in_one_path_is_held() -> None:
    def bars(pen: Pen) -> None:
        path = pen.canvas.beginPath()
        for left, low, wide, high in rectangles("BEZAHLT", 40):
            path.rect(250 + 30 * left, 420 + 30 * low, 30 * wide, 30 * high)
        pen.canvas.drawPath(path, stroke=0, fill=1)

    assert hold(bars) == "stamped_paid"


def test_stamp_in_unknown_words_is_held_with_its_place() -> None:
    found = read_here(paper(put(stamp("erledigt 12.03.2024"))))
    assert found.fields.hold == "unread_picture"
    assert [(each.name, each.text.split()[0]) for each in found.crops[1:]] == [
        ("picture", "erledigt")
    ]


def test_pictures_without_other_words_hold_nothing() -> None:
    def code(pen: Pen) -> None:
        for place in range(29 * 29):
            if (place * place * 7 + place // 29) % 5 < 3:
                pen.canvas.rect(
                    200 + 4 * (place % 29), 300 + 4 * (place // 29), 4, 4, stroke=0, fill=1
                )

    def bars(pen: Pen) -> None:
        for place in range(30):
            pen.canvas.rect(200 + 5 * place, 300, 1 + place % 3, 30, stroke=0, fill=1)

    def circles(pen: Pen) -> None:
        pen.canvas.circle(250, 400, 40)

    said = put(stamp("Acme Tools Ltd", 20, frame="none", angle=30))
    logo = put(stamp("Papershop", 20, frame="none"), 350, 750)
    assert [hold(each) for each in (code, bars, circles, said, logo)] == [None] * 5


def test_sentence_beside_the_logo_is_read() -> None:
    image = stamp("Do not pay this invoice", 12, frame="none")
    assert hold(put(image, 330, 740)) == "not_to_be_paid"


@pytest.mark.parametrize(
    ("text", "expected"), [("Acme Tools Ltd", None), ("Beta Steel GmbH", "hidden_text")]
)
def test_name_across_the_page_may_repeat_its_text(text: str, expected: str | None) -> None:
    def hook(pen: Pen) -> None:
        canvas = pen.canvas
        canvas.saveState()
        canvas.translate(300, 350)
        canvas.rotate(45)
        canvas.setFillColor(Color(0.9, 0.9, 0.9))
        canvas.setFont("Helvetica", 50)
        canvas.drawCentredString(0, 0, text)
        canvas.restoreState()

    assert hold(hook) == expected


def test_large_upright_text_on_other_text_makes_it_unread() -> None:
    def hook(pen: Pen) -> None:
        pen.text(60, 500, "of the workshop in the old town", 9)
        pen.text(80, 495, "Acme Tools Ltd", 40)

    assert hold(hook) == "hidden_text"


def test_repetition_has_the_words_in_their_order_and_no_number() -> None:
    texts = ("tools ltd", "Ltd Tools", "Acme Tool", "Total due EUR 1,000.00")
    assert [PAGE.repeat(text) for text in texts] == [True, False, False, False]


@pytest.mark.reader
def test_noise_may_hide_a_word_and_is_held() -> None:
    bits = Random(1).randbytes(250 * 250)  # noqa: S311
    noise = Image.frombytes("L", (250, 250), bits).point([0] * 128 + [255] * 128)
    large = noise.resize((1_000, 1_000), Image.Resampling.NEAREST).convert("RGB")
    assert hold(put(large)) == "unread_picture"


def test_pieces_are_connected_and_bounded() -> None:
    dots = Image.new("L", (RUNS_MAX // 10, 30), 0)
    pen = ImageDraw.Draw(dots)
    pen.line((0, 0, 4, 4), fill=255)
    pen.line((8, 0, 4, 4), fill=255)
    pen.rectangle((20, 2, 24, 9), fill=255)
    assert [(each.left, each.right, each.bottom) for each in pieces(dots)] == [
        (0, 9, 5),
        (20, 25, 10),
    ]
    runs = Image.frombytes("L", (2 * RUNS_MAX, 1), b"\xff\0" * RUNS_MAX)
    assert len(pieces(runs)) == RUNS_MAX
    with pytest.raises(CrowdedError):
        pieces(Image.frombytes("L", (2 * RUNS_MAX + 2, 1), b"\xff\0" * (RUNS_MAX + 1)))


def writing(*lines: str, sure: int = 90, top: float = 400, angle: int = 0, **more: Any) -> Writing:
    box = Box(left=100, top=top, right=200, bottom=top + 20)
    options = {"doubtful": (), "letters": 9, **more}
    return Writing(lines=lines, sure=sure, box=box, angle=angle, **options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BEZAHIT", "stamped_paid"),
        ("Zaptacono", "stamped_paid"),
        ("0PRAVNY D0KLAD", "credit_note"),
        ("ANULL0WANO", "void"),
        ("MUSTEN", "specimen"),
        ("BEZABIT", None),
        ("Betala", None),
        ("PAIN", None),
    ],
)
def test_one_letter_of_five_may_be_misread(text: str, expected: str | None) -> None:
    assert misread([writing(text)], PAGE) == expected
    assert misread([writing("none", doubtful=(text,))], PAGE) == expected


def test_writing_is_foreign_by_its_words_and_its_place() -> None:
    def is_foreign(each: Writing) -> bool:
        return foreign(each, 800, PAGE)

    assert is_foreign(writing("Approved"))
    assert not is_foreign(writing("ACME TOOLS"))
    assert not is_foreign(writing("Acmé T00ls"))
    assert not is_foreign(writing("Approved", top=60))
    assert not is_foreign(writing("Approved", top=700))
    assert is_foreign(writing("Approved", top=60, angle=30))
    assert not is_foreign(writing("Approved", top=60, angle=-85))
    assert is_foreign(writing())
    assert is_foreign(writing("xq", sure=20, letters=4))
    assert not is_foreign(writing("xq", sure=20, letters=3))
    assert not is_foreign(writing(top=60, angle=30))


def test_pictures_of_the_first_three_pages_and_the_last_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[Any] = []

    def writings(sheet: Any) -> list[Writing]:
        read.append(sheet)
        return []

    monkeypatch.setattr(pictures, "writings", writings)
    read_here(text_pdf(invoice_lines(), *[["More"]] * 5))
    assert len(read) == 4


@pytest.mark.parametrize("parts", [12, 13])
def test_so_many_parts_of_a_page_are_read(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    monkeypatch.setattr(pictures, "_writing", lambda *given: read.append(given))

    def squares(pen: Pen) -> None:
        for place in range(parts):
            x, y = 60 + 60 * (place % 6), 100 + 60 * (place // 6)
            pen.canvas.rect(x, y, 12, 12, stroke=0, fill=1)

    read_here(paper(squares))
    assert len(read) == 12


@pytest.mark.soak
def test_every_generated_stamp_is_held() -> None:
    kinds = ("stamped_paid", "stamped_void", "credit_note_picture")
    made = generated.batch(60, kinds, 70_000)
    assert [each.name for each in made if read_here(each.pdf).fields.pay_status == "open"] == []
