"""Which sentences forbid to pay: a finished act about this amount, or an order to the reader.

Conditions, wishes and general terms are none: the clauses that make a sentence one are here.
"""

import re
from collections.abc import Sequence
from typing import Final

from pipeline.steps.extract.page_text import document_phrases, payment_phrases
from pipeline.steps.extract.page_text.amounts import amounts_in

_IF: Final = (
    r"if|mocht(?:en)?|skulle|^har (?:du|ni|de|i|dere)|^haben sie|^hast du|avez-vous|^heeft u"
    r"|unless|once|when(?:ever)?|until|till|should|in case|as soon as|after|upon|provided|falls"
    r"|sofern"
    r"|wenn|sobald|sollten?|bis|soweit|si (?:vous|le|la|l|no|non|ya|deja|votre|su|el|cette|elle"
    r"|il)|des que|lorsque|jusqu|quand|tant que|a moins|apres|indien"
    r"|wanneer|zodra|tot|totdat|mits|pokud|jestlize|dokud|jakmile|qualora|se (?:non|nao|il|la|o|a"
    r"|ja|gia|l|questa|esta)|finche|fino|quando|cuando"
    r"|hasta|salvo|caso|ate|assim que|jesli|jezeli|gdy|dopoki|chyba|hvis|safremt|dersom|inntil"
    r"|indtil"
    r"|om (?:du|ni|de|i|dere|inte|ikke|betal\w*|faktura\w*)|tills|jos|kunnes|mikali|ha (?:a|az|on"
    r"|onok|mar|nem)|amig"
    r"|amennyiben"
    r"|nar|kun"
)
_MODAL: Final = (
    r"(?<!\d )may(?! \d)|can|could|might|must|shall|would|to be|muss|mussen|kann|konnen|darf|doit"
    r"|peut|pouvez|devra|deve|puo|potete|puede|debe|pode|podem|devem|dient|moet|moeten|kan|kunt|mag"
    r"|powinn[aoy]|musi|moze|nalezy|muze|lze|skal|kan|ska|skall|maste|tulee|pitaa|voi|voit|kell"
    r"|lehet|not|never|nicht|kein\w*|pas|non|no(?![.:#]| ?[\w-]*\d)|niet|geen|nie|neni|nebyl\w*"
    r"|ikke|inte|ej|ei|nem|nao"
)
_TERMS: Final = re.compile(
    r"\b(?:interests?|late fees?|surcharges?|penalt|cheques?|verzugszins|mahngebuhr|saumnis"
    r"|interets?"
    r"|penalite|interessi|mora|intereses|juros|rente|odsetk|urok|penale|morarente|drojsmal"
    r"|viivastys"
    r"|kesedelmi|title to|ownership|property|eigentum|vorbehalt|propriete|proprieta|propiedad"
    r"|eigendom"
    r"|wlasnosc|vlastnictvi|ejendom|eiendom|aganderatt|omistusoikeus|tulajdon)"
)
_BEFORE: Final = {
    False: re.compile(rf"\b(?:{_IF})\b[^.!?]*$"),
    True: re.compile(rf"\b(?:{_IF}|{_MODAL})\b[^.!?]*$"),
}
_AFTER: Final = re.compile(
    r"^[^.!?]{0,40}\b(?:if|unless|falls|sofern|wenn|indien|jesli|pokud|hvis|jos|qualora|lorsque)\b"
)
_DENIED: Final = re.compile(
    r"^(?: [\w.']+){0,2} (?:not|nicht|pas|niet|non|nao|nie|neni|ikke|inte|ej|nem)\b"
)
_NEGATED: Final = re.compile(r"\b(?:not|nicht|pas|non|niet|nie|neni|ikke|inte|nem|nao|noch)\b")
_CONDITION_CHARS: Final = 80  # how far before a statement its condition can stand
# An order not to pay, and what a document calls itself, may itself be worded with such verbs.
_WORDED_AS_ORDER: Final = ("retention", "not_an_invoice", "not_to_be_paid", "specimen", "reminder")
_PHRASES: Final = {**payment_phrases.PHRASES, **document_phrases.PHRASES}
_PATTERNS: Final = {
    code: re.compile(rf"\b(?:{'|'.join(patterns)})\w*") for code, patterns in _PHRASES.items()
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
    before = sentence[max(0, match.start() - _CONDITION_CHARS) : match.start()]
    after = sentence[match.end() :]
    if _BEFORE[not order].search(before) or _TERMS.search(sentence):
        return False
    if order:
        return True
    return not (
        _NEGATED.search(match[0])
        or _AFTER.search(after)
        or _DENIED.search(after)
        or _labels_amount(after)
    )


def _labels_amount(rest: str) -> bool:
    """Whether what follows is an amount: then a part was paid, and the sums account for it."""
    first = next(iter(amounts_in(rest)), None)
    return first is not None and first.firm and not rest[: first.start].strip(" :=;\n-–")
