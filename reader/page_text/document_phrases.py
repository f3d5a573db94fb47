"""What sentences say that a document is, or is not, in folded form, by code of a hold.

English, German, French, Italian, Spanish, Portuguese, Dutch, Polish, Czech, Danish, Swedish,
Norwegian, Finnish, Hungarian, roughly in this order; parts of regular expressions.
"""

from typing import Final

PHRASES: Final[dict[str, tuple[str, ...]]] = {
    "void": (
        r"(?:documento|f[ac]*tura|fattura|document|facture|dokument|faktura|factuur|rechnung"
        r"|invoice) (?:e )?(?:anulad|annullat|annule|anulowan|annuller|annulliert|storn|cancelad"
        r"|cancelled|geannuleerd|makuler|zrusen)",
        r"(?:invoice|bill|document)\b.{0,40}\b(?:has been|was|is|becomes) (?:\w+ )?(?:void(?:ed)?"
        r"|cancell?ed|annulled|revoked|withdrawn|reversed|superseded|replaced|invalid|no longer "
        r"valid)",
        r"(?:rechnung|beleg|dokument)\b.{0,60}\b(?:wurde|ist|wird)\b.{0,30}\b(?:storniert|ungultig"
        r"|annulliert|aufgehoben|ersetzt|hinfallig|gegenstandslos|widerrufen)",
        r"(?:facture|document)\b.{0,40}\b(?:est|a ete)\b.{0,20}\b(?:annulee?|nulle?|caduque"
        r"|remplacee?"
        r"|sans (?:objet|valeur|effet))",
        r"(?:fattura|documento)\b.{0,40}\b(?:e|stat[oa]|viene)\b.{0,20}\b(?:annullat[oa]|null[oa]"
        r"|stornat[oa]|sostituit[oa]|non valid[oa]|priv[oa] di)",
        r"(?:f[ac]*tura|documento)\b.{0,40}\b(?:sido|esta|fue|foi|queda|fica"
        r"|encontra-se)\b.{0,20}\b"
        r"(?:anulad[oa]|cancelad[oa]|nul[oa]|sustituid[oa]|substituid[oa]|sin (?:efecto|val)|sem "
        r"(?:efeito|v))",
        r"(?:factuur|document)\b.{0,40}\b(?:is|werd|komt te)\b.{0,30}\b(?:geannuleerd|vervallen"
        r"|ongeldig"
        r"|ingetrokken|vervangen|nietig|gecrediteerd)",
        r"(?:faktura|dokument)\b.{0,40}\b(?:zostal[ay]?|jest)\b.{0,20}\b(?:anulowan[ay]"
        r"|uniewaznion[ay]"
        r"|niewazn[ay]|wycofan[ay]|zastapion[ay])",
        r"(?:faktura|doklad)\b.{0,40}\b(?:byl[a]?|je)\b.{0,20}\b(?:stornovan|zrusen|neplatn"
        r"|nahrazen"
        r"|anulovan)[ay]?",
        r"(?:faktura|regning|rakning|dokument)\w*\b.{0,40}\b(?:er|ar|har|blev"
        r"|ble)\b.{0,20}\b(?:annull?er"
        r"|makuler|ugyldig|ogiltig|kanseller|erstattet|ersatt|krediter|slettet|tilbakekal"
        r"|upphavd)\w*",
        r"lasku\w*\b.{0,40}\bon\b.{0,20}\b(?:mitatoity|peruttu|peruutettu|kumottu|hyvitetty"
        r"|korvattu|mitaton)",
        r"szamla\w*\b.{0,40}\b(?:ervenytelen\w*|sz?torno\w*|visszavon\w*|torolve|hatalyt\w*)",
        r"null and void|(?:issued|sent|created|raised|billed) (?:\w+ )?(?:in|by) (?:error"
        r"|mistake)|(?:please |kindly )?(?:disregard|ignore|destroy|discard) (?:this"
        r"|the (?:above|present)) (?:invoice|bill|document)",
        r"(?:irrtumlich|versehentlich|fehlerhaft|falschlich)\w* (?:\w+ ){0,2}(?:ge?stellt"
        r"|er ?stellt|ausgestellt|versandt|verschickt|gesendet|zugesandt|berechnet)|(?:rechnung"
        r"|beleg|dokument|schreiben)\w* (?:\w+ ){0,3}(?:vernichten|ignorieren)|(?:bitte"
        r"|zu) (?:zu )?vernichten|null[eo]? (?:et non avenue?|e (?:privo|senza) effetto)",
        r"(?:emis|envoye|etabli)e?s? (?:\w+ )?par erreur|ne pas (?:en )?tenir compte"
        r"|a ne pas tenir compte|(?:emess|inviat|spedit)[oa] (?:\w+ )?per (?:errore|sbaglio)"
        r"|(?:non|da non) (?:considerare|tenere in)",
        r"(?:emitid|enviad|expedid)[oa] (?:por|com|con) (?:error|erro|engano|equivocacion|lapso)"
        r"|no (?:la |lo )?(?:tenga|tengan) en cuenta|(?:sin|sem) (?:validez|validade|valor legal"
        r"|efecto|efeito)|(?:queira|queiram|favor|deve) (?:ignorar|desconsiderar|anular)",
        r"(?:per abuis|abusievelijk|per vergissing|ten onrechte|foutief) (?:\w+ )?(?:verzonden"
        r"|verstuurd|opgemaakt|gefactureerd|uitgereikt|aangemaakt)|als niet verzonden"
        r"|(?:komt te vervallen|en vervalt)|(?:wystawion|wyslan)[aoy] (?:omylkowo|pomylkowo"
        r"|blednie|przez pomylke)|prosimy (?:zignorowac|o zignorowanie|nie uwzgledniac|zniszczyc)",
        r"(?:vystaven|zaslan|odeslan|vystavil)\w* (?:omylem|chybne|nedopatrenim|omylom|mylne)"
        r"|(?:prosime |prosim )?(?:ignorujte|neprihlizejte|neberte v uvahu|nezohlednujte)"
        r"|(?:faktura|doklad) (?:je|bola|bol) (?:neplatn|zrusen|stornovan)\w*",
        r"(?:udstedt|sendt|utstedt|fakturert|utfardad|skickad"
        r"|utstalld) (?:\w+ ){0,2}(?:ved (?:en )?(?:fejl|feil)|av misstag|felaktigt|feilaktig"
        r"|fejlagtigt)|(?:skal|ska|bes|bor) (?:ignoreres|ignoreras|makuleres|makuleras|kasseres)"
        r"|bortse (?:fran|fra)|se bort fra",
        r"lahetetty (?:virheellisesti|vahingossa|erehdyksessa)|(?:alkaa|ala) huomioi\w*"
        r"|jattakaa (?:\w+ )?huomi\w*|(?:tevesen|tevedesbol) (?:kiallit|kuld|kikuld)\w*"
        r"|(?:targytalan|semmis)\w*",
        r"(?:beleg|rechnung|dokument|document|facture|fattura|documento|f[ac]*tura|factuur"
        r"|faktura|doklad|regning|lasku|szamla)\w*\b.{0,20}\b(?:zuruckgezogen|retiree?"
        r"|ritirat[oa]|retirad[oa]|ingetrokken|wycofan[aoy]|stazen[ao]?|tilbagekaldt|tilbakekalt"
        r"|aterkallad|peruttu|visszavont)",
        r"(?:komen te|is|zijn) vervallen|bortfald(?:et|er)|bortfaller|har utgatt|(?:doklad"
        r"|faktura) zrusen[ao]?|must not be used|do not use (?:this|it)",
    ),
    "self_billed": (
        r"(?:issued|made out|prepared|drawn up|created) by (?:the )?(?:customer|buyer|recipient"
        r"|purchaser)",
        r"(?:vom|durch den) (?:leistungsempfanger|kunden|kaufer) (?:aus|er)(?:ge)?stellt"
        r"|gutschriftsverfahren",
        r"rechnungsausstellung durch den|etablie par (?:le client|l.acheteur|le preneur)"
        r"|autofacturation",
        r"au nom et pour le compte d|emess[ao] dal (?:cliente|cessionario|committente)"
        r"|autofattur\w+",
        r"(?:emitida|expedida|elaborada) (?:por|pelo) (?:el )?(?:destinatario|cliente|comprador"
        r"|adquirente)",
        r"facturacion por el destinatario|autofactur?acao|uitgereikt door (?:de )?(?:afnemer"
        r"|koper|klant)",
        r"wystawion[ay] przez nabywce|w imieniu (?:i na rzecz )?(?:sprzedawcy|dostawcy)"
        r"|samofakturowani\w+",
        r"vystaven\w* (?:zakaznikem|odberatelem)|vystavil (?:zakaznik|odberatel)|ud?tste[dt]t? "
        r"a[fv] k",
        r"ud?t?stedt a[fv] (?:k[øo]ber|kj[øo]per|kunden)|utfardad av (?:koparen|kunden)"
        r"|self-?billing invoice",
        r"(?:ostajan|asiakkaan) laatima|(?:a )?vevo altal (?:kiallit|kibocsat)\w*|onszamlaz\w+"
        r"|itselaskut\w+",
    ),
    "reminder": (
        r"(?:we )?(?:would like to |must |write to |wish to )?remind you|despite (?:our|several) "
        r"reminder\w*"
        r"|we have not (?:yet )?received (?:your )?payment|this invoice is (?:now )?(?:overdue"
        r"|past due)",
        r"erinnern wir sie|(?:keinen|noch kein\w*) zahlungseingang|trotz\b.{0,30}\bmahnung"
        r"|sauf erreur\b.{0,80}(?:impaye|reste|regle)|(?:reste|demeure) impayee?|nous vous "
        r"rappelons que",
        r"risulta (?:ancora )?(?:non pagat|insolut|scadut)[oa]|(?:sigue|permanece|continua) "
        r"(?:pendiente|impag)",
        r"(?:continua|encontra-se) (?:por (?:pagar|liquidar)|em (?:atraso|divida))|herinneren "
        r"(?:wij )?u"
        r"|(?:nog )?geen betaling\b.{0,20}ontvangen|przypominamy|nie odnotowalismy",
        r"pripominame|neobdrzeli|doposud neuhrazen|minder om|har ikke (?:modtaget|mottatt)"
        r"|erindrer om"
        r"|paminner|inte (?:mottagit|erhallit)|muistuttaa|emme ole (?:saaneet|vastaanottaneet)"
        r"|emlekeztetj\w+",
        r"(?:second|third|final|last|repeated|further) (?:request|demand|notice)\b|(?:is|are"
        r"|remains?) (?:now )?(?:overdue|past due|outstanding and)|(?:payment"
        r"|amount)\b.{0,20}\b(?:not|never) (?:yet )?(?:been )?(?:received|reached)",
        r"(?:bisher|bislang|heute|noch) (?:\w+ ){0,3}(?:kein"
        r"|nicht)\w* (?:\w+ ){0,3}(?:zahlung\w*|zahlungseingang|eingegangen|beglichen|bezahlt)"
        r"|ist (?:seit|nun|bereits) (?:\w+ ){0,3}(?:uberfallig|in verzug)|kein\w* zahlungseingang",
        r"ne nous est pas (?:encore )?parvenue?|n.avons pas (?:encore )?recu"
        r"|reste(?:nt)? (?:a ce jour )?(?:du|due|impaye)s?|(?:pagamento"
        r"|saldo)\b.{0,30}\bnon\b.{0,30}(?:pervenut|ricevut|effettuat|risult)\w*|non (?:abbiamo"
        r"|ci risulta|e)\b.{0,20}\b(?:ricevut|pervenut)\w*|non ci (?:risulta"
        r"|e)\b.{0,20}pervenut\w*",
        r"no hemos recibido|no (?:nos )?consta\b.{0,20}\bpago|nao (?:\w+ )?(?:recebemos"
        r"|nos chegou|rececionamos)|(?:hebben|heeft)\b.{0,60}\b(?:niet|geen)\b.{0,30}\bontvangen"
        r"|(?:nog )?niet (?:\w+ )?ontvangen|nie (?:otrzymalismy|wplynela|wplynal|odnotowano)",
        r"(?:dosud|doposud|zatim|dosial|doteraz|k dnesnimu dni) (?:\w+ ){0,3}(?:ne\w+)"
        r"|(?:neobdrzel|neevidujeme|nedostali)\w*|(?:ikke|inte|ej)(?: \w+)? (?:modtaget|mottatt"
        r"|fatt|faet|mottagit|erhallit|kommet|inkommit)|ikke (?:\w+ ){0,3}(?:mottatt|modtaget)",
        r"(?:emme|ei) (?:\w+ ){0,3}(?:saaneet|vastaanottaneet|saapunut|maksettu)|(?:nem"
        r"|meg nem) (?:erkezett|kaptuk|kaptunk|teljesult)\w*",
        r"(?:is|are|remains?|ist|sind|steht|stehen|est|er|ar|on) (?:still |noch |encore |stadig "
        r"|fortfarande |fortsatt |edelleen )(?:unpaid|owing|offen|aus(?=\W*$)|unbezahlt|impayee?"
        r"|ubetalt|obetal[dt]|maksamatta)|(?:resta|rimane|sigue|continua|ainda esta|jest nadal"
        r"|je dosud|zustava) (?:insolut|impag|pendient|nezaplac|neuhrazen|niezaplac|em aberto)\w*",
    ),
    "specimen": (
        r"for (?:your )?information(?:al)? (?:purposes )?only|for information purposes|specimen "
        r"(?:only|invoice)"
        r"|sample (?:invoice |document )?only|only a sample|(?:no|without) legal (?:value|effect)",
        r"(?:nur|lediglich|ausschliesslich|dient)\b.{0,20}\bzur? (?:ihrer )?(?:information"
        r"|ansicht|kenntnis)\w*",
        r"(?:uniquement|seulement) (?:pour|a titre)\b.{0,5}(?:d.)?inform\w+|a titre (?:purement "
        r")?(?:d.inf|inf)",
        r"(?:solo|unicamente|esclusivamente|meramente|apenas|puramente) (?:a |con |per |para |de "
        r")?(?:titolo|titulo"
        r"|scopo|scopi|efectos|fines|fins|efeitos|caracter|informa\w+)\b.{0,10}\binforma\w+",
        r"(?:alleen|enkel|uitsluitend|slechts) (?:ter|voor|als) (?:info|kennis)\w*|(?:tylko"
        r"|wylacznie) (?:do|w)"
        r" (?:celow|celach|wiadomosci)(?: inform\w+)?|(?:pouze|jen) (?:pro|k) inform\w+",
        r"kun til (?:orientering|info)\w*|endast (?:for|som|i) (?:kannedom|info)\w*|(?:vain"
        r"|ainoastaan) "
        r"(?:tiedoksi|tiedoksenne)|(?:csak|kizarolag) tajekoztat\w+|tajekoztato jellegu",
        r"for (?:illustration|demonstration|training"
        r"|test(?:ing)?)(?: purposes)?(?: only)?(?=\W*$)|(?:test|demo|dummy"
        r"|training) (?:document|invoice|data|print)\b|not a (?:live|real|genuine) (?:invoice"
        r"|document)|(?:ist|dies) (?:\w+ ){0,2}(?:muster|musterrechnung|testrechnung|testbeleg"
        r"|beispielrechnung|probedruck)|ohne (?:rechtliche "
        r"|steuerliche )?(?:zahlungsverpflichtung|rechtswirkung|gultigkeit|rechtskraft)",
        r"(?:document|facture) (?:non contractuel|de (?:test|demonstration)|d.essai|fictive?)"
        r"|a titre d.exemple|sans valeur (?:legale|juridique|fiscale|comptable|contractuelle)"
        r"|(?:documento|fattura) (?:di prova|di test|dimostrativ[oa]|fac-?simile)"
        r"|priv[oa] di (?:valore|validita)|senza valore (?:fiscale|legale)",
        r"(?:documento|factura|fatura) de (?:prueba|teste|ejemplo|exemplo|demostracion"
        r"|demonstracao)|(?:sin|sem) (?:valor|validez|validade) (?:fiscal|legal|contable"
        r"|contratual)|(?:test|proef|demo|voorbeeld)(?:factuur|document|nota)|zonder (?:rechts"
        r"|fiscale |juridische )\w*(?:geldigheid|waarde)?",
        r"(?:dokument|faktura) (?:testow|probn|pogladow|przykladow)\w*|bez (?:mocy"
        r"|wartosci) (?:prawn|ksiegow|handlow)\w*|(?:zkusebni|testovaci|cvicn[ya]|ukazkov[ya]"
        r"|skusobny) (?:doklad|faktura|dokument|vytisk)|bez (?:pravni|pravnej|danove"
        r"|ucetni) (?:platnosti|zavaznosti|ucinnosti)",
        r"(?:test|pr[øo]ve|prov|demo|eksempel|exempel)-?(?:faktura|regning|rakning|dokument)"
        r"|(?:uden|utan|uten) (?:retslig |rattslig |juridisk )?(?:gyldighed|giltighet|gyldighet"
        r"|verkan|virkning)|(?:testi|esimerkki|malli|harjoitus)lasku|ilman (?:oikeusvaikutusta"
        r"|patevyytta)|(?:teszt|minta|proba)(?:szamla|bizonylat)",
    ),
    "not_an_invoice": (
        r"not (?:a|an|any) (?:(?:valid|tax|final|proper) )*(?:invoice|bill)|not (?:a |valid "
        r")?(?:demand|request) for payment"
        r"|invoice (?:will )?(?:follows?|be sent|be issued)|invoice to follow|not (?:valid )?as "
        r"an? \w* ?invoice",
        r"keine (?:\w+ )?(?:rechnung|zahlungsaufforderung|aufforderung)|rechnung folgt|nicht als "
        r"rechnung",
        r"(?:rechnung|diese) (?:erhalten sie|wird|folgt)\b.{0,20}\b(?:separat|gesondert|spater"
        r"|zugesandt)",
        r"n.est pas une (?:\w+ )?facture|ne (?:constitue|vaut|tient)\b.{0,10}\bfacture|(?:la "
        r")?facture (?:suivra"
        r"|suit|vous sera)|non (?:e|costituisce|vale come|ha valore di)\b.{0,10}\bfattura|seguira "
        r"(?:\w+ )?fattura",
        r"fattura (?:segue|seguira)|no (?:es|constituye|sustituye|vale como)\b.{0,10}\bfactura"
        r"|factura (?:se enviara|seguira)|nao (?:e|constitui|serve de"
        r"|substitui)\b.{0,10}\bf[ac]*tura",
        r"f[ac]*tura (?:seguira|sera enviada|segue)|geen (?:\w+ )?(?:factuur|rekening)|niet als "
        r"factuur"
        r"|factuur (?:volgt|ontvangt u)|nie (?:jest|stanowi) (?:\w+ )?faktur\w*",
        r"faktura (?:zostanie|bude|bedzie) (?:wystawiona|przeslana|wyslana|zaslana|vystavena"
        r"|nasledovat)",
        r"(?:neni|nejedna se o|neslouzi jako) (?:danov\w+ )?(?:doklad\w*|faktur\w*)|fakturu "
        r"(?:zasleme|obdrz)",
        r"(?:er|ar|utg[øo]r|gj?[eæa]lder|gjelder|galler)?(?: som)? ?(?:ikke|inte|ej|ingen) (?:en "
        r"|nogen |noen )?"
        r"(?:faktura|regning|rakning)|faktura (?:f[øo]lger|foljer|ettersendes|eftersendes|skickas"
        r"|kommer)",
        r"ei ole (?:\w+ )?lasku|lasku (?:seuraa|toimitetaan|lahetetaan)|nem (?:minosul )?(?:\w+ "
        r")?szamla\w*"
        r"|szamla(?:t)? (?:kesobb|kulon|hamarosan)",
    ),
    "not_to_be_paid": (
        r"do not pay(?! (?:by|in|with|cash|to|any|more|us|into))|not for payment|(?:must|should"
        r"|is|shall) not "
        r"(?:to )?be paid(?! (?:to|by|in|into))",
        r"no (?:further )?(?:payment|remittance) (?:is )?(?:required|due|necessary|needed)"
        r"|nothing (?:is )?"
        r"(?:due|to pay|payable)",
        r"nicht (?:zu )?(?:be)?zahlen|nicht zu uberweisen|keine (?:aufforderung zur )?zahlung"
        r"|nicht zur zahlung"
        r"|nichts zu (?:be)?zahlen|zahlung (?:ist )?nicht (?:erforderlich|notwendig|notig)",
        r"ne pas (?:payer|regler)|aucun (?:paiement|reglement)|rien a (?:payer|regler)|pas a "
        r"(?:payer|regler)",
        r"non pagare|nessun pagamento|nulla (?:e )?(?:da pagare|dovuto)|non (?:deve|va) (?:essere "
        r")?pagat[oa]",
        r"no pagar|no abonar|no (?:requiere|precisa|se requiere) (?:\w+ )?pago|ningun pago|nada "
        r"(?:que|a) pagar"
        r"|no debe (?:ser )?(?:pagar|pagad|abonar)\w*",
        r"nao (?:pagar|requer pagamento|deve ser pag[oa]|carece de pagamento)|nenhum pagamento"
        r"|sem necessidade de"
        r" pagamento|nao e necessario\b.{0,20}\bpagamento",
        r"niet (?:te )?betalen|geen betaling (?:vereist|nodig|verschuldigd)|niets te betalen"
        r"|hoeft\b.{0,20}niet",
        r"nie (?:placic|oplacac|wymaga (?:zaplaty|platnosci)|podlega zaplacie|nalezy (?:placic"
        r"|oplacac))"
        r"|platnosc nie jest wymagana",
        r"neplat(?:te|it)|neuhrazujte|nehradit|neni (?:urcen\w* )?k (?:uhrade|platbe|proplaceni)"
        r"|nevyzaduje",
        r"(?:skal|ma|bor|ska|far) (?:ikke|inte|ej) betal\w+|(?:ingen|inget) betaling|ingen "
        r"betalning|betal ikke"
        r"|betala (?:inte|ej)|(?:intet|inget|ingenting) (?:at|att|a) betal\w+",
        r"ei (?:tarvitse |saa |tule |pida )?maksa(?:a|ettav\w*)|ala maksa|ei (?:vaadi|edellyta) "
        r"maksu\w*",
        r"nem (?:kell|szukseges) (?:\w+ )?(?:meg|ki|be)?fizet\w*|ne fizess\w*|nem fizetendo"
        r"|(?:teljesitest|fizetest)"
        r" nem igenyel",
        r"nicht (?:zu )?uberweisen|nicht (?:zu )?begleichen|non (?:e|e piu) (?:richiesto|dovuto"
        r"|necessario)\b.{0,20}\bpagamento|(?:ne|non|no|nao) (?:pas )?(?:virer|versare"
        r"|transferir|bonificare)(?=\W*$)|niet (?:te )?(?:overmaken|overschrijven|voldoen)"
        r"|nie (?:przelewac|wplacac)|(?:neposilejte|neprevadejte|neposielajte|neprevadzajte)"
        r"|overf[øo]r (?:ikke|inte)|alkaa maksako|ne utal\w*",
    ),
}
