"""The words that invoices use, in folded form (see ``fold``), by what they mean.

Fourteen languages: English, German, French, Italian, Spanish, Portuguese, Dutch, Polish, Czech,
Danish, Swedish, Norwegian, Finnish and Hungarian. Folding keeps ``ø`` and ``æ``.
"""

import re
from typing import Final


def _any(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{word})" for word in words))


DUE: Final = _any(
    r"\b(?:total |net )?(?:amount|balance|sum|total|payment)s? (?:now |still |remaining )?"
    r"(?:due|payable|owed|owing|outstanding)\b(?! date)",
    r"\bdue (?:payable|amount|balance|total|now)\b|\bpayable (?:amount|total|now)\b",
    r"\b(?:amount|total|sum|balance) to (?:pay|be paid|remit|transfer)\b|\byou owe\b",
    r"\b(?:please (?:pay|remit)|pay this amount|to be paid|now due|left to pay)\b",
    r"\b(?:outstanding|unpaid|remaining|open) (?:amount|balance|sum|total)\b|^to pay$",
    r"\b(?:balance|amount) remaining\b",
    r"\bzahl(?:ungs)?betrag\b|\b(?:zu|zur) (?:be)?zahl(?:en(?:der|de|d)?|ung)\b(?! bis)",
    r"\bzahlbar(?:er betrag)?\b(?! bis| inner| sofort| ohne| netto| nach| per)",
    r"\bzu (?:uberweisen(?:der)?|begleichen(?:der)?|entrichten(?:der)?)\b",
    r"\b(?:offene|fallige|ausstehende|restliche|verbleibende|noch offene)r?s? (?:betrag|summe"
    r"|rest)",
    r"\b(?:rest|uberweisungs|forderungs)(?:betrag|zahlung|forderung|summe)\b"
    r"|\bbetrag (?:zur zahlung )?fallig\b",
    r"\bnet a (?:payer|regler|verser)\b|\b(?:reste|solde|montant|total|somme)(?: \w{1,5})? "
    r"(?:a (?:payer|regler|verser|acquitter)|du|due|exigible)\b",
    r"\bmontant (?:total |net |ttc )?(?:a (?:payer|regler)|du)\b|^a (?:payer|regler)\b(?! avant)",
    r"\b(?:nog )?te (?:betalen|voldoen)\b(?! voor| tegen)|\bopenstaand|\b(?:ver)?schuldigd bedrag\b"
    r"|\bte ontvangen bedrag\b|\bover te maken\b|\brestant te\b",
    r"\b(?:totale|importo|netto|saldo|somma|resto)(?: \w{1,9})? (?:da|a) (?:pagare|versare|saldare)"
    r"|\bda (?:pagare|versare|saldare)\b(?! entro)|\bimporto dovuto\b|\btotale dovuto\b"
    r"|\bnetto a pagare\b|\bsaldo dovuto\b|^da pagare\b"
    r"|\bda versare\b|\bsaldo fattura\b",
    r"\b(?:total|importe|liquido|saldo|valor|cantidad|suma|montante|neto|resto|quantia)"
    r"(?: \w{1,9})? (?:a|por|em|de?) (?:pagar|abonar|ingresar|liquidar|pago|pagamento|divida)\b",
    r"\bimporte (?:adeudado|pendiente|debido)\b|\b(?:saldo|total|valor) (?:pendiente|em divida|"
    r"devido|adeudado)\b|^a pagar\b|\bpendiente de pago\b|\bvalor devido\b|\bmontante devido\b"
    r"|\ba (?:pagar|liquidar|abonar)\b(?! ate| antes| hasta| em \d)",
    r"\bdo (?:zaplaty|zaplacenia)\b(?! do)|^do przelewu\b|\bpozostaje (?:do)?|\bnaleznosc\b"
    r"|\bkwota naleznosci\b|\bkwota do\b|\bnaleznosc ogolem\b",
    r"\bk (?:uhrade|zaplaceni|platbe|zaplateni)\b(?! do)|\bzbyva\b|\bna uhradu\b"
    r"|\bdoplatek\b|\bnedoplatek\b|\bcelkem k\b",
    r"\bfizetend[o]\b|\bfizetesre\b|\bhatralek\b",
    r"\b(?:att|kvar att) betala\b(?! senast)|\batt erlagga\b|\boss tillgodo\b"
    r"|\bbelopp att\b|\bbetalningsbelopp\b|\bforfallet belopp\b",
    r"\b(?:a|at|til|for) betal(?:e|ing|es)\b(?! senest| innen| inden)|\bskyldig\b|\btil gode\b"
    r"|\b(?:utestaende|udestaende|resterende|skyldigt?) (?:bel[øo]p|bel[øo]b|saldo)\b"
    r"|\bbetalingsbel[øo][pb]\b|\bforfald(?:ent?|er)? bel[øo]b\b",
    r"\bmaksettava(?:a)?\b|\bmaksetaan\b|\bavoinna\b|\bmaksamatta\b",
)
EXCLUDING: Final = _any(
    r"\bex(?:cl|kl|c\b)|\b(?:ohne|without|before|hors|bez|sans|sin|senza|esclus\w*|zzgl|plus)\b",
)
NET: Final = _any(
    r"\bsub-? ?totale?s?\b|\bsubtotaal\b|\bsous-? ?total\b|\bzwischen-?(?:summe|total)\b"
    r"|\bmezisoucet\b|\bdelsumma?\b|\bmellansumma\b|\bvalisumma\b|\breszosszeg\b",
    r"\bpositionssumme\b|\b(?:waren|liefer)wert\b|\bsubtotale\b|\bsuma czesciowa\b",
    r"\bnet+o?(?:betrag|summe|bedrag|preis|bel[øo][pb]|belopp|umsatz|total|wert)?\b"
    r"(?! a p| a r| da p| pay)|\bneto\b|\bnetta\b",
    r"\b(?:excl|exkl|ekskl|eksl|ohne|without|before|hors|bez|sans|sin|senza|esclus|zzgl|plus"
    r"|exclud)",
    r"\bexc?\.? (?:vat|tax|gst|btw|ust|mwst|moms|mva|iva)|\bht\b|\bh\.t\.|\bimponibile\b",
    r"\bbase (?:imponible|imposable|tributavel|de imposto|ht)\b|\bgrondslag\b|\bmerce\b",
    r"\bzaklad\b|\btax(?:able)? (?:base|basis|amount|value)\b|\bsteuerbasis|\bbasisbetrag\b"
    r"|\bbemessungsgrundlage|\bvatable\b|\bincidencia\b|\b(?:skatte|moms|mva)[- ]?grundlag",
    r"\bcena bez\b|\bpretax\b|\bpre-tax\b|\bline total|\bveroton\b|\balv 0\b|\badoalap\b"
    r"|\bpodstawa\b|\bunderlag\b|\biliquido\b|\bvarebel[øo][bp]\b",
)
GROSS: Final = _any(
    r"\binc\b|\bincl|\btaxes comprises\b|\binkl|\bincluding|\bttc\b|\bt\.t\.c|\bbrutt|\bgross\b"
    r"|\bs dph\b",
    r"\bvc(?:etne)?\.? dph\b|\btvac\b|\b(?:tva|iva) (?:incl|compris|compres)|\bbtw inbegrepen\b",
    r"\bcom iva\b|\bcon iva\b|\bivato\b|\bsis\. ?alv\b|\bverollinen\b|\bmed (?:moms|mva)\b",
)
TAX: Final = _any(
    r"\b(?:vat|tax|taxes|gst|hst|pst|qst|ust|u?st\.|mwst|m\.?w\.?st\.?|umsatzsteuer"
    r"|mehrwertsteuer|steuer\w*)\b",
    r"\b(?:dph|btw|t\.?v\.?a\.?|i\.?v\.?a\.?|igic|irpf|moms|momsbel[øo]b|mva|pvm|afa|ddv|tps|tvq"
    r"|alv|ptu)\b|\barvonlisavero|\bmerverdi|\bmervardesskatt|\bversicherung(?:s)?teuer\b"
    r"|\bimposta\b|\bimpuesto\b|\bimposto\b|\bpodatek\b|\bbelasting\b|\bdan\b",
)
ADJUSTMENT: Final = _any(
    r"\bdiscount|\brabat|\bskonto|\bnachlass|\bremise\b|\bkorting|\bsconto|\bdescuento|\bdesconto"
    r"|\bsleva|\balennus|\bkedvezmeny|\breduction\b|\breduccion\b|\bupust\b|\babatimento\b"
    r"|\bbonifi|\brebate\b|\bristourne\b|\bavdrag\b|\bhyvitys",
    r"\bshipping|\bfreight|\bversand|\bfracht|\bporto?\b|\bverzend|\bfrais\b|\bspese\b|\bgastos\b"
    r"|\bportes\b|\bdoprav|\bpostov|\bwysylk|\btransport|\bfragt\b|\bfrakt\b|\btoimitus"
    r"|\bszallit|\bhandling\b|\bpostage\b|\bdelivery\b|\bcarriage\b|\bverpackung|\blivraison\b",
    r"\bzuschlag|\babschlag\b|\bzu-/ab|\bsurcharge|\btoeslag|\btillagg|\btill[ae]g\b|\bgebyr"
    r"|\bcharges?\b|\bfees?\b|\bgebuhr|\bavgift|\bsupplement|\brecargo|\bmaggiorazione\b"
    r"|\btip\b|\bgratuity\b|\btrinkgeld\b|\bservice charge\b|\beco-?(?:participation|contribution)"
    r"|\bbollo\b|\bretencion\b|\britenuta\b|\bretencao\b|\bpfand\b|\bstatiegeld\b",
)
OTHER: Final = _any(
    r"\bsaving|\bquantity|\bqty\b|\bhours?\b|\bitems?\b|\bweight|\bunits?\b|\bmenge|\bcount\b"
    r"|\bpoints?\b|\bbudget|\bstunden\b|\bkg\b|\bpackages\b|\bparcels\b",
    r"\bthis (?:month|year|period)|\byear to date|\bytd\b|\bper (?:unit|month|year|item)",
    r"\bprice\b|\bpreis\b|\bcredits?\b|\bcapital\b|\bkapital\b",
    r"\b(?:zahl|pay)\w* ?(?:erhalten|received)|\bpage\b|\bseite\b|\b(?:tax|vat) total",
)
ROUNDING: Final = _any(
    r"\bround(?:ing|ed|-?off)\b|\brundung|\b(?:auf|ab)?rundung|\bgerundet\b|\barrondi",
    r"\barrotondament|\bredondeo\b|\barredondament|\bafronding|\bzaokr|\bhalerove vyrovnani\b",
    r"\b(?:ore?s?|ores)?-?\s?(?:av|af)rund|\b[øo]re?s?(?:av|af)?rund|\bavrund|\bafrund"
    r"|\b[øo]reavrunding|\bpyoristys|\bkerekites",
)
TOTAL: Final = _any(
    r"^(?:(?:grand|invoice|bill|final|overall|order|gross) )?totals?\b(?! (?:hours|net\b|tax))",
    r"^(?:total )?(?:invoice|bill|gross) (?:amount|value|sum|total)\b|^sum total\b"
    r"|^amount (?:total|of (?:this )?invoice)\b|^total invoiced\b",
    r"^(?:rechnungs|gesamt|end|brutto|total)[- ]?(?:betrag|summe|beitrag|endbetrag|wert)\b"
    r"|^gesamtpreis\b|^gesamt\b|^summe\b|^gesamtrechnungs\w*|^brutto\b|^insgesamt\b",
    r"^rechnung(?:s)?-?(?:end)?(?:summe|total|betrag)\b|^endsumme\b|^betrag (?:gesamt|brutto"
    r"|inkl)\b",
    r"^celkem\b|^celkova (?:castka|cena|suma)\b|^castka celkem\b|^spolu\b|^suma\b|^cena celkem\b"
    r"|^soucet celkem\b|^cena (?:s dph|vcetne)|^celkem s dph\b|^fakturovana castka\b",
    r"^(?:factuur ?)?(?:eind)?totaal(?:bedrag)?\b|^(?:factuur|bruto ?|nota)bedrag\b|^bedrag incl",
    r"^(?:montant )?total(?:e)?\b|^montant (?:ttc|total|brut|de la facture|facture)\b",
    r"^(?:importe|valor|montante) total\b|^(?:importo|valore|totale) (?:totale|lordo|fattura"
    r"|documento|complessivo)\b|^lordo\b|^importe (?:de la )?factura\b|^valor da fatura\b",
    r"^(?:lacznie|razem|ogolem|wartosc brutto|kwota brutto|wartosc faktury|kwota faktury)\b",
    r"^osszesen\b|^(?:szamla )?(?:brutto )?(?:vegosszeg|osszeg|osszesen)\b|^brutto osszeg\b"
    r"|^szamla (?:erteke|osszege)\b|^vegosszeg\b",
    r"^(?:total|slut|faktura)?summa\b|^(?:faktura|total|slut|brutto)(?:belopp|bel[øo][pb])\b"
    r"|^total(?:t|en)?\b|^fakturasum\b|^sum(?:ma)?\b(?! eks| exk)",
    r"^i alt\b|^ialt\b|^totalsum\b|^fakturatotal\b|^(?:totalt|samlet) (?:bel[øo][pb]|sum|inkl)",
    r"^(?:loppu|kokonais|lasku\w*|laskun )\s?(?:summa|loppusumma)\b|^yhteensa\b"
    r"|^laskun (?:summa|loppusumma)\b|^verollinen (?:hinta|summa|yhteensa)\b",
)
TAKEN_OFF: Final = _any(
    r"\b(?:amount |already |less |pre-?)?paid\b|\bpre-?payments?\b|\bdeposits?\b|\bpayments?\b"
    r"(?! (?:terms|due|details|method|reference|info|by|to|within|date))",
    r"\badvance\b|\bpart payment\b|\bon account\b|\bcredit (?:applied|balance|note)\b"
    r"|\bcredits? applied|\bretention\b|\bretainer\b|\bvoucher\b|\bgift card\b",
    r"\bbereits (?:be|ge)zahlt|\banzahlung|\bvorauszahlung|\babschlag(?:e\b|s(?:zahlung|rechnung))"
    r"|\b(?:erhaltene|geleistete) \w*zahlung|\bakonto|\ba[- ]conto|\bvorkasse\b|\bgutschein\b"
    r"|\bteilzahlung|\bgutgeschrieben|\bangezahlt|\beinbehalt",
    r"\bzaloh|\buhrazen|\bzaplacen|\bpredplac",
    r"\bacompte|\bdeja (?:paye|verse|regle)|\bpaiement recu|\bavance\b|\barrhes\b|\bverse\b"
    r"|\bavoir\b",
    r"\baanbetaling|\bvooruitbetaling|\bvooruitbetaald|\b(?:reeds|al) (?:betaald|voldaan|ontvangen)"
    r"|\bvoorschot|\bwaarborg",
    r"\bacconto|\bgia (?:pagat|versat|corrispost)|\banticip|\bcaparra\b|\bversat[oi]\b",
    r"\bentrega(?:s)? a cuenta|\ba cuenta\b|\bpagad[oa]\b|\babonado\b|\bsenal\b|\bfianza\b",
    r"\badiantament|\bja pag|\bsinal\b|\bvalor pago\b|\bcaucao\b|\bpor conta\b",
    r"\bzaliczk|\bprzedplat|\bwplacono\b|\bzaplacono\b|\bzadatek\b|\bwplat[ay]\b",
    r"\bforudbetal|\bforskudd|\bforskott|\bforskud|\bdepositum\b|\bindbetalt|\binnbetalt"
    r"|\b(?:allerede|tidligere|redan|tidigare) betal|\baconto\b|\ba conto\b|\binbetal(?:t|d|ning)"
    r"|\bhandpenning|\bbetalt\b|\bforhandsbetal|\bdelbetaling|\bdelbetalning",
    r"\bennakko|\bmaksettu\b|\bkasiraha|\bsuoritettu\b|\betumaksu",
    r"\beloleg|\bfoglalo\b|\bbefizet|\bmar (?:ki)?fizet|\bkifizetve\b",
)
# What is to pay at another time, or beside this invoice: such a sum leaves doubt.
EARLIER: Final = _any(
    r"\b(?:previous|opening|prior|last|old) (?:balance|amount|bill|invoice|total)\b"
    r"|\b(?:past due|brought forward|overdue|arrears)\b|^(?:previous|opening|prior|last|old)\W*$",
    r"\bminimum|\bnew balance\b|\baccount balance\b|\bkontostand\b|\binstal?lments?\b|\bmindest",
    r"\bvortrag|\bsaldovortrag|\b\d\. ?rate\b|\braten(?:plan|zahlung|betrag)?\b|\bruckstand",
    r"\bsolde (?:precedent|anterieur)|\bvorige? (?:saldo|factuur)|\bsaldo (?:anterior|precedente)"
    r"|\bsaldo poprzedni|\bpredchozi|\bpoprzedni|\btidligere saldo|\btidigare saldo"
    r"|\bforrige\b|\bforegaende\b|\bforegaaende\b|\bedellinen\b|\bkorabbi\b|\bvorherig|\bfruher",
    r"\btermijn (?:\d|een)|\btermijnbedrag|\brata (?:\d|nr)|\bcuota \d|\bprestacao \d|\bsplatka \d",
    r"\bafdrag\b|\bavbetalning|\bdelbetalingsplan",
)
# The running sum at the foot and head of a page of a long table; no total.
CARRIED: Final = _any(
    r"\b(?:carried|brought|carry) (?:forward|over|down)\b|\bc/f\b|\bb/f\b|\bpage total\b",
    r"\bubertrag\b|\bvortrag\b|\bseitensumme\b|\bseitenubertrag\b|\bzwischenubertrag\b",
    r"\ba reporter\b|\breport\b|\breporte\b|\btransports?\b|\briport[oi]\b|\bda riportare\b",
    r"\bsuma (?:y sigue|anterior)\b|\bsuma y sigue\b|\ba transportar\b|\bde transporte\b",
    r"\b(?:over|mee) te dragen\b|\btransport(?:eren)?\b|\bdo przeniesienia\b|\bz przeniesienia\b"
    r"|\bprzeniesieni",
    r"\bk prevodu\b|\bprevod\b|\bprevedeno\b|\bpreneseno\b|\bprenos\b|\bz prechozi strany\b",
    r"\boverf[øo]r(?:t|es|sel|as)?\b|\batt overfora\b|\bat overf[øo]re\b|\ba overf[øo]re\b"
    r"|\boverfort\b|\bsiirto\b|\bsiirretaan\b|\batvitel\b|\bathozat\b",
)
_TIME: Final = (
    r"(?:days?|tag\w*|jours?|giorni|gg\b|dias?|dagen|dni|dnu|dnech|dage|dagar|dager|dagars|paiv"
    r"|pv\b|nap|weeks?|wochen?|semaines?)"
)
# What is not asked for: a discount for early and a fee for late payment, the share capital.
CONDITIONAL: Final = _any(
    r"\b(?:share |social )?capital\b|kapital\b|\bkapitaal\b|kapitalu?\b|\bkapital zakladowy"
    r"|osakepaaoma",
    r"(?:discount|skonto|escompte|sconto|descuento|desconto|korting|rabat\w*|sleva|slev[ou]"
    r"|alennus|kedvezmeny|remise|reduction|bonification|opust|skonta|kassa)"
    rf"[^.]*\b\d+\s?{_TIME}",
    r"\bskonto|\bescompte\b|\bearly payment|\bprompt payment|\bpronto pago|\bpronto pagamento"
    r"|\bbetalingskorting|\bkassa-?rabat|\bkateisalennus|\bif (?:paid|you pay|payment)\b"
    r"|\bwhen paid\b|\bbei zahlung\b|\bbei bezahlung\b|\ben cas de\b|\bsi pago\b|\bin caso di\b",
    r"\blate (?:payment|fee|charge)|\breminder\b|\bmahn|\bverzug|\bpenalit|\bpaminnelse|\brykker"
    r"|\bpurring|\brappel\b|\baanmaning|\bherinnering|\bsollecito|\brecordatorio|\bupominek"
    r"|\bupomink|\bupozorneni|\bmaistutus|\bmuistutus|\bkesedelm|\bindemnite|\bmora\b|\bforsinke"
    r"|\bdr[øo]jsmal|\bviivasty|\bodsetk|\burok\b|\bafter the due date|\bverlate|\bretard\b",
)
# A sentence that asks for a sum.
ASKS: Final = _any(
    r"\b(?:please|kindly) (?:\w+ )?(?:pay|transfer|remit|settle|send|wire)\b"
    r"|\b(?:amount|sum|total|balance|invoice)\b.{0,40}\b(?:is|are|falls|becomes|must be|to be)"
    r" (?:now |fully )?(?:due|payable|paid|owed|transferred)\b|\bask you to (?:pay|transfer|remit)"
    r"|\b(?:we )?(?:request|look forward to) (?:the |your )?payment of\b|\bpay the (?:amount|sum)",
    r"\b(?:uberweisen|zahlen|begleichen|bezahlen|entrichten) sie\b|\b(?:bitte|bitten)\b.{0,120}"
    r"\b(?:uberweis|zahl|begleich|bezahl|entricht|einzahl)\w*"
    r"|\b(?:betrag|summe)\b.{0,60}\b(?:ist|wird|sind)\b.{0,60}\b(?:fallig|zahlbar|zu (?:uberweis"
    r"|zahlen|begleich))",
    r"\b(?:veuillez|merci de|prions? de|nous vous prions|priere de)\b.{0,40}"
    r"\b(?:regler|verser|virer|payer|effectuer|acquitter|transferer)"
    r"|\b(?:montant|somme|total)\b.{0,60}\b(?:est|sont|sera)\b.{0,30}\b(?:a (?:regler|payer|verser)"
    r"|payable|exigible|du)",
    r"\b(?:si prega|preghiamo|vi preghiamo|la preghiamo|vogliate|voglia|pregasi)\b.{0,60}"
    r"\b(?:pagare|versare|bonificare|saldare|effettuare|accreditare)"
    r"|\b(?:importo|somma|totale)\b.{0,60}\b(?:e|va|deve|dovra|scade)\b.{0,30}\b(?:pagat|pagare"
    r"|versat|versare|scad|dovut|pagabil|saldat)",
    r"\b(?:rogamos|sirvase|por favor|le agradec\w+|agradecer\w+|solicitamos|les? pedimos)\b.{0,60}"
    r"\b(?:abon|pag|transf|ingres|liquid)\w*"
    r"|\b(?:importe|cantidad|suma|total)\b.{0,60}\b(?:vence|debe|debera|es pagadero|pagadero)\b",
    r"\b(?:queira|queiram|solicitamos|agradecemos|pedimos|por favor)\b.{0,60}"
    r"\b(?:pag|transf|liquid|deposit)\w*"
    r"|\b(?:valor|montante|quantia|total)\b.{0,60}\b(?:vence|deve|devera|e devido|a liquidar)\b",
    r"\b(?:gelieve|verzoeken|verzoek|vragen wij|wilt u|graag)\b.{0,120}"
    r"\b(?:over te maken|overmaken|te betalen|betalen|te voldoen|voldoen|over te schrijven"
    r"|ontvangen|overschrijven|storten)"
    r"|\b(?:bedrag|som)\b.{0,60}\b(?:dient|moet|is verschuldigd|vervalt)\b",
    r"\b(?:prosimy|prosze|uprzejmie)\b.{0,60}\b(?:wplat|zaplat|przel|uregul|uiszcz)\w*"
    r"|\bkwot[aeę]\b.{0,60}\b(?:platn|nalezy|wymagaln)\w*|\bnalezy (?:wplacic|zaplacic|przelac)",
    r"\b(?:prosime|zadame|uhradte|zaplatte|poukazte|prosim)\b.{0,60}"
    r"(?:uhrad|zapla|poukaz|prevod|prevest|castk)\w*|\buhradte\b"
    r"|\bcastk[auy]\b.{0,60}\b(?:splatn|je treba|uhrad|zaplat)\w*",
    r"\b(?:bedes|venligst|vi beder|vennligst|ber|vanligen|vi ber|bes|var vennlig"
    r"|var vanlig)\b.{0,120}"
    r"\b(?:ind-?betal|inn-?betal|in-?betal|betal|overf[øo]r|satt in|setter inn|erlagg)\w*"
    r"|\bbel(?:[øo]b|[øo]p|opp)(?:et)?\b.{0,60}\b(?:forfalder|forfaller|forfall|ska|skal|bedes"
    r"|bes|er|ar)\b.{0,30}\b(?:betal|till ?handa)|\bbel(?:[øo]b|[øo]p"
    r"|opp)(?:et)?\b.{0,60}\bforfall?(?:er|der)\b",
    r"\b(?:pyydamme|maksakaa|maksathan|maksa)\b|\bsumma\b.{0,60}\b(?:eraantyy|maksettava)\w*",
    r"\b(?:kerjuk|kerem|szivesked)\w*\b.{0,120}(?:utal|fizet|rendez|egyenlit)\w*"
    r"|\bosszeg\w*\b.{0,60}\b(?:esedekes|fizetendo|utal)\w*",
)
INVOICE: Final = _any(
    r"invoice|rechnung|faktur|factuur|facture|factura|fattura|fatura|\bbill\b|szamla\b|\blasku\b",
    r"danovy doklad|\bregning\b|\bnota\b(?! (?:de|di) cred)",
)
LABEL_LIKE: Final = re.compile(r"[a-z]\.?[a-z]")
