"""Random invoices with a known truth: some may be held, none may be open and wrong."""

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from hypothesis import event, given, settings
from hypothesis import strategies as st

from reader import ExtractionError, Invoice
from reader.page_text.text import invoice_from_text
from tests.kit.reading import page_of

CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What one language calls the parts of an invoice."""

    title: str
    net: tuple[str, ...]
    tax: tuple[str, ...]
    total: tuple[str, ...]
    paid: tuple[str, ...]
    due: tuple[str, ...]
    column: str


LANGUAGES = (
    Words(
        title="Invoice no. 2026-17",
        net=("Subtotal", "Net total", "Total excl. VAT", "Total (excl. VAT)"),
        tax=("VAT 20%", "Tax", "Sales tax (20%)"),
        total=("Total", "Grand total", "Invoice total", "Total incl. VAT", "Total amount"),
        paid=("Amount paid", "Deposit", "Already paid", "Less payments"),
        due=("Amount due", "Balance due", "Total due", "Amount payable"),
        column="Total",
    ),
    Words(
        title="Rechnung Nr. 2026-17",
        net=("Zwischensumme", "Summe netto", "Nettobetrag", "Gesamt netto"),
        tax=("MwSt. 19 %", "zzgl. 19 % USt.", "Umsatzsteuer"),
        total=("Gesamtbetrag", "Rechnungsbetrag", "Endbetrag", "Gesamt brutto", "Summe"),
        paid=("Anzahlung", "Bereits bezahlt", "Abschlagszahlung"),
        due=("Zahlbetrag", "Offener Betrag", "Zu zahlen", "Restbetrag"),
        column="Gesamt",
    ),
    Words(
        title="Facture n° 2026-17",
        net=("Total HT", "Sous-total", "Montant HT"),
        tax=("TVA 20 %", "TVA"),
        total=("Total TTC", "Montant TTC", "Total"),
        paid=("Acompte", "Acompte versé"),
        due=("Net à payer", "Reste à payer", "Montant dû"),
        column="Total HT",
    ),
    Words(
        title="Faktura č. 2026017",
        net=("Cena bez DPH", "Základ daně", "Mezisoučet"),
        tax=("DPH 21 %", "DPH"),
        total=("Celkem", "Celkem s DPH", "Cena celkem"),
        paid=("Záloha", "Uhrazeno zálohou"),
        due=("Celkem k úhradě", "K úhradě", "Zbývá uhradit"),
        column="Celkem bez DPH",
    ),
)
FORMATS = ((",", "."), (".", ","), (" ", ","), ("'", "."), ("", "."), ("", ","), ("\u00a0", ","))
MARKS = ("EUR {}", "{} EUR", "€ {}", "{} €", "£{}", "$ {}", "{} CHF", "Kč {}", "{}")


@st.composite
def bills(draw: st.DrawFn) -> tuple[str, Decimal]:
    """The text of a page, and what is to be paid."""
    words = draw(st.sampled_from(LANGUAGES))
    group, point = draw(st.sampled_from(FORMATS))
    mark = draw(st.sampled_from(MARKS))

    def money(value: Decimal, form: str = mark) -> str:
        text = f"{value:,.2f}".replace(",", "\0").replace(".", point).replace("\0", group)
        return form.format(text)

    prices = draw(st.lists(st.integers(1, 500_000), min_size=1, max_size=4))
    amounts = [Decimal(price).scaleb(-2) for price in prices]
    net = sum(amounts, Decimal(0))
    tax = (net * draw(st.sampled_from((0, 7, 19, 20, 21))) / 100).quantize(CENT, ROUND_HALF_UP)
    paid = draw(st.sampled_from((Decimal(0), Decimal(0), (net / 4).quantize(CENT))))
    rows = [(words.column, ""), *((f"Item {n}", money(a, "{}")) for n, a in enumerate(amounts))]
    if draw(st.booleans()):
        rows.append((draw(st.sampled_from(words.net)), money(net)))
    if draw(st.booleans()):
        rows.append((draw(st.sampled_from(words.tax)), money(tax)))
    rows.append((draw(st.sampled_from(words.total)), money(net + tax)))
    if paid:
        rows.append(
            (draw(st.sampled_from(words.paid)), money(draw(st.sampled_from((paid, -paid)))))
        )
    if draw(st.booleans()):
        rows.append((draw(st.sampled_from(words.due)), money(net + tax - paid)))
    colon = draw(st.sampled_from(("", ":")))
    lines = [
        f"{label}{colon}{draw(st.sampled_from(('   ', ' ', '      ')))}{value}"
        for label, value in rows
    ]
    return "\n".join((f"Acme Ltd   {words.title}", "Terms as agreed", *lines)), net + tax - paid


def read(text: str) -> Invoice | None:
    try:
        return invoice_from_text([page_of(text)])[0]
    except ExtractionError:
        return None


@settings(max_examples=100)
@given(bills())
def test_no_random_invoice_is_open_with_a_wrong_amount(bill: tuple[str, Decimal]) -> None:
    text, due = bill
    invoice = read(text)
    event(invoice.pay_status if invoice else "no total or currency")
    if invoice is not None and invoice.pay_status == "open":
        assert Decimal(invoice.total_due or 0) == due
