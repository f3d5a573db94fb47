"""Which sentences forbid to pay: a finished act about this amount, or an order to the reader.

Conditions, wishes and general terms are none: the clauses that make a sentence one are here.
"""

import re
from collections.abc import Sequence
from typing import Final

from reader.page_text import document_phrases, payment_phrases
from reader.page_text.amounts import amounts_in

_IF: Final = (
    r"if|mocht(?:en)?|skulle|^har (?:du|ni|de|i|dere)|^haben sie|^hast du|avez-vous|^heeft u"
    r"|unless|once|when(?:ever)?|(?:until|till)(?! now| today)|should|in case|as soon as|after"
    r"|upon|provided|falls"
    r"|sofern"
    r"|wenn|sobald|sollten?|bis(?! heute| jetzt| dato)|soweit|si (?:vous|le|la|l|no|non|ya|deja"
    r"|votre|su|el|cette|elle"
    r"|il)|des que|lorsque|jusqu(?!.a (?:ce jour|present))|quand|tant que|a moins|apres|indien"
    r"|wanneer|zodra|tot(?! op heden| nu| vandaag)|totdat|mits|pokud|jestlize|dokud|jakmile"
    r"|qualora|se (?:non|nao|il|la|o|a"
    r"|ja|gia|l|questa|esta)|finche|fino(?! ad? oggi)|quando|cuando"
    r"|hasta(?! la fecha| hoy| ahora)|salvo|caso|ate(?! (?:a|esta) data| hoje| agora)|assim que"
    r"|jesli|jezeli|gdy|dopoki|chyba|hvis|safremt|dersom|inntil"
    r"|indtil"
    r"|om (?:du|ni|de|i|dere|inte|ikke|betal\w*|faktura\w*)|tills|jos|kunnes|mikali|ha (?:a|az|on"
    r"|onok|mar|nem)|amig"
    r"|amennyiben"
    r"|nar|kun"
)
_MODAL: Final = (
    r"(?<!\d )may(?! \d)|can|could|might|must|shall|would|to be|muss|mussen|kann|konnen|darf|doit"
    r"|peut|pouvez|devra|deve|puo|potete|puede|debe|pode|podem|devem|dient|moet|moeten|kan|kunt"
    r"|mag"
    r"|powinn[aoy]|musi|moze|nalezy|muze|lze|skal|kan|ska|skall|maste|tulee|pitaa|voi|voit|kell"
    r"|lehet|not|never|nicht|kein\w*|pas|non|no(?![.:#]| ?[\w-]*\d)|niet|geen|nie|neni|nebyl\w*"
    r"|ikke|inte|ej|ei|nem|nao"
)
TERMS: Final = re.compile(
    r"\b(?:interests?|late fees?|surcharges?|penalt|cheques are|verzugszins|mahngebuhr|saumnis"
    r"|interets?"
    r"|penalite|interessi|mora|intereses|juros|rente|odsetk|urok|penale|morarente|drojsmal"
    r"|viivastys"
    r"|kesedelmi|title to|ownership|property|eigentum|vorbehalt|propriete|proprieta|propiedad"
    r"|eigendom"
    r"|wlasnosc|vlastnictvi|ejendom|eiendom|aganderatt|omistusoikeus|tulajdon)"
)
_BEFORE: Final = {
    False: re.compile(rf"\b(?:{_IF})\b[^.!?]*$"),
    True: re.compile(rf"\b(?:{_IF})\b[^.!?]*$|\b(?:{_MODAL})\b[^.!?:]*$"),
}
_AFTER: Final = re.compile(
    r"^[^.!?]{0,40}\b(?:if|unless|falls|sofern|wenn|indien|jesli|pokud|hvis|jos|qualora|lorsque)\b"
)
_DENIED: Final = re.compile(
    r"^(?: [\w.']+){0,2} (?:not|nicht|pas|niet|non(?! avenu)|nao|nie|neni|ikke|inte|ej|nem)\b"
)
_NEGATED: Final = re.compile(
    r"\b(?:not|nicht|pas|non(?! avenu)|niet|nie|neni|ikke|inte|nem|nao|noch)\b"
)
_EARLIER: Final = (
    r"previous|prior|earlier|last|preceding|vorige|vorherige|letzte|fruhere|precedente?|derniere?"
    r"|ultim[ao]|anterior|laatste|poprzedni|ostatni|predchozi|predchadzajuc|posledni|minul|forrige"
    r"|tidligere|sidste|siste|foregaende|forra|tidigare|senaste|edelli|viime|elozo|korabbi|utolso"
)
_PAPER: Final = (
    r"invoices?|bill|payments?|rechnung|zahlung|facture|paiement|reglement|fattura|pagamento"
    r"|factura|pago|fatura|factuur|betaling|faktur|platnosc|platb|regning|betalning|lasku|maksu"
    r"|szamla|befizetes"
)
_OTHER_PAPER: Final = re.compile(
    rf"\b(?:(?:{_EARLIER})\w*,? (?:\w+ )?(?:{_PAPER})|(?:{_PAPER})\w* (?:{_EARLIER}))"
)
_THIS_PAPER: Final = re.compile(
    r"\b(?:this|present|dies\w*|cette|quest[ao]|deze|t[ae]to|ninie\w+|denne|dette|denna|detta|tama"
    r"|ez|jelen)\b"
)
_POSSIBLE: Final = re.compile(
    r"\b(?:is|are|ist|sind|est|e|es|er|ar|on|jest|je) (?:\w+ ){0,2}(?:possib|mogli|mogeli|posib"
    r"|mozliw|mozn|mulig|mojlig|mahdollis|lehetseges)"
)
_BEFORE_AMOUNT: Final = re.compile(r"(?:[a-z]{2,3}|[^\w\s]{1,2})?")  # its currency
DUTY: Final = re.compile(
    rf"\b(?:{_MODAL}|ma (?:være|vaere|vare)|should|soll|sollte|deve|debe|musi|oltava|kell)\b"
)
CONDITION: Final = re.compile(rf"\b(?:{_IF})\b")
_CONDITION_CHARS: Final = 80  # how far before a statement its condition can stand
# An order not to pay, and what a document calls itself, may itself be worded with such verbs.
_WORDED_AS_ORDER: Final = ("retention", "not_an_invoice", "not_to_be_paid", "specimen", "reminder")
_PHRASES: Final = {**payment_phrases.PHRASES, **document_phrases.PHRASES}
_PAYMENT: Final = (
    r"payment|remittance|transfer|zahlung|uberweisung|paiement|reglement|virement|pagamento"
    r"|bonifico|versamento|pago|transferencia|betaling|overschrijving|wplat|przelew|platnosc"
    r"|platb|uhrad|(?:ind|inn)betaling|(?:in)?betalning|maksu|suoritu|(?:be)?fizetes|utalas"
)
_RECEIVED: Final = (
    r"received|receipt of|erhalten(?! sie)|eingegangen|eingetroffen|recue?s?|parvenue?"
    r"|ricevut[oi]|pervenut"
    r"|recibi|recebe|ontvangen|ontvingen|otrzyma|wplyne|obdrzel|prijal|prijat|pripsan|modtaget"
    r"|mottatt|mottagit|mottaget|inkommit|vastaanot|saapunut|megkap|megerkez|beerkez"
)
_TAKES: Final = (
    r"collect|debit|charge|taken?|withdraw|abgebucht|eingezogen|einziehen|abbuchen|belast|prelev"
    r"|addebit|incass|cargar|cargad|adeud|cobr|retirad|afschrijv|afgeschrev|schrijven|pobran"
    r"|pobier|sciag|strz|strh|inkas|odect|odpis|stiah|trekk|tr[æe]k|h[æe]ves|dras|veloit|perit"
    r"|levon|beszed|terhel"
)
_STOPPED: Final = (
    r"block|on hold|frozen|pending|gesperrt|eingefroren|ausgesetzt|bloqu|bloccat|sospes|suspen"
    r"|geblok|opgeschort|zablok|wstrzym|blokov|blokeret|blokkert|pozastav|sp[æe]rre|sparra|frys"
    r"|ruht|awaits?|afventer|avventer|avvaktar|vilar|odottaa|keskeyt|felfugg"
)
_REPLACED: Final = (
    r"(?:replaced|superseded) by|ersetzt durch|remplacee?s? par|sostituit[oa] d\w+"
    r"|su[bs]?stituid[oa]"
    r" p\w+|vervangen door|zastapion[aey]|nahrazen[aoy]?|nahraden[aey]|erstattet a[fv]|ersatt av"
    r"|korvattu|helyette?"
)
_NOTHING: Final = (
    r"nothing|nichts|rien|nulla|niente|nada|niets|nic|intet|inget|ingenting|mitaan|semmi"
)
_MAKE_NO: Final = (
    r"(?:do not|don.t) (?:make|send|initiate|arrange)|non (?:effettu|esegu|dispo|invi)"
    r"|ne pas (?:effectuer|faire|envoyer)|n.effectue[rz] (?:pas|aucun)|no (?:realic|efectu|hag|env)"
    r"|nao (?:efetu|realiz|fac|env)|nie (?:dokonuj|wykonuj|wysylaj)|neprovadejte|foretag ikke"
    r"|ikke foreta|gor ingen"
)
_OWED: Final = (
    r"due|owe[ds]?|owing|outstanding|offen|schuld|due?s? |dovut|pendient|deb[ei]|verschuldigd"
    r"|zaplat|uhrad|zbyva|udest|utest|maksett|fizet|tartoz"
)
# Two things that a statement says in either order, and how far they may be apart.
_REFUND: Final = (
    r"refund|ruck(?:er)?stattung|ruckzahlung|erstattung|remboursement|rimborso|reembolso"
    r"|devolucion"
    r"|devolucao|terugbetaling|zwrot|vratka|vraceni|tilbagebetaling|tilbakebetaling"
    r"|aterbetalning|hyvitys|palautus|visszaterites"
)
_TO_READER: Final = (
    r"(?:to|auf|an|sur|sul|su|en|na|op|til|till) (?:your|ihr|votre|vostro|suo|su|sua|uw|rachunek"
    r"|vas"
    r"|jeres|din|deres|ert|er|konto)|kontoen din|tilillenne|on szamla"
)
_PAIRS: Final = {
    "refund": ((_REFUND, _TO_READER),),
    "settled": ((_PAYMENT, _RECEIVED), (_RECEIVED, _PAYMENT)),
    "debited": (("automati", _TAKES), (_TAKES, r"automati|mandate?|mandato")),
    "retention": ((_PAYMENT, _STOPPED),),
    "void": ((_REPLACED, rf"(?:{_PAPER})\w*\W{{0,3}}(?:\w+\W{{1,2}})?\d|\d+\. (?:szamu )?szamla"),),
    "not_to_be_paid": ((_NOTHING, _OWED), (_MAKE_NO, _PAYMENT)),
}
_APART_MAX: Final = 40  # characters, of which none begins a sum
_NO_SUM: Final = r"(?! [-–−]\d|\d[.,]\d\d(?!\d))[^.!?]"
_PATTERNS: Final = {
    code: re.compile(
        rf"\b(?:{'|'.join(patterns)})\w*"
        + "".join(
            rf"|\b(?:{one})\w*(?:{_NO_SUM}){{0,{_APART_MAX}}}?\b(?:{other})\w*"
            for one, other in _PAIRS.get(code, ())
        )
    )
    for code, patterns in _PHRASES.items()
}


def stated(sentences: Sequence[str]) -> frozenset[str]:
    """What folded sentences state outright about paying: codes of holds."""
    return frozenset(
        code
        for code, pattern in _PATTERNS.items()
        if any(_states(code, pattern, sentence) for sentence in sentences)
    )


def _states(code: str, pattern: re.Pattern[str], sentence: str) -> bool:
    if sentence.endswith("?"):
        return False
    return any(_outright(code, sentence, match) for match in pattern.finditer(sentence))


def _outright(code: str, sentence: str, match: re.Match[str]) -> bool:
    """Whether it is no condition, no possibility, no general term and no part payment."""
    order = code in _WORDED_AS_ORDER
    if not order and (_POSSIBLE.search(sentence) or is_of_other(sentence)):
        return False
    before = sentence[max(0, match.start() - _CONDITION_CHARS) : match.start()]
    after = sentence[match.end() :]
    if _BEFORE[not order].search(before) or TERMS.search(sentence):
        return False
    if order:
        return True
    return not (
        _NEGATED.search(match[0])
        or (code == "settled" and DUTY.search(match[0]))
        or _AFTER.search(after)
        or _DENIED.search(after)
        or _labels_amount(after)
    )


def is_of_other(sentence: str) -> bool:
    """Whether a sentence speaks of an earlier invoice or payment, and not of this one."""
    return bool(_OTHER_PAPER.search(sentence)) and not _THIS_PAPER.search(sentence)


def _labels_amount(rest: str) -> bool:
    """Whether what follows is an amount: then a part was paid, and the sums account for it."""
    first = next(iter(amounts_in(rest)), None)
    if first is None or not first.firm:
        return False
    return bool(_BEFORE_AMOUNT.fullmatch(rest[: first.start].strip(" :=;\n-–")))
