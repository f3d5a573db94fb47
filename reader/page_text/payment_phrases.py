"""What sentences say of the payment of a document, in folded form, by code of a hold.

English, German, French, Italian, Spanish, Portuguese, Dutch, Polish, Czech, Danish, Swedish,
Norwegian, Finnish, Hungarian, roughly in this order; parts of regular expressions.
"""

from typing import Final

PHRASES: Final[dict[str, tuple[str, ...]]] = {
    "settled": (
        r"(?:has|have|was|were|is|are|been) (?:(?:already|now|fully|previously|since|been) "
        r")*(?:paid"
        r"|prepaid|cleared)(?! (?:up|within|before))|(?:has|have) (?:\w+ )?been settled",
        r"(?:was|is) (?:\w+ )?settled (?:on|by|in)|already (?:been )?(?:paid|settled)|paid in full"
        r"|fully paid|payment (?:of .{1,30} )?(?:has been |was )?(?:received|made)",
        r"(?:we (?:have )?)?received (?:your|the|full) payment|(?:received|paid) with thanks"
        r"|thank you for your payment|(?:is|was) (?:pre)?paid",
        r"paid (?:by|via|with|using|through|on) (?:\d|(?:credit|debit|bank)? ?card|visa|master"
        r"|paypal"
        r"|ideal|cash|stripe|cheque|direct debit|bank transfer|[a-z]+ \d)",
        r"charged to your (?:credit )?card|your (?:credit )?card (?:was|has been) charged"
        r"|prepaid by|status\W{1,3}paid",
        r"betrag (?:wurde |ist )?(?:bereits )?(?:dankend )?(?:erhalten|bezahlt|beglichen|gezahlt)",
        r"bereits (?:\w+ )?(?:(?:be|ge)zahlt|beglichen|ausgeglichen|uberwiesen|vereinnahmt)"
        r"|dankend erhalten|bezahlt (?:am|per|mit|via|durch)|danke fur (?:ihre|die) zahlung",
        r"(?:wurde|ist|sind|wurden)\b[^.]{0,60}\b(?:bezahlt|beglichen|ausgeglichen|gezahlt"
        r"|entrichtet)",
        r"\w*(?:zahlung|betrag|geld)\w*\b.{0,60}\b(?:erhalten|eingegangen|verbucht)"
        r"|vielen dank fur (?:ihre|die) zahlung",
        r"(?:a|ont|est|etait) (?:(?:deja|integralement|entierement|ete|bien) )*(?:paye|regle"
        r"|acquitte|solde"
        r"|encaisse)e?s?(?!\w)|deja (?:payee?|reglee?|acquittee?|soldee?|versee?)",
        r"(?:facture|montant|somme) (?:payee?|reglee?|acquittee?|soldee?)|pour acquit"
        r"|(?<!tva )acquittee?"
        r"|(?:paye|regle)e? (?:le \d|par|en (?:especes|totalite)|comptant)",
        r"(?:paiement|reglement|montant|somme)(?: \w+){0,2} recue?|recu (?:votre|le) (?:paiement"
        r"|regl)"
        r"|merci pour votre (?:paiement|reglement)",
        r"(?:stat[oaie]|e|sono|risulta) (?:(?:gia|interamente|integralmente|stata?|stato) "
        r")*(?:pagat"
        r"|saldat|regolat|incassat|versat|quietanzat)[oaie]|gia (?:pagat|saldat|incassat)",
        r"pagat[oa] (?:con|il|tramite|in contanti|mediante)|quietanzat|saldat[oa]"
        r"|pagamento (?:gia )?(?:ricevuto|avvenuto|incassato)|ricevuto il (?:\w+ )?pagamento",
        r"(?:sido|fue|esta|queda|ya) (?:(?:ya|totalmente|integramente|completamente|sido|esta) )*"
        r"(?:pagad|abonad|saldad|cobrad|liquidad|satisfech)[oa]s?|pagad[oa] (?:con|por|el"
        r"|mediante)",
        r"(?:factura|importe) (?:ya )?(?:pagad|abonad|cobrad|saldad|liquidad)[oa]|pago recibido"
        r"|(?:recibido|recibimos) (?:su|el) pago|gracias por su pago",
        r"(?:foi|esta|encontra-se|ja) (?:(?:ja|integralmente|totalmente|se encontra) )*(?:pag[oa]"
        r"|liquidad[oa]|saldad[oa]|quitad[oa]|regularizad[oa])|(?:pagamento|valor) (?:ja "
        r")?recebido",
        r"(?:fatura|montante|valor) (?:ja )?(?:pag[oa](?!\w)|liquidad[oa])"
        r"|recebemos o (?:\w+ )?pagamento"
        r"|obrigad[oa] pelo (?:\w+ )?pagamento|pag[oa] (?:com|por|em|via) (?:cartao|multibanco"
        r"|mb)",
        r"(?:is|werd|zijn|hebben|heeft)\b[^.]{0,40}\b(?:betaald|voldaan)|(?:reeds|al|vooruit) ?"
        r"(?:betaald|voldaan|verrekend)|betaald (?:met|via|op|per)|(?:reeds )?voldaan",
        r"(?:betaling|bedrag|som)\b[^.]{0,40}\bontvangen|bedankt voor (?:uw|je) betaling"
        r"|ontvingen (?:wij )?uw "
        r"betal",
        r"(?:zostal[aoy]?|jest|byl[aoy]?) (?:(?:juz|w calosci|w pelni|ona) )*(?:oplacon|zaplacon"
        r"|uregulowan|rozliczon|uiszczon)[aeyo]|(?:juz )?(?:oplacon|zaplacon|uregulowan)[oa]",
        r"(?:platnosc|wplat|zaplat)\w* (?:zostala )?(?:otrzyman|zaksiegowan|przyjet)|otrzymalismy"
        r"|dziekujemy za (?:wplate|platnosc|zaplate)",
        r"(?:byl[ao]?|je|jiz) (?:(?:jiz|plne|zcela|byla?) )*(?:uhrazen|zaplacen|vyrovnan)[aoy]?"
        r"|(?:uhrazen|zaplacen)o|(?:obdrzeli|prijali)\b.{0,20}(?:platb|uhrad)",
        r"(?:platb|uhrad)\w*\b.{0,20}\b(?:obdrzeli|prijat|pripsan)|dekujeme za (?!vcas|brzk"
        r"|rychl)(?:\w+ )?(?:platbu"
        r"|uhr)",
        r"(?:er|blev|har|var|ble) (?:(?:allerede|nu|na|fuldt|blevet|blitt|vi|er) )*(?:betalt"
        r"|afregnet"
        r"|oppgjort|udlignet|indfriet|innfridd|gjort opp)|(?:allerede|fullt|fuldt) betalt",
        r"betalt (?:med|via|den|pr|per|ved)|(?:betaling|indbetaling|bel[øo][bp])\w*\b.{0,20}\b"
        r"(?:modtaget|mottatt)|(?:modtaget|mottatt) (?:din|deres|jeres) (?:ind)?betaling",
        r"tak for (?:din|jeres|deres) betaling|takk for betaling\w*",
        r"(?:ar|har|blev) (?:(?:redan|nu|till fullo|blivit|helt|i sin helhet) )*(?:betald|betalats"
        r"|betalt|reglera[dt]|reglerats|slutbetala?[dt])|redan (?:betal[dt]|reglera[dt]"
        r"|erlag[dt])",
        r"(?:betalning|belopp)\w*\b.{0,20}\b(?:mottag|erhall|inkommit)\w*|tack for (?:din|er) "
        r"betalning"
        r"|betald (?:med|via|den|per)",
        r"(?:on|oli) (?:(?:jo|kokonaan|taysin|taysimaaraisesti) )*(?:maksettu|suoritettu)|jo "
        r"maksettu"
        r"|maksettu (?:kortilla|kateisella|\d|kokonaan)|maksu\w* (?:on )?(?:jo )?(?:vastaanotettu"
        r"|saatu)",
        r"(?:vastaanottaneet|saaneet) maksu|kiitos maksusta",
        r"(?:ki|meg)?fizetve|(?:ki)?egyenlitve|kiegyenlitettek|(?:kiegyenlitesre|kifizetesre"
        r"|rendezesre)"
        r" kerult|(?:fizetes|osszeg|dij)\w* (?:mar )?(?:megerkezett|beerkezett)|penzugyileg "
        r"rendezett",
        r"megkaptuk\b.{0,20}(?:fizetes|utalas)|mar (?:ki|be|meg)?fizett\w*|koszonjuk (?:a "
        r")?\w*fizetes\w*",
        r"(?:settled|cleared|paid|discharged|offset|set off)(?: \w+){0,3} (?:by|against|with"
        r"|from) (?:\w+ ){0,2}(?:set-?off|standing order|credit|deposit|balance|prepayment)"
        r"|(?:balance|account|invoice|bill) (?:is |was )?(?:settled|cleared)(?=\W*$)",
        r"(?:verrechnet|aufgerechnet|saldiert)(?= werden\b|\W*$)|(?:mit"
        r"|gegen)\b.{0,40}\b(?:guthaben|anzahlung|gutschrift|vorauszahlung)\b.{0,20}(?:ver"
        r"|auf)rechnet|gilt als (?:ausgeglichen|bezahlt|beglichen|erledigt)|(?:ist"
        r"|nichts) mehr offen|(?:betrag|summe)?\s?(?:in )?bar (?:erhalten|bezahlt|kassiert"
        r"|beglichen)",
        r"(?:reglee?|payee?|soldee?|acquittee?) par (?:compensation|imputation)"
        r"|compensee? (?:avec|par|sur)|deja (?:encaissee?|percue?)|(?:recu|encaisse"
        r"|regle)e? (?:en|par) (?:especes|cheque|cb|carte)",
        r"compensat[oa] (?:con|da|tramite)|gia (?:versat|corrispost|regolat|compensat)[oa]"
        r"|(?:incassat|versat|corrispost|regolat)[oa] (?:in contanti|con (?:carta|assegno"
        r"|bonifico)|il \d)",
        r"compensad[oa] (?:con|por|com|mediante)|(?:cobrad|abonad|satisfech"
        r"|liquidad)[oa] (?:en efectivo|con tarjeta|por transferencia|em dinheiro|el \d)"
        r"|ja compensad[oa]|recebid[oa] em (?:dinheiro|numerario)",
        r"(?:verrekend|gecompenseerd) (?:met|via)|(?:contant|per pin) (?:ontvangen|voldaan"
        r"|betaald)|niets meer open",
        r"(?:rozliczon|skompensowan|potracon)[oaey] (?:z |w ramach "
        r"|w drodze )?(?:\w+ ){0,2}(?:nadplat|kompensat|przedplat|potracen)\w*"
        r"|(?:zaplacono|oplacono|uregulowano) (?:gotowk|kart|przelew)\w*",
        r"(?:vyrovnan|uhrazen|zapocten|zaplacen)[oaey]? (?:\w+ )?(?:zapoctem|zalohou|zalohami"
        r"|hotove|v hotovosti|kartou)"
        r"|placeno (?:hotove|kartou|zalohou|predem)|(?:byla|bola|je) uz (?:uhrad|zaplat"
        r"|vyrovn)\w*|(?:uhraden|zaplaten|vyrovnan)[aeoy] (?:kartou|v hotovosti|v plnej"
        r"|prevodom)|uz (?:bol[ao]? )?(?:uhraden|zaplaten)[aeoy]?",
        r"modregnet (?:i|med|mod)|(?:kontant (?:betal[dt]|modtaget|mottatt|mottaget)"
        r"|betal[dt] kontant)|(?:gjort opp|oppgjort|afregnet) (?:kontant|med|via|ved)",
        r"(?:kvitta[dt]|avrakna[dt]) mot|(?:on )?kuitattu|maksettu (?:etukateen|pankkikortilla"
        r"|verkossa)|beszamit(?:asra kerult|va|ottuk)|(?:keszpenzben|kartyaval|atutalassal"
        r"|elore) (?:ki|meg|be)?(?:fizetve|fizettek|egyenlitve|rendezve)",
        r"danken (?:ihnen )?fur (?:ihre|die) zahlung|(?:paid|settled|covered|beglichen|bezahlt"
        r"|gedeckt|reglee?|soldee?|couverte?|saldat[oa]|pagad[oa]|betaald|voldaan|oplacon[aoy]"
        r"|uhrazen[aoy]?|betal[dt]|maksettu)\b (?:by|with|durch|mit|par|avec|con|tramite|por|com"
        r"|door|met|z|ze|med|via|af) (?:\w+ )?(?:prepayment|deposit|advance|vorauskasse"
        r"|vorauszahlung|anzahlung|acompte|avance|acconto|anticipo|sinal|voorschot|aanbetaling"
        r"|zaliczk|zaloh|forskud|forskott|forhandsbetal)\w*",
        r"paid (?=\d{1,4}[-./]\d)|(?:mit|per|durch) (?:bank)?uberweisung\b.{0,30}\b(?:bezahlt"
        r"|beglichen)|paga por (?:transferencia|mb|cheque)|betald? (?:genom|ved|via) "
        r"|maksettu (?:tilisiirrolla|verkkopankissa|laskulla)|(?:cheque|transfer"
        r"|remittance) (?:has )?reached us",
    ),
    "debited": (
        r"(?:will|shall) (?:\w+ )?(?:be )?(?:\w+ )?(?:debit(?:ed)?|collect(?:ed)?|deduct(?:ed)?"
        r"|withdraw"
        r"n?|taken|drawn|charged?)\b(?=.{0,80}(?:account|card|bank|debit|mandate|automatic)"
        r"|.{0,12}on \d)",
        r"(?:by|via|per|method\W{1,3}) ?(?:sepa )?direct debit|direct debit\b.{0,60}\b(?:will|on"
        r"|collect)"
        r"|we (?:will|shall) (?:\w+ )?charge\b.{0,20}\bcard",
        r"(?:wird|werden|wurde|wurden)\b.{0,160}\b(?:abgebucht|eingezogen|belastet)",
        r"(?:buchen|ziehen)\b.{0,120}\b(?:ab|ein)\b.{0,40}(?:konto|lastschrift|$)"
        r"|per (?:sepa-? ?)?(?:lastschrift\w*|bankeinzug)|belasten (?:wir )?(?:ihr|ihre[mn]?) "
        r"(?:konto|k)",
        r"zahlungs(?:art|weise)\W{1,3}(?:sepa-? ?)?(?:basis)?(?:lastschrift|bankeinzug)",
        r"(?:sera|seront|est)\b.{0,40}\b(?:prelevee?s?|debitee?s?)|(?:par|mode de (?:paiement"
        r"|reglement)"
        r"\W{1,3}) ?prelevement|preleve[er]?s?|preleverons|prelevement\b.{0,30}\b(?:sur|le|aura"
        r"|sera)",
        r"(?:sara|verra|saranno|verranno)\b.{0,30}\b(?:addebitat|prelevat|incassat)[oaie]"
        r"|addebito (?:diretto|in conto|sdd|sepa|sul|automatico)|(?:addebiteremo|preleveremo)|rid "
        r"bancario",
        r"(?:sera|se|va a ser)\b.{0,20}\b(?:cargad[oa]|cargara|adeudad[oa]|adeudara|debitad[oa]"
        r"|cobrad[oa]|cobrara|domiciliad[oa])|adeudo (?:directo|sepa)|domiciliacion|recibo "
        r"domiciliado",
        r"(?:cargaremos|adeudaremos|cargo en (?:su )?cuenta)",
        r"(?:sera|vai ser|serao)\b.{0,30}\b(?:debitad|cobrad|descontad|retirad)[oa]s?"
        r"|(?:por|via|pagamento\W{1,3}|mediante) ?debito (?:direc?to|em conta)|debitaremos",
        r"(?:wordt|worden|zal|zullen)\b.{0,120}\b(?:afgeschreven|geincasseerd|geind|afgeboekt)"
        r"|automatische incasso|geincasseerd|(?:per|via|met) (?:\w+-)?incasso|incasseren (?:wij"
        r"|we)|(?:wij|we) incasseren|schrijven\b.{0,60}af\b",
        r"(?:zostanie|zostana|bedzie)\b.{0,40}\b(?:pobran|obciazon|sciagniet|potracon)[aeyo]"
        r"|polecenie(?:m)? zaplaty|pobierzemy|obciazymy",
        r"(?:bude|budou)\b.{0,60}\b(?:inkasovan|strzen|odepsan|stazen|odecten)[aoy]?|inkasem"
        r"|strhneme"
        r"|inkasujeme|formou inkasa|(?:zpusob|forma) (?:uhrady|platby)\W{1,3}inkas",
        r"(?:bliver|vil|blir|kommer|opkr[æa]ves|belastes)\b.{0,80}\b(?:tr[uæ]kket|opkr[æa]vet"
        r"|h[æa]vet"
        r"|belastet|trukket|debiteret|konto|kort|automatisk|betalingsservice|avtalegiro)",
        r"(?:via|med|over|gennem|pa|tilmeldt) (?:betalingsservice|pbs|avtalegiro|autogiro)"
        r"|(?:tr[æa]kkes|trekkes|h[æa]ves|opkr[æa]ves)\b.{0,60}(?:konto|kort|automatisk"
        r"|betalingsservice)"
        r"|vi (?:tr[æe]kker|h[æe]ver|belaster|opkr[æe]ver)\b.{0,60}(?:konto|kort|avtalegiro"
        r"|betalingsservice)",
        r"(?:kommer att|ska|skall)? ?(?:dras|debiteras|belastas)\b.{0,60}(?:konto|kort|autogiro"
        r"|automatisk)"
        r"|(?:genom|betalas via) autogiro|autogiro (?:den|dras)|kommer att (?:dras|debiteras)|vi "
        r"(?:debiterar|drar|belastar)\b.{0,60}(?:konto|kort)",
        r"(?:veloitetaan|veloitamme|peritaan)\b.{0,80}(?:tili|kortil|suoraveloi|automaatti)\w*"
        r"|tili(?:ltanne|ltasi|lta)\b.{0,40}(?:veloitetaan|veloitamme)|suoraveloituksella",
        r"(?:beszedjuk|beszedesre|levonjuk|levonasra|leemeljuk|leemelesre|megterheljuk)"
        r"|csoportos beszedes\w*|(?:levon|leemel|beszed|terhel)\w*\b.{0,30}(?:bank)?szamla\w*",
        r"we (?:will|shall) (?:\w+ )?(?:draw|take|collect|withdraw|deduct"
        r"|debit)\b.{0,40}\b(?:from your|mandate|account|bank|card)|(?:die )?(?:abbuchung|einzug"
        r"|einziehung|belastung) (?:\w+ ){0,3}(?:erfolgt|wird|durch|am|per|zum)",
        r"(?:compte|carte)\b.{0,20}\b(?:sera|est) debitee?|(?:zinkasujeme|stiahn|stiahneme"
        r"|odpis)\w*\b.{0,40}(?:uct|kart|inkas)\w*|bude\b.{0,20}\b(?:stiahnut|odpisan"
        r"|inkasovan)\w*",
        r"(?:bankeinzug|lastschrift|prelevement|addebito|inkaso|suoraveloitus|avtalegiro"
        r"|autogiro|direct debit)\b.{0,20} (?:am|on|le|il|el|em|op|dne|den|dnia)? ?\d{1,2}[. ]"
        r"|debitee?s? (?:de|sur) votre|domiciliad[oa] en|avtalegiro trekkes"
        r"|platnosc automatyczna|inkaso z",
    ),
    "refund": (
        r"(?:amount|balance|sum|credit|difference|overpayment|this|it)\b.{0,40}\b(?:will be|has "
        r"been|is being"
        r"|was) (?:refunded|reimbursed|repaid|credited|returned|paid (?:back|out))",
        r"we (?:will|shall|have) (?:refund|reimburse|repay|return|credit)\w*\b|in your favou?r|we "
        r"owe you"
        r"|(?:owed|refundable|refund (?:due|payable)) (?:back )?to you|credit "
        r"balance\b.{0,40}\b(?:your|you)",
        r"(?:wird|werden|wurde|wurden)\b.{0,80}\b(?:erstattet|(?:zu)?ruckerstattet|gutgeschrieben"
        r"|ausgezahlt"
        r"|ruckvergutet|zuruckgezahlt|zuruckuberwiesen)|zu ihren gunsten|erstatten wir ihnen|wir "
        r"erstatten ihnen",
        r"(?:uberweisen|zahlen|schreiben) wir ihnen|wir (?:uberweisen|zahlen|schreiben) (?:ihnen"
        r"|den)"
        r"|guthaben\b.{0,60}\b(?:wird|uberweisen|erstatten|auszahlen|ihnen)"
        r"|(?:ruck)?erstattungsbetrag",
        r"(?:sera|est|a ete)\b.{0,20}\b(?:rembours|recredit|restitu)ee?|(?:en|a) votre (?:faveur"
        r"|credit)"
        r"|nous vous (?:rembours|devons|vers|restitu)\w*|(?:crediteur|a (?:vous )?rembourser)"
        r"|trop-? ?percu",
        r"(?:sara|verra|stat[oa])\b.{0,20}\b(?:rimborsat|accreditat|restituit|riaccreditat)[oa]|a "
        r"(?:vostro"
        r"|suo) (?:favore|credito)|(?:vi |le )?(?:rimborser|accrediter|restituir|rimborsi"
        r"|restitui)(?:emo|amo)|da rimborsare",
        r"(?:sera|sido|le|se le)\b.{0,20}\b(?:reembols|devuel|devolv|reintegr)\w*|a su favor"
        r"|(?:reembolsar|devolver|reintegrar)emos|(?:a (?:devolver|reembolsar)|saldo acreedor)",
        r"(?:sera|foi|vai)\b.{0,20}\b(?:reembols|devolv|restitu|credit)\w*|ser-?lhe-?a "
        r"(?:reembols|devolv|restitu|credit)\w*|a (?:seu|vosso) (?:favor|credito)"
        r"|iremos (?:reembolsar|devolver)|saldo credor",
        r"(?:wordt|is|zal|worden|zullen)\b.{0,80}\b(?:terug ?betaald|terug ?gestort|gerestitueerd"
        r"|terugbetalen"
        r"|terugstorten|uitbetaald)|in uw voordeel|te uwen gunste|(?:betalen|storten|ontvangt"
        r"|krijgt)\b"
        r".{0,60}\bterug\b",
        r"(?:zostanie|bedzie|zostal[ao]?)\b.{0,20}\bzwrocon[aeyo]|na (?:panstwa|twoja|pana) "
        r"korzysc|zwrocimy"
        r"|zwracamy|do zwrotu|nadplat[aey]",
        r"(?:bude|byl[ao]?|budou)\b.{0,30}\b(?:vracen|poukazan|vyplacen)[aoy]?|ve vas prospech"
        r"|vratime"
        r"|vracime|k vraceni|preplatek",
        r"(?:bliver|vil|er|blir)\b.{0,60}\b(?:refunder|tilbagebetal|udbetal|tilbakebetal"
        r"|utbetal)\w*"
        r"|(?:tilbagebetal|refunder|udbetal|tilbakebetal|utbetal)es|i (?:din|jeres|deres) fav[øo]r"
        r"|betaler\b.{0,40}\btilba(?:g|k)e|betalar\b.{0,40}\btillbaka",
        r"til ?gode(?:havende)?|aterbetal(?:as|ats|ar|ning)\w*|till (?:din|er|ert) (?:fordel"
        r"|favor|godo)"
        r"|tillgodohavande|utbetalas|krediteras ert",
        r"palautetaan|palautamme|hyvitetaan|hyvitamme|(?:teidan|sinun) hyvaksi|palautettava\w*",
        r"visszater\w+|visszafizet\w+|visszautal\w+|(?:az )?on javara|onoknek jar\w*"
        r"|tulfizetes\w*|jovairjuk",
        r"(?:send|pay|transfer|give|return|remit)\b.{0,40}\b(?:back to you|to your account"
        r"|to you)(?! (?:if|when|once|after))|you (?:have |had )?overpaid|you will (?:receive"
        r"|get)\b.{0,40}\bback",
        r"(?:erhalten|bekommen) sie\b.{0,60}\bzuruck|(?:betrag|summe"
        r"|guthaben)\b.{0,30}\b(?:zahlen|uberweisen|erstatten) wir\b.{0,20}\b(?:ihnen|zuruck|aus)",
        r"nous vous (?:revers|recredit|retourn|renvoy|repay|vir)\w*|(?:vous est|vous sera"
        r"|vous etant) (?:due?|viree?|reversee?|versee?|restituee?|retournee?)|avoir en votre",
        r"(?:riceverete|ricevera) (?:\w+ ){0,4}(?:sul vostro|sul suo|di ritorno|indietro)|(?:le"
        r"|les|os) (?:abonaremos|devolveremos|reintegraremos|ingresaremos|transferiremos)"
        r"|recibira (?:\w+ ){0,4}(?:de vuelta|en su cuenta)",
        r"(?:devolver|reembolsar|restituir|creditar)(?:emos|-lhe|-vos)|(?:vamos"
        r"|iremos) (?:devolver|reembolsar|restituir|creditar)|(?:storten|betalen|maken) (?:wij"
        r"|we)\b.{0,40}\b(?:aan u|naar u|op uw rekening)",
        r"(?:zostanie|bedzie) (?:przelan|wyplacon|przekazan)[aeyo] (?:na (?:panstwa|pana|pani"
        r"|twoje|twoj)|panstwu)|(?:poukaz|zasl|posl|vrat)(?:eme|ime)\b.{0,20}(?:zpet|spat|vam"
        r"|na vas)|(?:bude|budou)\b.{0,10}\b(?:pripsan|vratn?en|vraten|zaslan)[aoye]?",
        r"(?:far|faar) (?:i |du |ni |de )?(?:bel[øo][bp]\w*|summ?an|pengene|pengarna"
        r"|pengene) (?:tilba(?:g|k)e|tillbaka)|(?:far|faar)\b.{0,10}\b(?:tilba(?:g|k)e|tillbaka)",
        r"(?:saatte|saat) (?:\w+ ){0,2}takaisin|maksamme (?:\w+ ){0,3}takaisin"
        r"|maksetaan (?:teille|tilillenne) takaisin",
        r"(?:is|are|will be|has been) credited to your|sie (?:erhalten"
        r"|bekommen)\b.{0,60}\bzuruck|(?:betalas|utbetalas|betales|overf[øo]res|krediteres"
        r"|krediteras) (?:ut )?(?:til|till) (?:jeres|din|deres|er|dig|deg|dem)\b",
    ),
    "retention": (
        r"(?:do )?not (?:pay|release|transfer|be paid|payable|due|to be paid)\b.{0,40}\b(?:before"
        r"|until"
        r"|without|yet|prior)|payable only|only payable|(?:await|wait for) (?:our |the "
        r")?(?:release|appr)",
        r"(?:payment|amount|sum|balance|retention|money)\b.{0,50}\b(?:is|are|been|will|shall"
        r"|to)\b.{0,20}\b"
        r"(?:withheld|retained|suspended|on hold|blocked|deferred)",
        r"(?:withhold|hold(?: back)?|suspend|defer) (?:this |the |your )?payment"
        r"|payment (?:on hold"
        r"|blocked|susp)",
        r"(?:zahlbar|fallig|zahlung|zahlen|uberweisen)\b.{0,20}\berst\b.{0,20}(?:nach|wenn|mit"
        r"|bei|ab)"
        r"|erst nach\b(?! (?:\w+ )?(?:zahlung|bezahlung|geldeingang)).{0,60}\b(?:zahl|bezahl"
        r"|uberweis|fallig|begleich|auszahl)\w*",
        r"(?:noch )?nicht\b.{0,20}\b(?:vor|bevor)\b.{0,60}\b(?:zahlen|bezahlen|uberweisen|zahlbar"
        r"|fallig)"
        r"|zahlen\b.{0,60}\bnicht (?:vor|bevor|ehe)|nicht (?:be)?zahlen\b.{0,20}(?:bevor|bis|vor)"
        r"|noch nicht (?:(?:be)?zahlen|uberweisen)",
        r"(?:zahlung|betrag|einbehalt|summe)\w*\b.{0,60}\b(?:einbehalten|zuruck(?:ge|be)halten"
        r"|ausgesetzt"
        r"|gesperrt|gestundet|zuruckgestellt)|zahlungssperre|sicherheitseinbehalt",
        r"ne (?:(?:pas|point) (?:payer|regler|virer)|(?:payez|reglez|virez) pas)\b.{0,30}(?:avant"
        r"|jusqu|sans|tant)|retenue? de garantie",
        r"(?:payable|a regler|paiement|reglement)\b.{0,30}\b(?:uniquement|seulement|qu.) "
        r"?(?:apres|a )",
        r"(?:paiement|reglement|montant|somme)\b.{0,50}\b(?:est|sera|sont)\b.{0,20}\b(?:retenu"
        r"|suspendu"
        r"|bloque|differe|consigne)\w*",
        r"non (?:pag|sald|effettu)\w+\b.{0,30}(?:prima|fino|senza)|(?:ri|trat)tenut[ao] (?:a|di) "
        r"garanz",
        r"(?:pagamento|importo|somma)\b.{0,50}\b(?:e|sara|viene|verra)\b.{0,10}(?:trattenut"
        r"|sospes|bloccat"
        r"|ritenut|rinviat)[oa]|(?:pagabile|da pagare|pagamento) (?:solo|soltanto|esclusivamente)",
        r"no (?:pag|abon)\w+\b.{0,30}(?:antes|hasta|sin)|retencion (?:de|por|en) garantia",
        r"(?:pago|importe)\b.{0,50}\b(?:esta|queda|sera|sido)\b.{0,10}(?:retenid|suspendid"
        r"|bloquead|aplazad)"
        r"|(?:pagader[oa]|a pagar|pago) (?:solo|unicamente|solamente) (?:despues|tras|previa"
        r"|cuando|una)",
        r"nao (?:pag|liquid|efetu)\w+\b.{0,30}(?:antes|ate|sem)|retencao (?:de|por|em) garantia",
        r"(?:pagamento|montante|valor)\b.{0,50}\b(?:esta|fica|sera|encontra-se"
        r"|foi)\b.{0,10}(?:retid|suspens"
        r"|bloquead|adiad)|(?:pagavel|a pagar|pagamento) (?:apenas|so|somente) (?:apos|depois"
        r"|mediante)",
        r"niet (?:te )?betalen\b.{0,20}(?:voor|tot|zonder|alvorens)|nog niet (?:te )?betalen"
        r"|betaal (?:nog )?"
        r"niet|(?:pas|slechts|alleen) (?:\w+ )?(?:na|als|wanneer|zodra)\b.{0,60}betal\w*",
        r"(?:betaling|bedrag|som)\b.{0,50}\b(?:wordt|is|blijft)\b.{0,20}\b(?:ingehouden|opgeschort"
        r"|geblokkeerd|aangehouden|achtergehouden|uitgesteld)|(?:betaalbaar|betalen) (?:pas "
        r"|slechts )na",
        r"nie (?:plac|oplac|regul|dokon)\w+\b.{0,30}(?:przed|do|bez)|(?:platn\w+|platnosc)"
        r" (?:dopiero|wylacznie|tylko) po|kaucja gwarancyjna",
        r"(?:platnosc|kwota|kaucja)\b.{0,50}(?:zatrzyman|wstrzyman|zablokowan|odroczon)[aey]",
        r"ne(?:plat|uhraz|hrad)\w+\b.{0,30}(?:pred|do|dokud|bez)|pozastavka|zadrzne"
        r"|(?:splatn[eoya]|uhradte|uhrada|platba) (?:az|pouze|teprve) po",
        r"(?:platba|castka)\b.{0,50}(?:pozastaven|zadrzen|zadrzovan|zablokovan|odlozen)[aoy]?",
        r"(?:ma|skal|far|ska|skall|bor)\b.{0,10}\b(?:f[øo]rst|ikke|inte"
        r"|ej)\b.{0,10}betal\w*\b.{0,40}"
        r"(?:f[øo]r|efter|etter|inden|innen|nar|forran|innan)|betales? f[øo]rst|betalas forst",
        r"(?:betal|bel[øo][bp]|belopp)\w*\b.{0,40}\b(?:tilbageholdt|tilbageholdes|udskudt|udsat"
        r"|utsatt"
        r"|sp[æe]rret"
        r"|holdt tilbake|tilbakeholdt|tilbakeholdes|holdes tilbake|innehall\w*|halls inne"
        r"|sparra\w*)",
        r"betala? (?:\w+ )?(?:ikke|inte|ej|f[øo]rst)\b.{0,30}(?:f[øo]r|forran|innan|efter|etter"
        r"|nar|inden)",
        r"(?:ala|alkaa|ei saa|ei tule|ei pida) maksa\w*\b.{0,40}ennen\w*|maksetaan vasta"
        r"|maksu\w*\b.{0,20}"
        r"(?:pidatet|keskeytet|lykat)\w*|pidatetaan",
        r"(?:csak|kizarolag)\b.{0,60}(?:utan|kovetoen|eseten)\b.{0,30}(?:fizet|esedekes|utal)\w*"
        r"|(?:fizet|utal)\w*\b.{0,30}(?:csak|kizarolag)\b.{0,60}(?:utan|kovetoen)"
        r"|visszatart(?:asra|juk|ott)\w*",
        r"(?:hold|held|park|freeze|stop) (?:\w+ ){0,3}(?:until (?:further|we|our|you|released"
        r"|approved)|pending)|(?:to be |only |be )(?:released|paid|payable"
        r"|due) (?:only )?(?:upon|after|on|once|when|following)\b.{0,20}\b(?:accept|approv"
        r"|inspect|complet|release|written|sign|hand-?over)\w*",
        r"(?:falls?|becomes?|is) (?:due|payable) only|(?:wait|hold off) (?:\w+ ){0,4}(?:before"
        r"|with|until)\b.{0,30}\b(?:pay|transfer|approv|releas|confirm|accept)\w*",
        r"(?:falligkeit|fallig|zahlbar|zahlung) (?:\w+ ){0,2}erst|(?:zahlung|uberweisung"
        r"|betrag)\w*\b.{0,40}\bzuruck(?:zu)?(?:halten|stellen)|(?:mit (?:der )?zahlung"
        r"|zahlung)\b.{0,20}\b(?:warten|abwarten|zuwarten)|warten sie\b.{0,40}\b(?:zahlung"
        r"|uberweisung|bezahlung)|(?:noch nicht|vorerst nicht|vorlaufig nicht) (?:zu )?(?:zahl"
        r"|bezahl|uberweis|begleich)\w*",
        r"(?:paiement|reglement|virement|somme|montant) (?:\w+ )?(?:suspendu|differe|bloque"
        r"|retenu|consigne|reporte)\w*|(?:payer|regler|virer|payable|exigible|du) (?:uniquement"
        r"|seulement|exclusivement|qu.)|(?:attend|patient)\w+ (?:\w+ ){0,4}avant de (?:payer"
        r"|regler|virer|proceder)",
        r"(?:pagamento|importo|somma) (?:\w+ )?(?:sospes|bloccat|trattenut|differit|rinviat)[oa]"
        r"|(?:attend|aspett)\w+ (?:\w+ ){0,4}prima di (?:pagare|versare|saldare|procedere"
        r"|effettuare)|da pagare soltanto",
        r"(?:pago|importe|suma) (?:\w+ )?(?:suspendid|bloquead|aplazad|retenid|diferid)[oa]"
        r"|(?:esper|aguard)\w+ (?:\w+ ){0,4}antes de (?:pagar|abonar|transferir|realizar|efetuar"
        r"|liquidar)|(?:pagamento|valor|montante) (?:\w+ )?(?:suspens|bloquead|adiad|diferid"
        r"|retid)[oa]|a pagar (?:unicamente|somente|apenas)",
        r"wacht\w* (?:\w+ ){0,3}met (?:\w+ ){0,2}(?:betal|overmak)\w*|(?:betaling"
        r"|bedrag) (?:\w+ )?(?:aanhouden|opgeschort|uitgesteld|geblokkeerd|ingehouden)"
        r"|(?:betaling|betaalbaar|verschuldigd) (?:pas|eerst) (?:na|bij)",
        r"wstrzym\w+ (?:sie )?(?:\w+ ){0,2}z? ?(?:zaplat|platnosc|przelew|wplat)\w*|(?:zaplat"
        r"|platnosc|przelew)\w* (?:\w+ )?(?:wstrzyman|zawieszon|odroczon)\w*|(?:zaplata|platnosc"
        r"|platne) (?:dopiero|jedynie|tylko|wylacznie)|(?:zaczekac|poczekac"
        r"|prosimy czekac) z (?:zaplat|platnosc|przelew)\w*",
        r"(?:vyckejte|pockejte|pockajte|vyckajte|cekejte|vyckat|pockat) s (?:platb|uhrad"
        r"|zaplac)\w*|(?:platb|uhrad)\w* (?:\w+ )?(?:pozastav|zadrz|odloz|pozdrz)\w*"
        r"|neplatte (?:pred|do|kym|az)|zadrzane|(?:splatn|uhrad|plat)\w* (?:az|teprve) po",
        r"(?:vent|avvent|afvent|vanta|avvakta|avvent) (?:\w+ )?med (?:at |att |a |)?(?:betal"
        r"|overf[øo]r)\w*|(?:avvakta|afvent|avvent) (?:\w+ )?(?:betalning|betaling"
        r"|godk[æa]nd\w*)|betal(?:ing|ning)\w* (?:\w+ )?(?:udskydes|uds[æa]ettes|utsettes|vilar"
        r"|skjuts upp|afventer|avvaktar)",
        r"odot\w+ (?:maksun|maksamisen) kanssa|(?:maksakaa|maksettava|maksetaan|eraantyy) vasta"
        r"|(?:varjon|varjanak|varjunk|varni) (?:\w+ )?a (?:fizetes|utalas|kifizetes)\w*"
        r"|(?:fizetes|kifizetes|utalas)\w* (?:\w+ )?(?:felfuggeszt|visszatart|elhalaszt"
        r"|halaszt)\w*|ne (?:fizessek|fizesse|utaljak|utalja)\w* (?:\w+ ){0,3}(?:elott|amig"
        r"|mielott)",
        r"(?:ne procedez pas|non procedere|no proceder|nao proceder|do not proceed"
        r"|niet overgaan)\b.{0,30}\b(?:pa[gi]\w+|reglement|payment|betaling)|(?:betaling|zahlung"
        r"|payment|betalning) (?:volgt|folgt|follows|sker|skjer) (?:pas|erst|only|f[øo]rst)"
        r"|ikke betal\w*\b.{0,30}(?:f[øo]r|innen|uten)|retained until",
    ),
}
