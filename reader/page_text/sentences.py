"""Sentences over several lines: those that ask for money, and those that are not understood."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from reader.page_text.amounts import Amount, amounts_in, has_money
from reader.page_text.dates import fold
from reader.page_text.rows import Cell, Row
from reader.page_text.statements import CONDITION, DUTY, TERMS, is_of_other
from reader.page_text.vocabulary import ASKS, CONDITIONAL

_END: Final = re.compile(r"[.!?:;]$")
_STOP: Final = re.compile(r"(?:(?<!\d)\.|[!?;])(?=\s+[^\W\d_])")  # no ordinal's point
_WORDS_MIN: Final = 4
_RUNS_ON: Final = 30  # characters: a shorter line is a label
_LINES_MAX: Final = 3
_WRAPPED_CHARS: Final = 35  # a shorter line is not continued in the next one
_ALREADY: Final = re.compile(
    r"^(?:if|sollten?|falls|wenn|si|se|mocht|indien|jesli|jezeli|pokud|hvis|om|jos|ha|har|haben)\b.*"
    r"\b(?:already|bereits|schon|deja|ya|gia|ja|al|reeds|juz|jiz|allerede|redan|jo|mar)\b"
)
_REMARK: Final = re.compile(r"\([^()]*\)")
_SENTENCE_WORDS: Final = 3  # where a point ends it; a label has fewer
_LINE_WORDS: Final = 6  # without a point
_DIGITS_MAX: Final = 0.25  # of its characters: more is a line of a table
_NUMBERED: Final = re.compile(
    r"(?<!\w)(?:no|n|ne|nr)\b[.:°º#]?\s?(?=[\w/-]*\d|$|[:;])|\bno\.|n[.°º]o\b"
)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)")


# What a sentence about this document or its payment speaks of.
_TOPIC: Final = _words(
    r"records?|files?|archiv\w*|unterlagen|administratie|evidenci|dokumentacji|arki[vf]\w*"
    r"|arquivo|pay(?:ment|ments|ing|able)?|paid|money|sum|amount|balance|invoice|bill"
    r"|transfer|remit\w*|funds?|card|account|deposit|document|paper|credit|zahlung\w*|geld"
    r"|betrag|summe|\w*rechnung|uberweisung\w*|uberweisen|\w*konto|karte|anzahlung"
    r"|schreiben|beleg|guthaben|posten|forderung|paiement|reglement|argent|somme|montant"
    r"|facture|virement|compte|carte|acompte|avoir|envoyer|payer|regler|pago|pagar|dinero"
    r"|importe|cantidad|suma|factura|transferencia|cuenta|tarjeta|anticipo|documento|saldo"
    r"|pagamento|pagare|denaro|somma|importo|fattura|bonifico|conto|carta|acconto|credito"
    r"|soldi|betaling|betalen|bedrag|som|factuur|overschrijving|rekening|kaart|aanbetaling"
    r"|stuk|maak|over|platnosc\w*|zaplat\w*|pieniadze|kwot\w*|faktur\w*|przelew\w*|przelac"
    r"|przelewac|kont[ao]|kart\w*|zaliczk\w*|wplat\w*|betalning\w*|pengar(?:na)?|pengene"
    r"|pengeny|belopp\w*|bel[øo][bp]\w*|faktura\w*|regning\w*|konto\w*|kort\w*"
    r"|handpenning\w*|forskott|betaling\w*|maksu\w*|raha\w*|summa\w*|lasku\w*|tili\w*"
    r"|kortil\w*|dinheiro|valor|montante|fatura|conta|cartao|adiantamento|platb\w*|penize"
    r"|penez\w*|castk\w*|prevod\w*|uct\w*|zaloh\w*|uhrad\w*"
    r"|bezahlt|beglichen|gezahlt|entrichtet|betaald|afgerekend|voldaan|betalat|betal[dt]|maksanut|maksettu|zaplatil\w*"
    r"|zaplacil\w*|zaplacon\w*|pagou|abono|paye|regle|pagat[oa]|saldat[oa]|pagad[oa]|uhradil\w*"
    r"|charge|claim|charges|creance|kaucj\w*|kauc\w*|deposito|waarborg|deposition|rahat?"
)
# What it may say of it that speaks against paying: a denial, ...
_DENIES: Final = _words(
    r"not|no(?! (?:prazo|valor|montante|total|ambito|dia|mes|final))"
    r"|nothing|never|nil|don.t|nicht|nichts|kein\w*|noch|ne|n['’]\w+|pas|rien|nada"
    r"|nulla|niente|non|niet|niets|geen|nog|nie|nic|nao|nem|semmi|inte|inga|inget|ikke"
    r"|intet|ingen|ei|mitaan|ala|ne(?:musite|platte|zasilejte)\w*"
)
# ... an act that is done, ...
_DONE: Final = _words(
    r"was|were|has|have|had|been|took|taken|reached|arrived|cleared|came|collected"
    r"|received|squared|written|brought|withdrawn|sent|wurde|wurden|haben|hat|genommen"
    r"|angekommen|verbucht|kassiert|erledigt|ausgeglichen|gegenstandslos|zuruckgezogen"
    r"|a ete|ont|est (?:\w+ )?(?:arrive|parvenu|couvert)\w*|arrive|couverte?|retiree?"
    r"|encaissee?|renverrons|jetez|recue?|tomo|llego|queda|cubiert[ao]|ha sido|fue"
    r"|retirad[oa]|cobrad[oa]|devolver\w*|recibid[oa]|stat[oa]|arrivat[oa]|coperta?"
    r"|ritirat[oa]|incassat[oa]|presa|preso|gehaald|gedekt|binnengekomen|aangekomen"
    r"|ingetrokken|ontvangen|geind|zostal\w*|pobra\w*|dotar\w*|pokryt\w*|wplynel\w*"
    r"|otrzymal\w*|drogs|tackt?s|kom|kommit|blev|ble|tag(?:et|its)|dragits|indgaet"
    r"|otettiin|saapui\w*|saatiin|veloitettiin|foi|chegou|recebid[oa]|recebemos|jsme"
    r"|byl\w*|doraz\w*|prisl\w*|strhl\w*"
    r"|bezahlt|beglichen|gezahlt|entrichtet|betaald|afgerekend|voldaan|betalat|betal[dt]|maksanut|maksettu|zaplatil\w*"
    r"|zaplacil\w*|zaplacon\w*|pagou|abono|paye|regle|pagat[oa]|saldat[oa]|pagad[oa]|uhradil\w*"
    r"|met|lapsed|erloschen|eteinte?|cancell?ed|trattenut[oa]|ingehouden|potracon\w*|tagit|retenue?"
)
# ... a purpose, a delay, another version, what happens without the reader.
_LIMITS: Final = _words(
    r"automat\w*|only|solely|just|nur|ausschliesslich|uniquement|seulement|solo|solamente"
    r"|soltanto|apenas|somente|alleen|slechts|enkel|tylko|wylacznie|endast|bara|kun|bare"
    r"|vain|ainoastaan|pouze|jen|wait|hold|warten|attend\w*|tant que|esper\w*|hasta que"
    r"|attenda|attendere|finche|wacht\w*|czekac|vanta|vent|odota\w*|aguard\w*|pocke\w*"
    r"|replace\w*|corrected|withdraw\w*|consider\w*|treat|betrachten|considere\w*"
    r"|beschouw\w*|will|wird|geht|partira|saldra|uscira|gaat|zostanie|bude|dras"
    r"|lediglich|replacement|unterwegs|comparaison|comparison|vergleich\w*"
)
# What is said of taxes, formalities and terms, or ...
_TAX: Final = _words(
    r"vat|gst|taxe?s?|tva|iva|btw|moms\w*|mva|mwst|\w*steuer\w*|dph|alv|arvonlisavero\w*"
    r"|ust|ustg|impost[ao]\w*|impuesto\w*|bollo|verlegd|podat\w*|afa|reverse charge"
    r"|f-skatt|cgi|civa"
    r"|signature|unterschrift|signatur\w*|podpis\w*|assinatura|handtekening|underskrift"
    r"|solicitors|collections?|inkasso|incasso|recouvrement|legal action"
    r"|includes?|included|including|enthalten|enthalt|compris|incluye|incluido|incluso|inbegrepen"
)
# ... denied of means of payment and the like, or ...
_MEANS: Final = _words(
    r"cash|cheques?|checks?|barzahlung\w*|schecks?|bargeld|especes|cheque|numeraire"
    r"|efectivo|talones|contanti|assegni|contant\w*|gotowk\w*|hotovost\w*|kontant\w*"
    r"|kateis\w*|numerario|dinheiro|signature|unterschrift|signatur\w*|podpis\w*|firma"
    r"|assinatura|handtekening|allekirjoitus\w*|underskrift|discount|skonto|escompte"
    r"|sconto|descuento|desconto|korting|rabat\w*|remise|credit notes?"
    r"|notas? d[ei] credito|nota di credito|gutschrift(?:en)?|creditnota\w*|kreditnota\w*"
    r"|kreditfaktura|hyvityslasku\w*|nota korygujaca|note de credit|avoirs?|dobropis\w*"
    r"|bank details|bankverbindung|coordonnees bancaires|datos bancarios"
    r"|coordinate bancarie|bankgegevens|refundable|erstattungsfahig|remboursable"
    r"|reembolsable|rimborsabile"
    r"|betalingsservice|autogiro|avtalegiro|online"
    r"|(?:any )?other account|anderes konto|anderen konten|autre compte|otra cuenta"
    r"|altro conto|andere rekening"
)
# ... asked of the reader, and is no statement against this sum.
_KEEP: Final = _words(
    r"keep|aufbewahr\w*|bewahren|conserve[rz]?|conservar|conservare|bewaar|bewaren"
    r"|zachowa\w*|spara|gem|uschovej\w*|sailyt\w*"
    r"|(?:by|per|par|tramite|por|con|via) (?:bank )?(?:transfer|uberweisung|virement|bonifico"
    r"|transferencia|overschrijving)"
    r"|next|nachste\w*|prochaine?|proxim[oa]|prossim[oa]|volgende|nastepn\w*|nasta|n[æa]?este"
)


def is_doubtful(sentence: str) -> bool:
    """Whether a folded sentence speaks of this document or its payment, and may speak against it.

    Only what is known to be harmless is not: requests to pay, conditions, terms, taxes, means of
    payment. So a statement holds in words that nobody thought of, too.
    """
    text = _NUMBERED.sub(" ", _REMARK.sub(" ", sentence).replace(";;", "").strip())
    if not (_is_prose(text) and _TOPIC.search(text)):
        return False
    if (
        _ALREADY.search(text)
        or is_of_other(text)
        or TERMS.search(text)
        or CONDITIONAL.search(text)
        or _TAX.search(text)
    ):
        return False
    denies, done, limits = (each.search(text) for each in (_DENIES, _DONE, _LIMITS))
    if denies and not (done or limits):
        return not _MEANS.search(text)
    if limits and not (denies or done):
        return not (_KEEP.search(text) or ASKS.search(text))
    return bool(denies or limits or (done and not CONDITION.search(text) and not DUTY.search(text)))


def _is_prose(text: str) -> bool:
    words = [word for word in text.split() if any(map(str.isalpha, word))]
    least = _SENTENCE_WORDS if text.endswith((".", "!")) else _LINE_WORDS
    digits = sum(map(str.isdigit, text))
    if len(words) < least or digits > _DIGITS_MAX * len(text):
        return False
    label = not text.endswith((".", "!")) and has_money(text)
    return not (label or text.endswith("?") or ":" in text or " - " in text)


def asked(rows: Sequence[Row]) -> Iterator[tuple[int, Cell, Amount]]:
    """Each amount in a sentence that asks for payment, with the place of its row and its cell.

    The amount's place in the text is that in its cell. What a payer may take off who pays early,
    or owes who pays late, is not asked for.
    """
    for place, row in enumerate(rows):
        for cell in row.cells:
            lines = [(place, cell), *_following(rows, place, cell)]
            yield from _asked(lines)


def _following(rows: Sequence[Row], place: int, cell: Cell) -> Iterator[tuple[int, Cell]]:
    """The lines that the cell's sentence runs on over."""
    for below in range(place + 1, min(place + _LINES_MAX, len(rows))):
        if (
            len(cell.text) < _RUNS_ON
            or _END.search(cell.text)
            or rows[below].page != rows[place].page
        ):
            return
        cell = rows[below].cells[0]
        if abs(cell.start - rows[place].cells[0].start) > 1:
            return
        yield below, cell


def _asked(lines: Sequence[tuple[int, Cell]]) -> Iterator[tuple[int, Cell, Amount]]:
    text = " ".join(cell.text for _, cell in lines)
    offset = 0
    for place, cell in lines:
        for amount in amounts_in(cell.text):
            sentence = fold(_around(text, offset + amount.start, offset + amount.end))
            asks = len(sentence.split()) >= _WORDS_MIN and ASKS.search(sentence)
            if amount.firm and asks and not CONDITIONAL.search(sentence):
                yield place, cell, amount
        offset += len(cell.text) + 1


def _around(text: str, start: int, end: int) -> str:
    stops = [match.end() for match in _STOP.finditer(text, 0, start)]
    after = _STOP.search(text, end)
    return text[stops[-1] if stops else 0 : after.start() if after else len(text)]


def continued(rows: Sequence[Row]) -> frozenset[str]:
    """Folded lines that go on from the line above or into the one below: no sentences."""
    found = set()
    for above, below in pairwise(rows):
        upper, lower = above.cells[0], below.cells[0]
        if abs(upper.start - lower.start) <= 1 and _goes_on(upper.text, lower.text):
            found |= {upper.folded, lower.folded, fold(above.text), fold(below.text)}
    return frozenset(found)


def _goes_on(line: str, following: str) -> bool:
    ended = line.rstrip().endswith((".", "!", "?", ";", ":"))
    if following[:1].isalpha() and not following[:1].islower():
        return not ended and len(line) >= _WRAPPED_CHARS
    return not ended  # an amount or a number belongs to its label


def unwrapped(lines: Sequence[str]) -> str:
    """One text, in which only lines that go on run into the next one."""
    text, last = "", ""
    for line in map(str.strip, lines):
        text += (" " if _goes_on(last, line) else " ;; ") + line if line else ""
        last = line
    return text
