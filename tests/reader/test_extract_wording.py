"""Words that forbid to pay, each with its own reason, and words that only look so."""

import pytest

from reader.holds import HOLDS, explained
from reader.page_text import document_phrases, payment_phrases
from reader.page_text.rows import Cell, Row
from reader.page_text.text import invoice_from_text
from reader.page_text.titles import NAMES
from reader.page_text.wording import hold_by_title
from reader.page_view.pdfium import Box
from tests.kit.reading import page_of

HEAD = "Acme Tools Ltd\nINVOICE\nInvoice No: A-17\n"
BARE = "Acme Tools Ltd\n"
FOOT = "\nTotal  120.00 EUR\n"


def hold(text: str) -> str | None:
    return invoice_from_text([page_of(text)])[0].hold


@pytest.mark.parametrize(("line", "code"), [
    ("This invoice was settled on 3 May 2026 by bank transfer.", "settled"),
    ("Der Rechnungsbetrag ist am 3. Mai 2026 bei uns eingegangen.", "settled"),
    ("Cette facture a déjà été réglée.", "settled"), ("La fattura è già stata saldata.", "settled"),
    ("Esta factura ya ha sido abonada.", "settled"), ("Faktura została już opłacona.", "settled"),
    ("Fakturan är redan betald.", "settled"), ("A számla kiegyenlítésre került.", "settled"),
    ("Please note: we will collect this sum from your bank account.", "debited"),
    ("Laskun summa veloitetaan tililtänne automaattisesti.", "debited"),
    ("Částka bude stržena inkasem z Vašeho účtu.", "debited"),
    ("Beløpet blir trukket fra kontoen din.", "debited"),
    ("This invoice has been cancelled and replaced by A-18.", "void"),
    ("Faktura byla stornována.", "void"), ("V O I D", "void"),
    ("Please do not release payment until our engineer has signed.", "retention"),
    ("Zahlbar erst nach Abnahme durch den Bauherrn.", "retention"),
    ("Dit bedrag wordt door ons aan u terugbetaald.", "refund"),
    ("Zu Ihren Gunsten: wir erstatten Ihnen den Betrag.", "refund"),
    ("Diese Rechnung wurde vom Leistungsempfänger ausgestellt.", "self_billed"),
    ("NUR ZUR INFORMATION", "specimen"), ("Vzorová faktura", "specimen"),
    ("Wezwanie do zapłaty", "reminder"),
    ("Rechnung / Gutschrift", "credit_note"), ("BEZAHLT", "stamped_paid"), ("Entwurf", "draft"),
    ("Este documento no es una factura.", "not_an_invoice"),
    ("Modregnet i jeres konto.", "settled"),
    ("Der Betrag wird automatisch abgebucht.", "debited"),
    ("Zastąpiona fakturą nr 78.", "void"), ("Ersatt av faktura 78.", "void"),
    ("Platba blokována do odvolání.", "retention"),
    ("Vänta med betalning tills arbetet har godkänts.", "retention"),
    ("Nous vous reverserons cette somme.", "refund"), ("Vratka na Váš účet.", "refund"),
    ("Niets meer te betalen, niets verschuldigd.", "not_to_be_paid"),
    ("Até à data não recebemos o seu pagamento.", "reminder"),
])  # fmt: skip
def test_contrary_words_on_an_invoice_hold_with_their_own_reason(line: str, code: str) -> None:
    assert hold(HEAD + line + FOOT) == code


@pytest.mark.parametrize(("title", "code"), [
    ("Auftragsbestätigung AB-2026-77", "order_confirmation"),
    ("Nota de crédito n.º 12", "credit_note"), ("Relevé de compte", "statement_of_account"),
    ("Invoice address: 12 Quayside\nThe invoice follows by post.", "not_an_invoice"),
    ("Invoice address: 12 Quayside", "no_invoice_title"),
    ("Rechnungsempfänger: Muster AG", "no_invoice_title"),
    ("Kundenblatt\nRechnungsnummer: 17", "no_invoice_title"),
    ("Opravný doklad č. 7", "credit_note"), ("Přehled pohledávek", "statement_of_account"),
    ("Demande d'acompte", "pro_forma"), ("Cenová ponuka", "quotation"),
])  # fmt: skip
def test_document_that_is_none_is_held_by_its_title(title: str, code: str) -> None:
    assert hold(BARE + title + FOOT) == code


@pytest.mark.parametrize("paid", [
    "Total  140.00 EUR\nDéjà versé  EUR -20.00\nNet à payer",
    "Total  Déjà versé\n140.00 EUR  -20.00 EUR\nNet à payer",
])  # fmt: skip
def test_label_of_a_part_that_was_paid_is_no_statement(paid: str) -> None:
    assert hold(f"{HEAD}{paid}  120.00 EUR\n") is None


@pytest.mark.parametrize("line", [
    "If this invoice has already been paid, please ignore it.",
    "Falls Sie bereits bezahlt haben, betrachten Sie dies als gegenstandslos.",
    "Haben Sie die Rechnung bereits bezahlt?",
    "Si vous avez déjà payé, ne tenez pas compte de cet avis.",
    "Title passes when the goods have been paid in full.",
    "Goods are ours until the invoice, with all the costs of its delivery,\nhas been paid in full.",
    "Voided cheques are not accepted.", "A reminder fee of 5.00 EUR applies after the due date.",
    "No credit notes without return of goods.", "Geen creditnota zonder retour.",
    "Interest at 8 % will be charged to your account on late payment.",
    "You can also pay by direct debit.", "Lastschrift ist leider nicht möglich.",
    "Orders can be cancelled up to 14 days before delivery.", "Order confirmation no. 123",
    "Delivery note no. 55", "Delivery note:  LS-55", "Quote ref: Q-12",
    "Unser Angebot: Q-12 vom 03.05.2026", "Lieferschein  Bestellung\nLS-55  B-12",
    "Statement of work 7, phase 2  1  20.00", "Samples  2  10.00", "Paid-up capital as registered",
    "VAT paid on margin", "Do not pay to any other account.", "Do not pay in cash.",
    "Payee: Acme Tools Ltd", "12 Sample Street", "Thank you for your prompt payment.",
    "Refunds are made within 30 days.", "Self-billing is not accepted.",
    "This is not a VAT invoice.", "Previous invoice was settled, thank you.",
    "Die vorige Rechnung wurde beglichen, vielen Dank.", "La fattura precedente è stata saldata.",
    "Uw betaling dient binnen 30 dagen ontvangen te zijn.",
    "Der Versand erfolgt erst nach Zahlungseingang.", "In attesa del vostro bonifico.",
    "Le prélèvement automatique est possible sur demande.", "Replaced the pump, 7 hours",
    "Please pay within 30 days of the invoice date.", "We do not accept cheques.",
    "Work was completed on 3 May.", "No VAT is charged, the supplier is not registered.",
    "Please keep this invoice for your records.", "Payment by bank transfer only.",
    "Bitte überweisen Sie den Betrag innerhalb von 14 Tagen ohne Abzug.",
    "Gemäß § 19 UStG wird keine Umsatzsteuer berechnet.", "Pas d'escompte pour paiement anticipé.",
    "TVA acquittée sur les encaissements.", "La merce resta di nostra proprietà fino al saldo.",
    "Wij verzoeken u binnen 14 dagen te betalen.", "Nie przyjmujemy gotówki.",
    "Agradecemos o pagamento no prazo de 30 dias.", "Betales inden 14 dage.",
    "You can pay online at pay.example/2026.", "Invoice no. 17 of our office in Bristol",
])  # fmt: skip
def test_harmless_mentions_do_not_hold(line: str) -> None:
    assert hold(HEAD + line + FOOT) is None


@pytest.mark.parametrize(("heights", "code"), [
    ((20.0, 9.0), None), ((9.0, 20.0), "delivery_note"), ((20.0, 20.0), "delivery_note"),
])  # fmt: skip
def test_largest_name_is_the_title(heights: tuple[float, float], code: str | None) -> None:
    def row(text: str, height: float) -> Row:
        box = Box(left=0, top=0, right=100, bottom=height)
        return Row(page=1, cells=(Cell(text=text, start=0, end=20, box=box),))

    body = [row("Something that was sold", 9.0)] * 6
    names = [row("Invoice 17", heights[0]), row("Delivery note 55", heights[1])]
    assert hold_by_title([*names, *body]) == code


def test_each_reason_has_its_sentences_and_what_to_do() -> None:
    assert set(NAMES) | set(document_phrases.PHRASES) | set(payment_phrases.PHRASES) <= set(HOLDS)
    texts = [explained(code) for code in HOLDS]
    assert all(text[0].isupper() and text.endswith(".") and ". " in text for text in texts)
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("line", [
    "The money reached us yesterday.", "This one is covered by the deposit you left us in March.",
    "For your records only.", "Das Geld ist gestern bei uns angekommen.",
    "Der Kunde hat an der Theke bezahlt.", "Attendez notre version corrigée de cette facture.",
    "El dinero nos llegó ayer.", "Abbiamo trattenuto la somma dal suo deposito.",
    "De klant heeft de factuur aan de balie afgerekend.", "Kwotę potrącono z kaucji.",
    "Skicka inga pengar innan reklamationen är löst.", "Kunden har betalt i butikken.",
    "Asiakas on maksanut kassalla.", "O cliente já pagou ao balcão.", "Peníze dorazily včera.",
])  # fmt: skip
def test_sentence_about_the_payment_that_is_not_understood_holds(line: str) -> None:
    assert hold(HEAD + line + FOOT) in ("unclear_statement", "settled")
