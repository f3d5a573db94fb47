"""What a document's prose says about paying it: paid, collected, corrected, no invoice at all."""

import re
from collections.abc import Sequence
from typing import Final

from pipeline.steps.extract.invoice import PayStatus
from pipeline.steps.extract.page_text.amounts import amounts_in
from pipeline.steps.extract.page_text.dates import first_date, fold
from pipeline.steps.extract.page_text.rows import Row
from pipeline.steps.extract.page_text.vocabulary import INVOICE

_CONDITION: Final = re.compile(
    r"\b(?:if|unless|once|when|until|till|should|in case|not|falls|sofern|wenn|sobald|sollten?|bis"
    r"|nicht|si|des que|lorsque|indien|wanneer|zodra|tot|niet|pokud|jestlize|qualora"
    r"|cuando)\b[^.!?]*$"
)
_CONDITION_CHARS: Final = 80  # how far before a statement its condition can stand
_PAID: Final = re.compile(
    r"\bpaid in full\b|\b(?:has|have|was|were|is|been) (?:already )?(?:been )?(?:fully )?paid\b"
    r"|\balready (?:been )?paid\b|\bpayment (?:of .{1,30} )?(?:has been |was )?received\b"
    r"|\breceived (?:your|the) payment\b|\breceived with thanks\b"
    r"|\bpaid (?:by|via|with|on|using|through)\b|\bprepaid\b|\bthank you for your payment\b"
    r"|\bcharged to your (?:credit )?card\b|\bstatus\W{1,3}paid\b"
    r"|betrag (?:wurde |ist )?(?:bereits )?(?:dankend )?(?:erhalten|bezahlt|beglichen)\b"
    r"|\bbereits (?:be|ge)zahlt\b|\bbereits beglichen\b|\bdankend erhalten\b"
    r"|\bbezahlt (?:am|per|mit|via)\b"
    r"|\b(?:vooruit|reeds |al )betaald\b|\bbetaald (?:met|via|op|per)\b|\b(?:is|werd) betaald\b"
    r"|\b(?:reeds )?voldaan\b"
    r"|\bacquittee?\b|\b(?:a ete |deja )(?:paye|regle)e?\b|\bpayee? (?:par|le)\b"
    r"|\bregle(?:e)? (?:par|le)\b"
    r"|\bpagad[oa] (?:con|por|el|mediante)\b|\bha sido pagad|\bya pagad"
    r"|\bpagat[oa] (?:con|il|tramite)\b|\bgia pagat|\bquietanzat|\bsaldat[oa]\b"
    r"|\b(?:jiz )?uhrazeno\b|\b(?:jiz )?zaplaceno\b|\bneplatte\b|\boplacon[oa]\b|\bzaplacono\b"
)
_PAID_STAMP: Final = re.compile(
    r"^(?:paid|bezahlt|betaald|paye|payee|pagado|pagada|pagato|pagata|zaplaceno|uhrazeno|zaplacono"
    r"|voldaan|acquittee|paid in full)[!.]?$"
)
_INSTRUMENT: Final = re.compile(
    r"\bideal\b|\bpaypal\b|\bbancontact\b|\bsofort\b|\bklarna\b|\bcredit ?card\b|\bkreditkarte\b"
    r"|\bvisa\b|\bmastercard\b|\bmaestro\b|\bamex\b|\bapple pay\b|\bstripe\b|\bcarte bancaire\b"
)
_COLLECTED: Final = re.compile(
    r"\b(?:wird|werden|wurde)\b.{0,160}\b(?:abgebucht|eingezogen|eingezogen|belastet)\b"
    r"|\b(?:buchen|ziehen)\b.{0,120}\b(?:ab|ein)\b.{0,40}(?:konto|lastschrift|$)"
    r"|\bper (?:sepa-?)?lastschrift\b|\bzahlungsart\W{1,3}(?:sepa-?)?lastschrift\b"
    r"|\b(?:by|via|per|method\W{1,3}) ?(?:sepa )?direct debit\b"
    r"|\bdirect debit\b.{0,60}\b(?:will|on|collect)"
    r"|\bwill be (?:automatically )?(?:debited|collected|deducted|withdrawn)\b"
    r"|\bwill (?:be )?(?:automatically )?charged? (?:to )?(?:your|the) (?:card|credit|account|bank)"
    r"|\bautomatische incasso\b|\bgeincasseerd\b|\bautomatisch (?:afgeschreven|geincasseerd)\b"
    r"|\bprelevement\b|\bpreleve(?:e|s|es)?\b|\binkasem\b"
    r"|\bdomiciliacion\b|\badeudo (?:directo|sepa)\b|\baddebito (?:diretto|in conto|sdd|sepa)\b"
)
_NO_INVOICE: Final = re.compile(
    r"\bpro[- ]?forma\b|\bthis is not an? (?:invoice|bill)\b|\bkeine rechnung\b|\bdo not pay\b"
    r"|\bno payment (?:is )?(?:required|due|necessary|needed)\b"
    r"|\bkeine (?:aufforderung zur )?zahlung"
    r"|\bnicht (?:zu )?(?:uber|be)?zahlen\b|\bne pas payer\b|\bniet betalen\b|\bnon pagare\b"
    r"|\bno pagar\b"
)
_TITLES: Final[tuple[tuple[re.Pattern[str], PayStatus], ...]] = (
    (
        re.compile(
            r"\bself[- ]?bill|\bselbst ausgestellte|\bautofacturation|\bautofattura"
            r"|\bself-facturing"
        ),
        "self_billed",
    ),
    (
        re.compile(
            r"\bcredit (?:note|memo|invoice)\b|\bgutschrift\b|\bkorrektur|\bstorno"
            r"|rechnungs-?korrektur"
            r"|\bopravny danovy|\bdobropis\b|\bavoir\b|\bnote de credit\b"
            r"|\bcredit(?:nota|factuur)\b"
            r"|\bnota (?:de|di) credito\b|\brectificativa\b|\bcorrect(?:ed|ion|ive) invoice\b"
            r"|\bfaktura korygujaca\b|\bcancell?ed\b|\bcancellation\b|^void$|\bkreditnota\b"
        ),
        "correction",
    ),
    (
        re.compile(
            r"\bquot(?:e|ation)\b|\bestimate\b|\bangebot\b|\bkostenvoranschlag\b|\bofferte?\b"
            r"|\bdevis\b"
            r"|\bpresupuesto\b|\bpreventivo\b|\bnabidka\b|\border confirmation\b"
            r"|\bauftragsbestatigung\b"
            r"|\bpurchase order\b|\bbestellung$|\bdelivery note\b|^lieferschein\b"
            r"|\bpacking (?:list|slip)\b"
            r"|\bstatement(?: of account)?$|\bkontoauszug\b|\bmahnung\b|\breminder\b|\bdraft\b"
            r"|\bentwurf\b"
            r"|\bzalohova\b|\bbuchungshilfe\b|\bremittance advice\b|\bpayslip\b|\bcontract$"
        ),
        "not_payable_info_only",
    ),
    (re.compile(r"^(?:payment |sales |cash )?receipt\b|^quittung\b|^kassenbon\b|^recu\b"), "paid"),
)
_TITLE_CHARS_MAX: Final = 48
_TITLE_ROWS: Final = 25  # a document's name stands at its top
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n")


def status_by_words(
    printed: Sequence[Row], plain: str, noted: Sequence[Row] = ()
) -> PayStatus | None:
    """Why a page's own words forbid to pay it; None when they do not.

    What it carries beside its printed text can forbid it too, and never allow it.
    """
    rows = [*printed[:_TITLE_ROWS], *noted, *printed[_TITLE_ROWS:]]
    titles = [cell.folded for row in rows[: _TITLE_ROWS + len(noted)] for cell in row.cells]
    titles = [title for title in titles if len(title) <= _TITLE_CHARS_MAX]
    for pattern, status in _TITLES:
        if any(pattern.search(title) for title in titles):
            return status
    sentences = _sentences(rows, plain)
    if any(_NO_INVOICE.search(sentence) for sentence in sentences):
        return "not_payable_info_only"
    if says_paid(sentences) or _stamped(rows) or _settled_by(rows):
        return "paid"
    if says_collected(sentences):
        return "direct_debit"
    if not INVOICE.search(fold(plain)):
        return "ambiguous"
    return None


def says_paid(sentences: Sequence[str]) -> bool:
    """Whether a sentence says outright, not conditionally, that it was paid."""
    return any(
        not _conditional(sentence, match) and not _labels_amount(sentence[match.end() :])
        for sentence in sentences
        for match in _PAID.finditer(sentence)
    )


def says_collected(sentences: Sequence[str]) -> bool:
    """Whether a sentence says outright that the seller takes the money itself."""
    return any(
        not _conditional(sentence, match)
        for sentence in sentences
        for match in _COLLECTED.finditer(sentence)
    )


def _conditional(sentence: str, match: re.Match[str]) -> bool:
    before = sentence[max(0, match.start() - _CONDITION_CHARS) : match.start()]
    return bool(_CONDITION.search(before))


def _labels_amount(rest: str) -> bool:
    """Whether what follows is an amount: then a part was paid, and the sums account for it."""
    first = next(iter(amounts_in(rest)), None)
    return first is not None and first.firm and not rest[: first.start].strip(" :=\n")


def sentences_of(text: str) -> list[str]:
    """The folded sentences of a text."""
    return [fold(sentence) for sentence in _SENTENCE.split(text) if sentence.strip()]


def _sentences(rows: Sequence[Row], plain: str) -> list[str]:
    """Sentences as they run over lines, and neighbouring cells: either may be cut wrongly."""
    flowing = re.split(r"(?<=[.!?;])\s+", " ".join(plain.split()))
    pairs = [
        " ".join(cell.text for cell in row.cells[start : start + 2])
        for row in rows
        for start in range(len(row.cells))
    ]
    return [fold(part) for part in [*flowing, *pairs]]


def _stamped(rows: Sequence[Row]) -> bool:
    return any(_PAID_STAMP.search(cell.folded) for row in rows for cell in row.cells)


def _settled_by(rows: Sequence[Row]) -> bool:
    """A row with a means of payment, a day and an amount is a payment that was made."""
    for row in rows:
        for index, cell in enumerate(row.cells):
            rest = " ".join(other.text for other in row.cells[index:])
            dated = _INSTRUMENT.search(cell.folded) and first_date(rest, "dmy")
            if dated and any(amount.firm for amount in amounts_in(rest)):
                return True
    return False
