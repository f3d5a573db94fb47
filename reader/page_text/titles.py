"""The names of documents in fourteen languages, in folded form, by what they mean.

English, German, French, Italian, Spanish, Portuguese, Dutch, Polish, Czech, Danish, Swedish,
Norwegian, Finnish, Hungarian. How a name is used (as a title, a stamp or the label of a
reference) is judged elsewhere.
"""

import re
from typing import Final

_SAMPLE: Final = (
    r"sample|specimen|example|demo|dummy|test|muster|beispiel|exemple|essai|modele|esempio|prova"
    r"|ejemplo|muestra|prueba|exemplo|amostra|voorbeeld|proef|wzor|przyklad|vzor|ukazk|zkusebn"
    r"|eksempel|pr[øo]ve|exempel|esimerkki|malli|minta"
)
_BILL: Final = (
    r"invoice|rechnung|faktur[aey]?|facture|fattura|factura|fatura|factuur|doklad|lasku|szamla"
    r"|regning|rakning"
)
_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "self_billed": (
        r"self ?-?(?:bill(?:ed|ing)|invoic(?:ed|ing)|factur(?:ing|ering))(?: (?:tax )?invoice)?",
        r"(?:buyer|recipient)-? ?created (?:tax )?invoice|rcti",
        r"selbst ?ausgestellte rechnung|abrechnungsgutschrift|eigenrechnung|gutschriftsverfahren"
        r"|selbst(?:fakturierung|abrechnung)",
        r"auto-?factur(?:ation|e|a|acion|acao)|auto-?fattura(?:zione)?|auto-?fatura(?:cao)?",
        r"factur(?:acion|a expedida) por el destinatario|zelf-?factur(?:ering|atie)",
        r"self-?billing ?factuur|samofakturowanie|samofakturace|vystaveno zakaznikem",
        r"sjalvfaktur(?:a|ering)|selvfaktur(?:a|ering)|egenfaktur(?:a|ering)|afregningsbilag",
        r"itselaskut(?:us|uslasku|ettu lasku)|onszamlaz(?:as|ott szamla)|onszamla",
    ),
    "credit_note": (
        r"credit (?:note|memo|memorandum|invoice|advice)|adjustment note|reversal invoice",
        r"(?:correct(?:ed|ive|ing|ion)|amended) invoice|invoice correction",
        r"(?:rechnungs-?)?gutschrift(?:sanzeige)?|rechnungs-?korrektur|korrektur-?rechnung",
        r"storno-?rechnung|rechnungs-?storno|rechnungsberichtigung|korrekturbeleg|stornobeleg",
        r"(?:berichtigte|korrigierte) rechnung|(?:(?:facture|note|bon) d.)?avoir",
        r"(?:note|facture) de credit|facture (?:rectificative|d.annulation)",
        r"nota (?:di |de )?(?:credito|accredito|abono|variazione)|nota d.accredito",
        r"fattura (?:di storno|rettificativa|a credito)|storno fattura|abono",
        r"factura (?:de abono|rectificativa|correctiva)|(?:nota|factura) de credito",
        r"fatura (?:de credito|rectificativa|retificativa)|nota de devolucao",
        r"credit-?(?:nota|factuur)|correctiefactuur|creditering|gecorrigeerde factuur",
        r"faktura (?:vat )?(?:korygujaca|korekta)|korekta(?: do)?(?: faktury)?",
        r"nota (?:kredytowa|korygujaca|uznaniowa)",
        r"dobropis|opravny (?:danovy )?doklad|opravna faktura|storno faktury",
        r"kredit(?:not|faktur)a|krediterings(?:not|faktur)a|kreditering|rattelsefaktura",
        r"hyvitys(?:lasku|nota)?|oikaisulasku|jovairas|szamlahelyesbito",
        r"(?:helyesbito|jovairo|modosito|sz?torno|ervenytelenito) ?szamla",
        r"credit advice|rettelsesfaktura|korrektionsfaktura|correctie-?nota|note d.avoir",
    ),
    "pro_forma": (
        r"pro-? ?forma(?:-? ?(?:invoice|rechnung|faktura|faktuur|factuur|szamla|lasku|bill))?",
        r"(?:facture|fattura|factura|fatura|faktura|factuur) pro-? ?forma",
        r"avviso di parcella|zalohov(?:a faktura|y list)|dijbekero|elolegbekero",
        r"(?:request for (?:an? )?|demande d.|solicitud de |pedido de "
        r"|richiesta di )(?:advance(?: payment)?|prepayment|deposit|acompte|avance|anticipo"
        r"|adiantamento|acconto)",
        r"(?:advance payment|deposit|prepayment) request|(?:anzahlungs|vorauszahlungs"
        r"|vorauskasse)-?(?:anforderung|anfrage)|appel de fonds|preavviso di fattura",
        r"voorschotnota|verzoek tot vooruitbetaling|wezwanie do (?:w|za)platy zaliczki"
        r"|vyzva k (?:platbe|uhrade) zalohy|a ?conto-?(?:begæring|begaring)|forskottsbegaran",
    ),
    "quotation": (
        r"quot(?:e|ation)|(?:cost )?estimate|price (?:quote|offer|proposal)|offer|proposal|tender",
        r"(?:preis)?angebot|kostenvoranschlag|kostenschatzung|(?:prijs|richt)?offerte|devis",
        r"offre(?: de prix| commerciale)?|proposition commerciale|preventivo(?: di spesa)?",
        r"offerta|presupuesto|cotizacion|oferta(?: cenowa| handlowa)?|orcamento|cotacao",
        r"proposta(?: comercial)?|prijsopgave|aanbieding|kostenraming|wycena|kosztorys",
        r"(?:cenova )?nabidka|cenova kalkulace|(?:pris)?tilbud|prisoverslag|overslag",
        r"offert|anbud|kostnadsforslag|kostnadsoverslag|prisuppgift|tarjous|kustannusarvio",
        r"hinta-?arvio|(?:ar)?ajanlat|arkalkulacio|koltsegbecsles",
        r"(?:price|cost) (?:quotation|offer|proposal)|(?:kosten|preis)-?angebot|devis estimatif"
        r"|offerta economica|oferta economica|prijsofferte",
        r"proposta de orcamento|rozpocet(?: \w+)?|kalkulace(?: ceny)?|cenova ponuka|ponuka"
        r"|prisforslag|pristilbud|overslagspris",
    ),
    "order_confirmation": (
        r"order (?:confirmation|acknowledge?ment|form)|confirmation of (?:your )?order",
        r"acknowledge?ment of order|(?:sales|purchase) order|booking confirmation",
        r"(?:auftrags|bestell|buchungs)bestatigung|bestellung|auftrag",
        r"confirmation de (?:la |votre )?commande|accuse de reception de (?:la )?commande",
        r"bon de commande|commande|conferma (?:d.|dell.|di )? ?ordine|ordine(?: d.acquisto)?",
        r"confirmacion (?:de|del) pedido|orden de compra|pedido|nota de encomenda|encomenda",
        r"confirmacao (?:da|de|do) (?:encomenda|pedido)|ordem de compra",
        r"(?:order|opdracht|bestel)bevestiging|bestelbon|inkooporder|bestelling",
        r"potwierdzenie (?:przyjecia )?zamowienia|zamowienie",
        r"potvrzeni (?:prijeti )?(?:objednavk|zakazk)y|objednavka",
        r"ordrebekr(?:æf|ef)telse|bestilling",
        r"bekr(?:æf|ef)telse (?:af|pa) (?:din |deres )?ordren?|k[øo]psordre",
        r"k[øo]bsordre|innkj[øo]psordre|orderbekraftelse|orderbekraftning",
        r"bestallning|inkopsorder|(?:osto)?tilaus|tilausvahvistus|megrendeles",
        r"(?:meg)?rendeles-? ?visszaigazolas|visszaigazolas",
        r"order receipt(?: confirmation)?|potvrdenie objednavky|ordererkannande"
        r"|bestallningsbekraftelse|rendeles(?:i)? (?:vissza)?igazolasa?",
    ),
    "delivery_note": (
        r"(?:delivery|despatch|dispatch|shipping|packing|consignment) (?:note|slip|docket|list)",
        r"(?:despatch|dispatch|delivery) advice|goods (?:received|delivery) note|waybill",
        r"lieferschein|lieferavis|packzettel|packliste|warenbegleitschein|frachtbrief",
        r"bon (?:de livraison|d.expedition)|bordereau (?:de livraison|d.expedition)",
        r"liste de colisage|lettre de voiture|(?:documento|bolla) di (?:trasporto|consegna)",
        r"ddt|nota (?:di consegna|de entrega)|lista (?:dei )?colli|albaran(?: de entrega)?",
        r"remito|guia de (?:remessa|transporte)|pakbon|(?:af)?lever(?:ings)?bon|vrachtbrief",
        r"(?:dokument|dowod) (?:dostawy|wydania)|(?:dokument )?wz|list przewozowy",
        r"wydanie zewnetrzne|dodaci list|f[øo]lgeseddel|(?:leverings|pakke|pakk)seddel"
        r"|leverings(?:nota|note)|leveransnota|leveransbesked",
        r"fragtbrev|fraktbrev|foljesedel|(?:leverans|pack|frakt)sedel",
        r"(?:toimitus)?lahete|lahetyslista|rahtikirja|szallitolevel|fuvarlevel",
        r"lahetysluettelo|pakkeseddel|bordereau de livraison",
    ),
    "reminder": (
        r"(?:(?:payment|friendly|final|first|second|third|1st|2nd|3rd|overdue) )*reminder",
        r"(?:final|overdue|past-? ?due|late payment) notice|dunning (?:letter|notice)",
        r"(?:final|last|dernier|primo|secondo|ultimo|segundo) (?:notice|avis|avviso|aviso)|final "
        r"demand|demand for payment|overdue invoice",
        r"(?:(?:\d\.?|erste|zweite|dritte|letzte) )?(?:mahnung|zahlungserinnerung)|mahnschreiben",
        r"(?:lettre de )?(?:relance|rappel)(?: de (?:paiement|facture))?|mise en demeure",
        r"(?:premier|deuxieme|second|dernier) rappel|rappel (?:de paiement )?n.? ?\d",
        r"(?:(?:primo|secondo|ultimo) )?sollecito(?: di pagamento)?|diffida(?: ad adempiere)?",
        r"(?:recordatorio|reclamacion|requerimiento)(?: de pago)?|aviso de impago|(?:primer"
        r"|segundo|tercer|ultimo) aviso",
        r"lembrete(?: de pagamento)?|aviso de (?:cobranca|pagamento em atraso)",
        r"(?:(?:eerste|tweede|laatste) )?(?:betalings-?herinnering|aanmaning|herinnering)",
        r"sommatie|ingebrekestelling|(?:ostateczne |przedsadowe )?wezwanie do zaplaty",
        r"ponaglenie|upomnienie|przypomnienie(?: o (?:platnosci|zaplacie))?",
        r"(?:\d\. )?upominka|pripominka(?: platby)?|vyzva k (?:uhrade|zaplaceni|platbe)|urgence",
        r"(?:betalings)?pamindelse|rykker(?:skrivelse|brev)?(?: \d)?",
        r"(?:betalnings|betalings)?paminnelse|kravbrev|inkassokrav|purring|purrebrev"
        r"|inkassovarsel",
        r"maksu(?:muistutus|kehotus)|muistutus(?:lasku)?|karhu(?:kirje|lasku)|perintakirje",
        r"fizetesi (?:emlekezteto|felszolitas|figyelmeztetes)|felszolitas|emlekezteto",
        r"(?:letzte |zweite )?zahlungsaufforderung|erinnerung|lettera di sollecito"
        r"|carta de cobranca|(?:druha|prvni|posledni) upominka|upomienka|betalingsoppfordring"
        r"|inkassobrev",
    ),
    "statement_of_account": (
        r"(?:(?:account|monthly|customer) )*statement(?: of (?:your )?account)?|account summary",
        r"statement of (?:open|outstanding) (?:items|invoices)|(?:kunden)?kontoauszug",
        r"kontoubersicht",
        r"saldenbestatigung|saldenliste|offene-? ?posten(?:-? ?liste)?|op-liste",
        r"(?:releve|etat|extrait|situation) (?:de|du) compte(?: client)?|releve(?: client| "
        r"mensuel| de factures)?",
        r"estratto (?:di )?conto|situazione contabile|extracto(?: de (?:la )?cuenta)?",
        r"estado de (?:la )?cuenta|extra(?:c)?to (?:de|da) conta(?: corrente)?|conta corrente",
        r"rekening-?(?:overzicht|afschrift|courant)|saldo-?overzicht|openstaande posten(?:lijst)?",
        r"wyciag z (?:konta|rachunku)|zestawienie (?:sald|naleznosci|faktur)|potwierdzenie salda",
        r"vypis (?:z )?(?:uctu|konta)|prehled (?:neuhrazenych )?faktur|odsouhlaseni sald",
        r"konto(?:udtog|udskrift|utdrag|utskrift|besked)|saldo(?:opg[øo]relse|besked|oppgave)",
        r"reskontrautdrag|tiliote|saldo(?:vahvistus|ilmoitus)|tiliyhteenveto|reskontraote",
        r"(?:folyo)?szamla-?kivonat|egyenleg(?:kozlo|ertesito|egyezteto)",
        r"account overview|open items(?: list)?|saldenubersicht|(?:aufstellung"
        r"|ubersicht) (?:der )?offene[rn]? (?:rechnungen|posten)|etat des sommes dues"
        r"|partitario(?: cliente)?",
        r"resumen de (?:la )?cuenta|(?:relacion|listado) de facturas pendientes|(?:extrato"
        r"|extracto) (?:de|del) cliente|conta-corrente(?: de cliente)?|klantoverzicht",
        r"specyfikacja sald|saldokonto|prehled pohledavek|kontooversi[gk]t|kontooversikt"
        r"|kontoversikt|folyoszamla kivonat|egyenleg",
    ),
    "receipt": (
        r"(?:(?:payment|sales|cash|official) )?receipt|(?:confirmation|proof) of payment",
        r"payment confirmation|remittance advice|quittung|zahlungs(?:bestatigung|beleg)",
        r"kassen(?:bon|beleg)|recu(?: de paiement)?|quittance|ticket de caisse",
        r"(?:confirmation|justificatif) de paiement|ricevuta(?: di pagamento| fiscale)?|quietanza",
        r"scontrino|conferma di pagamento|recibo(?: de (?:pago|pagamento))?|fatura-? ?recibo",
        r"(?:justificante|comprobante) de pago|comprovativo de pagamento",
        r"betal(?:ings)?bewijs|kwitantie|kassabon|ontvangstbewijs|betalingsbevestiging",
        r"(?:potwierdzenie|dowod) (?:zaplaty|wplaty|platnosci)|pokwitowanie|paragon(?: fiskalny)?",
        r"stvrzenka|uctenka|potvrzeni (?:o )?(?:zaplaceni|platb[ey])|doklad o zaplaceni",
        r"(?:prijmovy )?pokladni doklad|kvittering|kvitto|kvittens|betalingsbekr(?:æf|ef)telse",
        r"betalningsbekraftelse|(?:maksu)?kuitti|maksuvahvistus|maksutosite|nyugta",
        r"fizetesi (?:vissza)?igazolas|penztarbizonylat",
    ),
    "draft": (
        r"draft|entwurf|rechnungsentwurf|brouillon|projet de facture|bozza|borrador|rascunho",
        r"concept(?:factuur)?|szkic|projekt faktury|wersja robocza|brudnopis|koncept",
        r"navrh faktury|kladde|udkast|utkast|kladd|luonnos|piszkozat|tervezet|szamlatervezet",
    ),
    "specimen": (
        r"specimen|sample|example|(?:sample|example|test|demo|dummy) (?:invoice|document)",
        r"informat(?:ion|ional) (?:copy|only)|copy for (?:your )?information|not for payment",
        r"for (?:your )?information(?:al)?(?: purposes)?(?: only)?",
        r"muster|(?:muster|beispiel|test|probe)-?rechnung|musterexemplar|beispiel",
        r"nur zur (?:information|ansicht|kenntnis(?:nahme)?)|zur kenntnis(?:nahme)?",
        r"(?:informations|ansichts)(?:exemplar|kopie)|kopie zur (?:information"
        r"|kenntnis(?:nahme)?)",
        r"exemple|modele(?: de facture)?|facture (?:type|modele|specimen)|pour information",
        r"copie pour information|a titre (?:d.information|informatif|indicatif)",
        r"fac-?simile|campione|esempio|per conoscenza|copia (?:per conoscenza|informativa)",
        r"(?:solo )?a (?:scopo|titolo) informativo|muestra|ejemplo|especimen|espécime",
        r"(?:solo )?a (?:titulo|efectos) informativos?|factura de (?:prueba|muestra|ejemplo)",
        r"amostra|exemplo|especime|(?:apenas |so )?para informacao|a titulo informativo",
        r"voorbeeld(?:factuur)?|proefexemplaar|(?:kopie )?(?:alleen |enkel )?ter (?:info"
        r"|informatie)",
        r"ter kennis(?:geving|name)|wzor(?: faktury)?|przyklad|kopia informacyjna",
        r"(?:kopia )?(?:tylko )?do (?:wiadomosci|celow informacyjnych|wgladu)|vzor|ukazka|priklad",
        r"(?:kopie )?(?:pouze )?pro informaci|informativni kopie|eksempel|exempel",
        r"pr[øo]ve(?:eksemplar|faktura)|prov(?:exemplar|faktura)|mallilasku|mallikappale|nayte",
        r"(?:kopi )?(?:kun )?til (?:orientering|information|informasjon)|informationskopia",
        r"(?:kopia )?(?:endast )?for (?:kannedom|information)|esimerkki(?:lasku)?|malli",
        r"(?:kopio )?(?:vain )?tiedoksi|minta(?:szamla|peldany)?|(?:csak )?tajekoztato peldany",
        r"(?:csak )?tajekoztato jellegu|(?:csak )?tajekoztatasul",
        rf"(?:{_SAMPLE})\w*[ -]?(?:{_BILL})|(?:{_BILL}) (?:\w{{1,3}}[ .])?(?:{_SAMPLE})\w*",
        r"(?:demo|test)(?: only| document| invoice)?|testbeleg|testdokument|nur (?:ein )?(?:test"
        r"|muster)",
    ),
    "void": (
        r"void|voided|cancell?ed|cancellation|annulled|invalid|superseded|null and void",
        r"storniert|storno|ungultig|annulliert|aufgehoben|annule|annulee|nul|nulle|caduc|caduque",
        r"annullat[oa]|null?[oa]|anulad[oa]|cancelad[oa]|sin (?:efecto|validez)|sem efeito",
        r"geannuleerd|vervallen|ongeldig|nietig|anulowan[oaey]|uniewaznion[oaey]|niewazn[aey]",
        r"stornovan[oaey]|zrusen[oaey]|neplatn[aey]|anulovan[oaey]|annulleret|makuleret|ugyldig",
        r"makulerad|annullerad|ogiltig|annullert|kansellert|makulert|mitatoity|mitaton|peruttu",
        r"peruutettu|kumottu|ervenytelen(?:itve)?|sztorno(?:zva|zott)?|stornozva|visszavonva",
        r"withdrawn|replaced|zuruckgezogen|ersetzt|remplacee?|ritirat[oa]|ingetrokken"
        r"|wycofan[aoey]|tilbagekaldt|tilbakekalt|aterkallad",
    ),
    "stamped_paid": (
        r"paid(?: in full)?|settled|received with thanks|(?:bereits )?bezahlt|beglichen",
        r"dankend erhalten|(?:deja )?(?:payee?|reglee?)|acquittee?|pour acquit|soldee?",
        r"(?:gia )?(?:pagat|saldat)[oa]|quietanzat[oa]|(?:ya )?(?:pagad|abonad|cobrad|saldad)[oa]",
        r"(?:ja )?(?:liquidad|quitad)[oa]|paga|(?:reeds )?(?:betaald|voldaan)",
        r"(?:juz )?(?:zaplacon|oplacon|uregulowan)[oaey]|(?:jiz )?(?:zaplacen|uhrazen)[oaey]?",
        r"(?:er |allerede )?betalt|(?:redan )?betal[dt]|(?:jo )?maksettu|(?:ki)?fizetve",
        r"kiegyenlitve|megfizetve|pago|kvitteret|kvittert",
    ),
    "refund": (
        r"refund(?: (?:note|advice))?|(?:ruck)?erstattung|ruckzahlung|remboursement|rimborso",
        r"reembolso|devolucion|devolucao|terugbetaling|zwrot|vraceni|tilbagebetaling|refusion",
        r"tilbakebetaling|refundering|aterbetalning|palautus|visszaterites|auszahlung",
    ),
    "contract": (
        r"contract|agreement|letter|vertrag|brief|contrat|contratto|contrato|overeenkomst|umowa",
        r"smlouva|kontrakt|avtal|avtale|aftale|sopimus|szerzodes|payslip|lohnabrechnung"
        r"|price list",
    ),
}
_INVOICE: Final = (
    r"(?:(?:tax|vat|sales|commercial|service|final|customer|interim) ?-?)*invoice|e-?invoice|bill",
    r"(?:[a-z]+-?)?rechnung|factuur|[a-z]+factuur|facture|fattura|factura|fatura",
    r"(?:[a-z]+)?faktura|faktur|fakturering|(?:danovy )?doklad|regning|rakning|(?:[a-z]+)?lasku",
    r"(?:[a-z]+)?szamla|honorarnote|note d.honoraires|parcella|(?:honorar)?liquidation",
)
# A label that says what number of an invoice follows is evidence, its date or address is none.
_NUMBERED: Final = (
    r"invoice ?(?:no|number|num|nr|id|#|№|n[°º])|inv\.? ?(?:no|nr|#)|bill ?(?:no|number|nr|#)",
    r"re\.?-? ?nr|rechnungs-? ?(?:nr|nummer|no)|faktura-? ?(?:nr|nummer|nro)|(?:numer|cislo) "
    r"(?:faktury"
    r"|dokladu)",
    r"factuur-? ?(?:nr|nummer|no)|(?:numero|n\.?[°ºo]\.?|num\.?|nr\.?) ?(?:de |della |da |do "
    r")?(?:la "
    r")?"
    r"(?:facture|factura|fattura|fatura|faktury?)|faktury? (?:vat )?(?:nr|c\.|cislo)|lasku(?:n)? "
    r"?(?:numero|nro)",
    r"regningsnummer|szamla ?(?:sorszama|szama|sz\.)|szamlaszam|(?:factura|fattura|fatura|facture)"
    r" ?(?:n[°ºor]?\.?[°ºo]?|num\.?|numero|#)",
)
_AROUND: Final = (
    r"original|copy|kopie|copie|copia|kopia|kopi|kopio|masolat|duplicate|duplikat|oryginal|eredeti"
    r"|alkuperainen|tax|vat|ust|mwst|dph|btw|tva|iva|moms|mva|alv|afa|document|dokument|the|a"
    r"|exemplar|exemplaire|esemplare|ejemplar|eksemplar|exemplaar|peldany|egzemplarz|vytisk"
    r"|kappale"
    r"|only|nur|solo|alleen|kun|endast|vain|csak|an|this|and|und|et|e|y|en|i|a|og|och|ja|es"
    r"|electronic|simplified|semplificata"
    r"|simplificada|eenvoudige|uproszczona|zjednoduseny|danovy|doklad|de|di|del|venta|vendita"
    r"|vente"
)


def _whole(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Whole words; a space may be missing, as in text that was set with wide letters."""
    body = "|".join(patterns).replace("(?: ", "(?: ?").replace(" ", " ?")
    return re.compile(rf"(?<![\w@-])(?:{body.replace(' ??', ' ?')})(?!\w|[-.]\w)")


NAMES: Final = {code: _whole(patterns) for code, patterns in _NAMES.items()}
INVOICE_NAME: Final = _whole(_INVOICE)
INVOICE_NUMBER: Final = re.compile(rf"(?<!\w)(?:{'|'.join(_NUMBERED)})(?![^\W\d])")
AROUND: Final = re.compile(rf"(?<!\w)(?:{_AROUND})(?!\w)")
