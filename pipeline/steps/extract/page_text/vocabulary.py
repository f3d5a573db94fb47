"""The words that invoices use, in folded form (see ``fold``), by what they mean."""

import re
from typing import Final


def _any(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{word})" for word in words))


DUE: Final = _any(
    r"\b(?:total |net )?(?:amount|balance|sum|total|payment)s? (?:now )?(?:due|payable|owed"
    r"|owing)\b"
    r"(?! date)",
    r"\bdue payable\b|\bpayable amount\b|\bamount to (?:pay|be paid)\b|\btotal to pay\b",
    r"\b(?:please pay|pay this amount|amount outstanding|outstanding (?:amount|balance))\b",
    r"\bzahlbetrag\b|\bzu (?:be)?zahlen(?:der|de)?\b(?! bis)|\bzahlbarer betrag\b"
    r"|\bzu uberweisen\b",
    r"\b(?:offener|falliger|ausstehender|restlicher) betrag\b|\brestbetrag\b|\brestzahlung\b",
    r"\bk uhrade\b|\bk zaplaceni\b|\bzbyva (?:k )?uhrad|\bna uhradu\b",
    r"\bnet a payer\b|\bmontant (?:total )?(?:a payer|du)\b|\breste a payer\b"
    r"|\bsolde (?:du|a payer)",
    r"\btotal a payer\b|\bte (?:betalen|voldoen)\b|\bopenstaand\b|\bverschuldigd bedrag\b",
    r"\b(?:totale|importo|netto|saldo) (?:da|a) pagare\b|\bimporto dovuto\b",
    r"\b(?:total|importe|liquido|saldo|valor|cantidad) a pagar\b|\bimporte adeudado\b",
    r"\bdo zaplaty\b|\bfizetendo\b|\batt betala\b|\b(?:a|at) betale\b|\bmaksettava\b",
)
EXCLUDING: Final = _any(
    r"\bex(?:cl|kl|c\b)|\b(?:ohne|without|before|hors|bez|sans|sin|senza|esclus\w*|zzgl|plus)\b",
)
NET: Final = _any(
    r"\bsub-? ?totale?s?\b|\bsubtotaal\b|\bsous-? ?total\b|\bzwischensumme\b|\bmezisoucet\b",
    r"\bpositionssumme\b|\bwarenwert\b|\bnet+o?(?:betrag|summe|bedrag|preis)?\b(?! a p| pay)",
    r"\b(?:excl|exkl|ohne|without|before|hors|bez|sans|sin|senza|esclus|zzgl|plus|exclud)",
    r"\bexc?\.? (?:vat|tax|gst|btw|ust|mwst)|\bht\b|\bimponibile\b|\bbase imponible\b"
    r"|\bgrondslag\b",
    r"\bzaklad dane\b|\btax(?:able)? (?:base|basis|amount)\b|\bsteuerbasis|\bbasisbetrag\b",
    r"\bcena bez\b|\bpretax\b|\bpre-tax\b|\bline total",
)
GROSS: Final = _any(
    r"\bincl|\binkl|\bincluding|\bttc\b|\bbrutto|\bgross\b|\bs dph\b|\bvc(?:etne)?\.? dph\b",
    r"\btvac\b|\btva (?:incluse|comprise)\b|\biva (?:incl|compres)|\bbtw inbegrepen\b",
)
TAX: Final = _any(
    r"\b(?:vat|tax|taxes|gst|hst|pst|qst|ust|u?st\.|mwst|umsatzsteuer|mehrwertsteuer|steuer\w*)\b",
    r"\b(?:dph|btw|tva|iva|igic|moms|mva|pvm|afa|ddv|tps|tvq)\b|\bversicherung(?:s)?teuer\b",
)
OTHER: Final = _any(
    r"\bdiscount|\brabat|\bskonto|\bnachlass|\bremise\b|\bkorting|\bsconto|\bdescuento|\bsleva",
    r"\bsaving|\bshipping|\bfreight|\bversand|\bfracht|\bport\b|\bverzend|\bquantity|\bqty\b",
    r"\bhours?\b|\bitems?\b|\bweight|\bunits?\b|\bmenge|\bcount\b|\bpoints?\b|\bbudget",
    r"\bthis (?:month|year|period)|\byear to date|\bytd\b|\bper (?:unit|month|year|item)",
    r"\bzuschlag|\babschlag|\bzu-/ab|\bprice\b|\bpreis\b|\bcharges?\b|\bcredits?\b|\bfees?\b",
    r"\b(?:zahl|pay)\w* ?(?:erhalten|received)|\bpage\b|\bseite\b|\b(?:tax|vat) total",
)
TOTAL: Final = _any(
    r"^(?:(?:grand|invoice|bill|final|overall|order) )?totals?\b",
    r"^(?:total )?invoice (?:amount|value|sum|total)\b|^amount (?:total|of invoice)\b|^sum total\b",
    r"^(?:rechnungs|gesamt|end|brutto)[- ]?(?:betrag|summe|beitrag)\b|^gesamtpreis\b|^gesamt\b"
    r"|^summe\b",
    r"^rechnungsbeitrag\b|^rechnung(?:s)?(?:summe|total)\b|^endsumme\b|^betrag (?:gesamt|brutto)\b",
    r"^celkem\b|^celkova (?:castka|cena)\b|^castka celkem\b|^spolu\b|^suma\b|^cena celkem\b",
    r"^(?:factuur ?)?totaal(?:bedrag)?\b|^totaal\b|^factuurbedrag\b|^eindtotaal\b",
    r"^(?:montant )?total(?:e)?\b|^montant (?:ttc|total|de la facture)\b",
    r"^(?:importe|valor) total\b|^importo totale\b|^razem\b|^osszesen\b|^summa\b|^i alt\b",
)
TAKEN_OFF: Final = _any(
    r"\b(?:amount |already |less |pre-?)?paid\b|\bpre-?payments?\b|\bdeposits?\b|\bpayments?\b"
    r"(?! (?:terms|due|details|method|reference|info|by|to|within|date))",
    r"\bbereits (?:be|ge)zahlt|\banzahlung|\bvorauszahlung|\babschlagszahlung|\berhaltene zahlung",
    r"\bzaloh|\buhrazen|\bzaplacen|\bacompte|\bdeja (?:paye|verse|regle)|\bpaiement recu",
    r"\baanbetaling|\bvooruitbetaling|\breeds (?:betaald|voldaan)|\bacconto|\bgia pagat",
    r"\banticip|\bentrega a cuenta|\bpagado\b|\bcredit (?:applied|balance)|\bcredits? applied",
)
EARLIER: Final = _any(
    r"\b(?:previous|opening|prior|past due|brought forward|overdue|last) ?(?:balance|amount|bill)?",
    r"\bminimum\b|\bnew balance\b|\baccount balance\b|\bkontostand\b",
    r"\bvortrag|\bsaldovortrag|\brestant|\bsolde precedent|\bvorige saldo|\bsaldo anterior",
)
INVOICE: Final = _any(
    r"invoice|rechnung|faktur|factuur|facture|factura|fattura|fatura|\bbill\b|\bszamla|\blasku\b",
    r"danovy doklad",
)
LABEL_LIKE: Final = re.compile(r"[a-z]{2}")
