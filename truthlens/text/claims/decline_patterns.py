"""How declining is worded, by language: clauses that say that nothing is known, and sentences that take leave.

Matched without case against a whole clause with straight apostrophes, after its fillers are taken away. Groups that
capture are open: what stands there must be *bare* (``non_claims``). "Not possible", "not available", "not allowed"
are left out on purpose: they speak of the world.
"""

from __future__ import annotations

# English
_GIVEN = (
    r"(?: (?:that )?(?:i(?:'ve| have| was| am)?(?: been| got)?(?: given| provided with| shown| access to)?|(?:you|were|was|have been|you've|you have) (?:given|gave|provided|shared|uploaded"
    r"|sent|retrieved|found)|at hand|on hand|at my disposal|available(?: to me)?|provided|given|above|here|on file))?"
)
_TEXTS = (
    r"(?:(?:any|either|both|all) of )?(?:(?:the|these|this|those|your|my|our|any|all|given|provided|above|supplied|retrieved|available|current|following|uploaded|shared|attached|two|three"
    r"|four|five|search) )*(?:passages?|contexts?|documents?|docs|documentation|sources?|texts?|information|articles?|materials?|excerpts?|extracts?|snippets?|data|notes|files?|pages?"
    r"|knowledge base|help cent(?:er|re)|manual|handbook|guide|references?|search results?|sections?)"
    rf"{_GIVEN}"
)
_TOPIC = r"([^,;:()—–]{0,120})"
_THAT = (
    r"(?:(?:any of )?(?:this|that|it|these)|anything|(?:the|an|your|this|that|a) (?:\w+ )?(?:answer|question|point|topic|subject|matter|detail|information|request|one|part|issue)"
    r"|anything (?:about|on|regarding) (?:this|that|it)|what you(?:'re| are)? (?:asking|asked|want to know)(?: about| for)?)"
)
_ABOUT = rf"(?: (?:about|on|of|to|for|regarding|concerning|that){_TOPIC})?"
_UNABLE = r"(?:can(?:no|')t|can not|could(?:n't| not)|(?:am|'m|was)(?: still)?(?: not|n't) able to|wasn't able to|(?:am|'m|was) (?:still )?unable to)"
_TELLS = (
    r"(?:says?|tells?|states?|mentions?|covers?|addresses|address|answers?|discuss(?:es)?|explains?|specif(?:y|ies)|indicates?|describes?|clarif(?:y|ies)"
    r"|go(?:es)? into|touch(?:es)? (?:on|upon)|deals? with)"
)
# A text "contains no refund" of the world, but "contains no answer" of itself.
_HOLDS = r"(?:contains?|gives?|holds?|provides?|includes?|has|have)"
_INFORMATION = r"(?:information|details?|answers?|data|context|mention|references?|record|results?|knowledge|indication|word)"
_SOME = r"(?:(?:an?|any|the|that|this|enough|sufficient|such|further|specific|relevant|more) )*"
FILLERS_EN = (
    r"\b(?:hmm+|well|oh|um|honestly|frankly|sadly|regrettably|unfortunately|sorry|(?:my )?apologies|i'm (?:really |so |very )?sorry|i am (?:really |so |very )?sorry|i apologi[sz]e"
    r"|(?:i'm|i am) afraid(?: that)?|thanks for asking|thank you for asking|good question|as far as i can (?:see|tell)|at (?:the|this) moment|right now|at present|for now|currently|really"
    r"|simply|still|i'd love to help|i would love to help|though|either)\b"
)
EN = (
    rf"i(?: |(?='m))(?:do not|don't|wouldn't|would not|{_UNABLE}) (?:know|say|tell|be sure)(?: for sure| for certain| you)?(?: {_THAT}|{_TOPIC})",
    rf"i(?: |(?='m)){_UNABLE} (?:answer|find|see|locate|confirm|verify|determine|establish|make out|work out|help(?: you)? with)(?: or (?:deny|rule out|refute))?(?: {_THAT}|{_TOPIC})",
    rf"i(?: |(?='m)){_UNABLE} (?:give|offer|provide)(?: you)? {_SOME}(?:reliable |definite |clear |good )?{_INFORMATION}{_ABOUT}",
    rf"i(?:'ve| have)(?: got)? (?:absolutely )?no (?:idea|clue|way of (?:knowing|telling)|{_INFORMATION}){_ABOUT}(?: for you)?",
    rf"i(?:'ve| have)(?: got)? nothing (?:on (?:file|record))?(?: ?(?:about|on|for){_TOPIC})?",
    rf"i (?:do not|don't|did not|didn't) have {_SOME}{_INFORMATION}(?: on (?:file|record))?{_ABOUT}",
    rf"i (?:was|have)(?:n't| not)(?: been)? given {_SOME}{_INFORMATION}(?: to {_TOPIC})?",
    rf"i(?:'m| am)? not aware of {_THAT}",
    r"(?:i have )?no (?:idea|clue)",
    rf"(?:i'm |i am )?(?:not sure|unsure|not certain)(?: about{_TOPIC})?",
    rf"(?:it's |it is |this is |that's |that is )?not (?:specified|stated|mentioned|clear)(?: (?:in|from|by) {_TEXTS})?",
    rf"{_TEXTS} (?:says?|tells?|mentions?|contains?|holds?|gives?|states?)(?: me| us)? (?:nothing|not a word){_ABOUT}",
    rf"(?:none|neither) of (?:them|{_TEXTS}) {_TELLS}(?: {_THAT}|{_TOPIC})",
    rf"(?:(?:none|neither) of (?:them|{_TEXTS})|nothing in {_TEXTS}) {_HOLDS} {_THAT}",
    rf"{_TEXTS} (?:do|does|did)(?: not|n't) {_HOLDS} {_THAT}",
    rf"nothing in {_TEXTS} {_TELLS}(?: {_THAT}|{_TOPIC})",
    rf"there(?:'s| is| was|'re| are) (?:no|not enough|not sufficient|insufficient) (?:information|details?|answers?|mention|references?){_ABOUT}",
    rf"there(?:'s| is| was) (?:not enough|insufficient) {_INFORMATION}(?: in {_TEXTS})?(?: for me)? to (?:answer|tell|say|determine|decide)(?: {_THAT})?",
    rf"there(?:'s| is| was) (?:not enough|insufficient) {_INFORMATION}(?: here)?(?: for me)? to give(?: you)? {_SOME}(?:reliable |definite |clear |good )?{_INFORMATION}",
    rf"there(?:'s| is| was) nothing (?:about|regarding){_TOPIC}",
    rf"{_THAT} (?:is|was)(?:n't| not) (?:something (?:that )?i can (?:find|answer|tell|say|see)|(?:part of|in|among|covered by|covered in|answered by|answered in) {_TEXTS})(?: here)?",
    rf"{_THAT} (?:does(?:n't| not)|do(?:n't| not)) appear in {_TEXTS}",
    rf"{_THAT} (?:goes|is|lies) (?:beyond|outside(?: of)?) (?:{_TEXTS}|what (?:{_TEXTS}|i) (?:covers?|says?|tells?|knows?|have|was given|can (?:answer|tell|say))(?: (?:from|with|by) {_TEXTS})?)",
    rf"{_THAT} (?:can(?:no|')t|can not|could not|couldn't) be (?:answered|determined|found|confirmed)(?: (?:with|from|by|in|using|based on) {_TEXTS})?",
    rf"{_TEXTS} (?:do|does|did)(?: not|n't) {_TELLS}(?: {_THAT}|{_TOPIC})",
    rf"{_TEXTS} leaves? (?:this|that|it|the question|your question)(?: question)? (?:open|unanswered)",
    rf"{_TEXTS} (?:is|are|remains?) (?:silent|quiet)(?: (?:about|on){_TOPIC})?",
    rf"{_TEXTS} (?:returned|gave|gives|yielded|has|have|had) (?:no|not any) (?:results?|hits?|matches|answers?|information){_ABOUT}",
    rf"{_TEXTS} (?:makes?|gives?|contains?|provides?|holds?|offers?) no (?:mention|reference|information|details?|answers?|indication){_ABOUT}",
    r"i(?:'d| would)? (?:do not|don't|wouldn't|would not|rather not|prefer not to)(?: (?:want|wish|like) to)? ?(?:guess|speculate|make (?:something|anything) up)",
    r"(?:came up|i came up) empty|(?:i )?found nothing",
    r"n/a|no answer|unknown|not (?:stated|given|known to me)",
)
_STAFF = (
    r"(?:(?:the|our|your|a|an|their) )?(?:office|support(?: team| desk)?|customer (?:service|support|care)|help ?desk|colleagues?(?: in support)?|team|staff|specialist|expert|provider"
    r"|reception|service desk|somebody else|someone else)(?: (?:directly|for (?:help|assistance|details|this|that|more information)|about (?:this|that|it)))*"
)
CLOSINGS_EN = (
    rf"i(?:'ve| have)? (?:searched|looked|checked|read|went)(?: (?:twice|again|carefully|through|in|at|everywhere|all over|over))*(?: {_TEXTS})?",
    (
        rf"(?:please |perhaps |maybe )?(?:you (?:may|might|could|can)(?: (?:want|wish|like) to| also)? |i(?:'d| would)? (?:suggest|recommend)(?: that)? (?:you )?(?:to )?)?"
        rf"(?:contact|ask|check with|reach out to|get in touch with|consult|turn to|call)(?:ing)? {_STAFF}"
    ),
    rf"(?:perhaps|maybe) {_STAFF} (?:knows? more|can help(?: you)?|could help(?: you)?|may know(?: more)?)",
    r"(?:i'd|i would|i'll|i will|i'm|i am)(?: be)? (?:happy|glad|pleased) to (?:help|assist)(?: you)?(?: with (?:something|anything) else)?",
    r"(?:if you (?:like|wish|want), )?i (?:can|could) (?:search|look|try)(?: again)?(?: (?:with|for|using) (?:other|different|another) (?:key ?words?|terms?|words?|search))?",
    (
        r"please (?:share|send|upload|provide|give me) (?:a|the|another|more) (?:documents?|files?|texts?|details?|context|information)(?: (?:that|which) (?:covers?|contains?|has|mentions?) (?:it|this|that))?"
        r"(?:,? (?:and|so that) i(?:'ll| will| can) (?:take another look|look again|try again|check again))?"
    ),
    r"(?:please )?(?:try )?(?:rephrase|rephrasing|reword|rewording) (?:it|your question|the question)",
)

# German
_TEXTE = (
    r"(?:(?:der|die|das|den|dem|des|diese[rnms]?|ihre[nmr]?|meine[nmr]?|(?:vorliegend|bereitgestellt|gegeben|gefunden|verfügbar|hochgeladen|angegeben|genannt|vorhanden|obig)e[nrms]?|mir) )*"
    r"(?:text(?:e|en|es)?|kontext(?:es)?|dokument(?:e|en|es)?|unterlagen|quellen?|auszüge?n?|auszug|artikeln?|passagen?|abschnitte?n?|informationen|handbuch|seiten|daten|notizen|wissensdatenbank|material(?:ien)?|angaben)"
)
_AUS = rf"(?:aus|in|im|anhand|auf (?:grundlage|basis)|nach|laut|mit|gemäß|aufgrund) {_TEXTE}"
_DAS = r"(?:das|dies|es|(?:die|diese|ihre|deine) (?:frage|information|angabe)|(?:den|diesen) punkt)"
_KEINE = r"(?:nichts|(?:keine|keinerlei|nicht genügend|nicht genug) (?:auskunft|angaben?|informationen?|informationen|antwort|hinweise?|aussagen?)|keinen hinweis)"
_THEMA = r"(?: (?:zu[mr]?|über|auf|für) ([^,;:()—–]{0,80}))?"
FILLERS_DE = r"\b(?:leider|bedauerlicherweise|(?:es )?tut mir (?:sehr )?leid|entschuldigung|verzeihung|ich fürchte|derzeit|momentan|im moment|aktuell|hm+|auch|ehrlich gesagt|da)\b"
DE = (
    rf"(?:weiß|kann|konnte) ich(?: ihnen| dir)?(?: {_DAS}| dazu| darüber)?(?: {_AUS})? (?:nichts?|keine (?:auskunft|angaben?|antwort))(?: (?:sagen|beantworten|beurteilen|finden|bestätigen|geben|machen))?",
    rf"(?:finde|habe|fand|sehe) ich(?: dazu| darüber| hierzu)?(?: {_AUS})? {_KEINE}(?: dazu| darüber| hierzu)?{_THEMA}(?: {_AUS})?(?: gefunden)?",
    rf"(?:das|dies|es|{_DAS}) (?:weiß|kann|konnte) ich(?: {_AUS})?(?: ihnen| dir)? nicht(?: (?:sagen|beantworten|beurteilen|herausfinden|finden|bestätigen|wissen))?",
    rf"ich (?:weiß|kann|konnte)(?: {_DAS})?(?: {_AUS})?(?: {_DAS})? nicht(?: (?:sagen|beantworten|beurteilen|herausfinden|finden|bestätigen|antworten))?",
    rf"{_AUS} (?:weiß|kann|konnte) ich {_DAS} nicht (?:sagen|beantworten|beurteilen|finden)",
    r"(?:ich habe )?keine ahnung|muss ich passen|ich muss passen|unbekannt|keine angaben?|nicht bekannt",
    rf"(?:dazu|darüber|hierzu|{_AUS}) (?:finde|habe|fand|sehe|konnte) ich(?: dazu| darüber| hierzu| {_AUS})? {_KEINE}(?: {_AUS})?{_THEMA}(?: (?:gefunden|finden))?",
    rf"ich (?:finde|habe|sehe|fand|konnte)(?: dazu| darüber| hierzu)?(?: {_AUS})? {_KEINE}(?: dazu| darüber| hierzu)?{_THEMA}(?: {_AUS})?(?: (?:gefunden|finden))?",
    rf"(?:dazu|darüber|hierzu) (?:steht|findet sich|gibt es)(?: {_AUS})? {_KEINE}(?: {_AUS})?",
    rf"{_AUS} (?:steht|findet sich|gibt es|ist)(?: dazu| darüber| hierzu)? {_KEINE}(?: dazu| darüber| hierzu)?{_THEMA}",
    rf"{_TEXTE} (?:gib|geb|enth|nenn|mach|biet|liefer)\w*(?: dazu| darüber| hierzu)? {_KEINE}(?: dazu| darüber| hierzu)?{_THEMA}",
    rf"{_TEXTE} (?:erwähn|beantwort|behandel|nenn|sag|beschreib|klär)\w* (?:{_DAS}|dazu|darüber) nicht",
    rf"{_TEXTE} (?:sag|verr)\w* (?:dazu|darüber|hierüber) nichts",
    rf"{_AUS} (?:lässt|lassen) sich {_DAS} nicht (?:beantworten|bestimmen|entnehmen|sagen|ableiten)",
    rf"{_DAS} bleibt(?: {_AUS})? (?:offen|unbeantwortet|unklar)|{_TEXTE} (?:lässt|lassen) {_DAS} offen",
    rf"{_DAS} (?:lässt sich|kann)(?: {_AUS})? nicht (?:beantworten|bestimmen|entnehmen|sagen|beantwortet werden)",
    rf"{_DAS} (?:ist|wird|geht|steht)(?: {_AUS})? nicht (?:angegeben|erwähnt|enthalten|genannt|hervor|{_AUS})",
)
CLOSINGS_DE = (
    rf"(?:weiß|kann|konnte) ich(?: ihnen| dir)?(?: {_DAS}| dazu| darüber)?(?: {_AUS})? (?:nichts?|keine (?:auskunft|angaben?|antwort))(?: (?:sagen|beantworten|beurteilen|finden|bestätigen|geben|machen))?",
    rf"(?:finde|habe|fand|sehe) ich(?: dazu| darüber| hierzu)?(?: {_AUS})? {_KEINE}(?: dazu| darüber| hierzu)?{_THEMA}(?: {_AUS})?(?: gefunden)?",
    r"(?:kann|darf) ich (?:ihnen|dir) (?:(?:sonst|noch|anderweitig|bei etwas anderem|mit etwas anderem|irgendwie) )*(?:weiter)?helfen",
    r"(?:möchten|wollen) sie (?:eine andere frage stellen|etwas anderes (?:wissen|fragen)|die frage anders (?:stellen|formulieren))",
    r"haben sie (?:noch )?(?:weitere|andere|eine andere) fragen?",
    r"(?:bitte )?(?:wenden sie sich|wende dich) (?:bitte )?(?:direkt )?an (?:(?:den|die|das|unser|unseren|unsere|ihren|ihre) )?(?:kundendienst|kundenservice|support|team|büro|geschäftsstelle|kollegen|hotline|service)",
    r"(?:gern|gerne) helfe ich (?:ihnen|dir) (?:bei|mit) (?:etwas anderem|anderen fragen)(?: weiter)?",
)

# French
_TEXTES = (
    r"(?:(?:le|la|les|ce|cet|cette|ces|mes|vos|des|du|de|aux?) )*(?:l')?(?:documents?|textes?|contextes?|sources?|passages?|extraits?|articles?|informations?|pages?|fichiers?|manuel|notes|données|base de connaissances)"
    r"(?: (?:fournie?s?|disponibles?|donnée?s?|ci-dessus|à ma disposition|que j'ai|dont je dispose))*"
)
_DANS = rf"(?:dans|à partir de|à partir|avec|d'après|selon|sur la base de|en me basant sur) {_TEXTES}"
_CELA = r"(?:cela|ça|(?:à )?(?:la|cette|votre|ta) (?:question|demande)|(?:la|cette) (?:réponse|information)|ce point|y)"
_SUJET = r"(?: (?:à ce sujet|là-dessus|sur ce (?:point|sujet)|(?:sur|concernant|à propos de|au sujet de) ([^,;:()—–]{0,80})))?"
FILLERS_FR = r"\b(?:malheureusement|désolée?|je suis (?:vraiment )?désolée?|je regrette|excusez-moi|hélas|pour le moment|actuellement|honnêtement)\b"
FR = (
    r"je (?:ne )?(?:le )?sais pas",
    r"je (?:n'en|ne) (?:ai|sais|sais rien)(?: (?:aucune idée|rien|pas))?|aucune idée|je l'ignore|inconnu",
    rf"je ne (?:peux|saurais|suis pas en mesure de|peux donc) ?(?:pas )?(?:y )?(?:vous )?(?:répondre|dire|le dire|confirmer|trouver|affirmer)(?: {_CELA})?(?: {_DANS})?",
    rf"je n'ai (?:pas |rien )?(?:trouvé |pu trouver |vu )?(?:(?:aucune|d'|cette|la|l'|de) ?(?:informations?|réponse|mention|donnée))?{_SUJET}(?: {_DANS})?",
    rf"je ne (?:trouve|vois) pas {_CELA}(?: {_DANS})?",
    rf"{_DANS} je ne (?:peux|trouve) pas (?:répondre|cela|la réponse|{_CELA})",
    rf"{_TEXTES} ne (?:permet|permettent|nous permet|me permettent|me permet) pas de (?:répondre(?: {_CELA})?|le (?:dire|savoir)|conclure)",
    (
        rf"{_TEXTES} (?:ne (?:le |la )?|n')(?:précise|précisent|dit|disent|mentionne|mentionnent|indique|indiquent|contient|contiennent|aborde|abordent|donne|donnent|fournit|fournissent|répond|répondent|traite|traitent)"
        rf"(?: pas| rien| aucune?)(?: (?:{_CELA}|d'informations?|informations?|mention|réponse|la réponse))?{_SUJET}"
    ),
    rf"{_TEXTES} n'en parle(?:nt)? pas",
    rf"{_CELA} (?:ne figure|n'est|n'apparaît|ne se trouve) pas(?: (?:précisée?|indiquée?|mentionnée?|dite?))?(?: {_DANS})?",
    r"je préfère ne (?:rien affirmer|pas (?:deviner|spéculer))",
    rf"il n'y a (?:pas d'|aucune )(?:informations?|mention|réponse){_SUJET}(?: {_DANS})?",
)
CLOSINGS_FR = (
    r"puis-je vous aider (?:autrement|avec autre chose|pour autre chose)|souhaitez-vous (?:autre chose|poser une autre question|que je cherche autre chose)",
    r"n'hésitez pas à (?:poser une autre question|me poser une autre question|reformuler(?: votre question)?|nous contacter|contacter (?:le|notre) (?:support|service client))",
    r"(?:veuillez |vous pouvez )(?:contacter|vous adresser à|vous adresser au) (?:(?:le|la|notre|au) )?(?:support|service client|accueil|bureau)",
    r"avez-vous (?:une autre question|d'autres questions)",
)

# Spanish
_TEXTOS = (
    r"(?:(?:el|la|los|las|este|esta|estos|estas|mis|sus) )*(?:documentos?|textos?|contextos?|fuentes?|pasajes?|extractos?|fragmentos?|artículos?|informaci(?:ón|ones)|páginas?|archivos?|manual|notas|datos|base de conocimientos?)"
    r"(?: (?:proporcionad|disponible|facilitad|dad|aportad|que tengo|a mi disposición)[oa]?s?)*"
)
_EN = rf"(?:en|con|según|a partir de|basándome en|de acuerdo con) {_TEXTOS}"
_ESO = r"(?:eso|esto|ese (?:dato|punto|tema)|este (?:dato|punto|tema)|(?:a )?(?:la|esa|esta|su|tu) (?:respuesta|información|pregunta)|nada)"
_TEMA = (
    r"(?: (?:al respecto|sobre (?:eso|esto|ello|este tema|([^,;:()—–]{0,80}))|acerca de ([^,;:()—–]{0,80})))?"
)
FILLERS_ES = r"\b(?:lo siento(?: mucho)?|por desgracia|desgraciadamente|lamentablemente|desafortunadamente|perdón|disculpe|disculpa|lamento no poder ayudar|de momento|por ahora|sinceramente)\b"
ES = (
    r"(?:yo )?no (?:lo )?sé|no (?:tengo|tenemos) (?:ni )?(?:idea|la menor idea)|desconocido",
    rf"no (?:puedo|es posible|soy capaz de|sabría) (?:contestar|responder|decir(?:lo|le|te)?|confirmar(?:lo)?|determinar(?:lo)?|encontrar)(?: {_ESO})?(?: {_EN})?",
    rf"{_EN} no (?:puedo|es posible) (?:contestar|responder|decir(?:lo|le|te)?|determinar(?:lo)?)(?: {_ESO})?",
    rf"no (?:tengo|dispongo de|cuento con|he encontrado|encuentro|encontré|pude encontrar)(?: ninguna| suficiente| más)?(?: {_ESO}| información| datos| mención| respuesta)+{_TEMA}(?: {_EN})?",
    rf"no hay (?:ninguna |suficiente )?(?:información|mención|respuesta|datos){_TEMA}(?: {_EN})?",
    rf"{_TEXTOS} no (?:lo |la )?(?:menciona|dice|contiene|indica|incluye|aclara|especifica|recoge|responde|ofrece|habla|trata)n?(?: de)?(?: {_ESO}| información)*{_TEMA}",
    rf"{_ESO} no (?:(?:aparece|figura|se (?:menciona|indica|dice|especifica))(?: {_EN})?|está {_EN})|no se (?:menciona|indica|dice|especifica)(?: {_ESO})?(?: {_EN})?",
    r"prefiero no (?:adivinar|especular|afirmar nada)",
)
CLOSINGS_ES = (
    r"¿?(?:puedo ayudar(?:le|te|lo|la)? (?:en|con) (?:algo más|otra cosa)|(?:quiere|desea|quieres) que busque otra cosa|(?:tiene|tienes) (?:alguna )?otra pregunta|(?:le|te) puedo ayudar en algo más)",
    r"(?:por favor,? )?(?:póngase|ponte) en contacto con (?:(?:el|la|nuestro) )?(?:soporte|servicio al cliente|atención al cliente|oficina)|(?:por favor,? )?consulte (?:con |a )?(?:(?:el|la|nuestro) )?(?:soporte|servicio al cliente|atención al cliente|oficina)",
)

# Italian
_TESTI = (
    r"(?:(?:il|la|i|le|gli|questo|questi|questa|queste|miei|vostri) )*(?:l')?(?:document[oi]|test[oi]|contest[oi]|font[ei]|pass(?:o|i|aggi|aggio)|estratt[oi]|articol[oi]|informazion[ei]|pagin[ae]|file|manuale|note|dati|materiale)"
    r"(?: (?:fornit|disponibil|dat|a mia disposizione)[oaie]?)*"
)
_NEL = rf"(?:(?:nel|nei|nelle|negli|nella|dal|dai|dalle|dalla|in base al|in base ai|in base alle|con il|con i|secondo il|secondo i|sulla base del|sulla base dei) ?(?:l')?{_TESTI}|nell'articolo|dalle informazioni disponibili)"
_QUESTO = r"(?:questo|ciò|quest[oa] (?:informazione|dato|punto|domanda)|(?:al)?la (?:risposta|domanda|sua domanda)|la risposta alla (?:sua )?domanda|dirlo|niente|nulla|informazioni)"
_RIGUARDO = r"(?: (?:al riguardo|in merito|su (?:questo|ciò|questo punto|([^,;:()—–]{0,80}))|a riguardo|a proposito))?"
FILLERS_IT = (
    r"\b(?:purtroppo|mi (?:di)?spiace|spiacente|scusi|mi scusi|al momento|per ora|onestamente|sinceramente)\b"
)
IT = (
    r"(?:io )?non (?:lo )?so|non ne ho idea|non saprei(?: (?:dirlo|dire|rispondere))?|nessuna idea|sconosciuto",
    rf"non (?:posso|sono in grado di|riesco a|è possibile) (?:rispondere|dirlo|dire|trovare|confermarlo|confermare|stabilirlo)(?: a)?(?: {_QUESTO})?(?: {_NEL})?",
    rf"non (?:ho|trovo|dispongo di)(?: trovato)?(?: {_QUESTO}| nessuna informazione| abbastanza informazioni| alcuna informazione| risposta)+{_RIGUARDO}(?: {_NEL})?",
    rf"non (?:ci sono|c'è|vi è|vi sono) (?:informazioni|risposta|alcuna informazione|dati sufficienti){_RIGUARDO}(?: {_NEL})?",
    rf"{_TESTI} non (?:lo |la |ne )?(?:riport|indic|dic|contien|contengon|menzion|specific|parl|precis|fornisc|tratt|rispond|copr)\w*(?: a)?(?: {_QUESTO})?{_RIGUARDO}",
    rf"{_NEL} non (?:se ne parla|è (?:indicato|riportato|specificato|menzionato)|c'è (?:risposta|scritto)|si (?:dice|trova))(?: {_QUESTO})?",
    rf"{_QUESTO} non (?:è|viene|compare|risulta|si trova)(?: (?:(?:indicat|riportat|specificat|menzionat)[oa](?: {_NEL})?|(?:presente )?{_NEL}))",
    r"preferisco non (?:tirare a indovinare|affermare nulla|fare ipotesi)",
)
CLOSINGS_IT = (
    r"(?:posso|potrei) (?:aiutarla|aiutarti|esserle utile|aiutare)(?: (?:con|in) (?:altro|qualcos'altro))?|(?:vuole|vuoi|desidera) che cerchi (?:altro|qualcos'altro|qualcosa d'altro)|(?:ha|hai) altre domande",
    r"(?:la prego di |si prega di |può )?(?:contatti|contattare|rivolgersi a|si rivolga a) (?:(?:il|la|al|alla|nostro) )*(?:l')?(?:assistenza|servizio clienti|supporto|ufficio)",
)

# Chinese and Japanese
_ZILIAO = r"(?:(?:您|你|我|所|现有|已有|目前|当前|提供|给出|给定|上传|检索到|手头)*的?)?(?:这些|该|上述|以上|现有|已有)?(?:参考资料|资料|上下文|文档|文件|信息|段落|内容|材料|文章|文本|知识库|手册)(?:里|中|内|当中)*"
_ZHE = r"(?:这一点|这点|这个(?:问题|信息|内容)?|这件事|此事|该(?:问题|信息|内容)|相关(?:的)?(?:信息|内容|资料|说明|答案)|有关(?:的)?(?:信息|内容)|任何(?:相关)?(?:信息|内容)|答案|您的问题|你的问题|您(?:所)?问的(?:内容|问题))"
FILLERS_ZH = r"(?:非常|很|十分)?(?:抱歉|遗憾|对不起|不好意思)|恐怕|目前|暂时"
ZH = (
    rf"(?:根据|依据|基于|从)?(?:{_ZILIAO})?[，,]?(?:我)?(?:还)?(?:无法|不能|没法|没办法|难以)(?:回答|确定|判断|得知|给出|提供|确认)(?:{_ZHE})?",
    rf"{_ZHE}我?(?:也)?(?:不知道|不清楚|无法(?:回答|确定))",
    rf"我?(?:也|真的?|确实)?(?:不知道|不清楚|不了解|不太清楚|不太确定|不确定)(?:{_ZHE})?",
    rf"我?(?:并)?(?:没有|没|未|未能)(?:能)?(?:找到|查到|看到|检索到|搜到)(?:{_ZHE})",
    rf"{_ZILIAO}(?:并)?(?:没有|未|并未|没)(?:提到|提及|说明|给出|提供|包含|涉及|写明|记载|回答|介绍)?(?:{_ZHE})",
)
CLOSINGS_ZH = (
    r"(?:我)?(?:建议)?(?:请)?(?:您|你)?(?:可以)?(?:直接)?(?:联系|咨询|询问)(?:一下)?(?:我们的?)?(?:人工)?(?:客服|工作人员|相关部门|客户服务)(?:人员)?(?:了解(?:详情|更多))?",
    r"(?:请问)?(?:您|你)?还有(?:什么)?(?:其他|其它|别的)?(?:问题|疑问|需要)(?:可以帮(?:您|你)的?)?吗?|(?:请问)?还有(?:什么|其他)?可以帮(?:您|你|到您)的?吗?",
)
_SHIRYOU = r"(?:(?:ご?提供(?:された|いただいた)|与えられた|現在の|お手元の|手元の|上記の|この|検索された)*(?:資料|文書|文脈|コンテキスト|ドキュメント|テキスト|情報|本文|記事|マニュアル)(?:の中|内)?)"
_SORE = r"(?:(?:その|この|ご質問の|該当する|関連する|お尋ねの|当該の?)(?:情報|内容|件|点|質問|ご質問|記載|記述|こと|答え)|それ|これ|答え|ご質問|情報)"
FILLERS_JA = (
    r"(?:大変)?申し訳(?:ありません|ございません)(?:が)?|すみません(?:が)?|恐れ入りますが|残念ながら|あいにく"
)
JA = (
    rf"(?:{_SORE}(?:について)?(?:は|が)?)?(?:私には)?(?:わかりません|分かりません|わかりかねます|分かりかねます|存じません|お答えできません|答えられません|判断できません|不明です)(?:でした)?",
    rf"{_SHIRYOU}(?:から|だけ)*(?:は|では|には)?(?:{_SORE}(?:は|に|を|について)?)?(?:わかりません|分かりません|判断できません|お答えできません|答えられません|特定できません|読み取れません|回答できません)",
    rf"(?:{_SORE}(?:について)?(?:は|が)?)?{_SHIRYOU}(?:に|で|には|では|から|の中に)(?:は)?(?:{_SORE}(?:について)?(?:は|が)?)?(?:見当たりません|記載されていません|記載がありません|書かれていません|見つかりません|含まれていません|触れられていません|ありません)(?:でした)?",
    rf"{_SORE}(?:について)?(?:は|が)?(?:見当たりません|見つかりません|記載されていません|記載がありません|確認できません)(?:でした)?",
    rf"{_SHIRYOU}(?:に|には)?(?:{_SORE}の?)?(?:記載|記述|言及|情報)?が(?:ない|見当たらない)(?:ため|ので)、?(?:{_SORE}(?:に|は|には)?)?(?:わかりません|お答えできません|判断できません|回答できません)",
    rf"{_SHIRYOU}(?:に|には)?{_SORE}(?:は|が)(?:記載されていません|ありません|含まれていません)(?:でした)?",
)
CLOSINGS_JA = (
    r"(?:ほか|他|その他)に(?:も)?(?:何か)?(?:お手伝い(?:できること)?|ご質問|お困りのこと|お役に立てること)(?:が|は)?(?:ありますか|ございますか|ありましたら(?:お知らせください|お申し付けください))",
    r"(?:詳しくは|詳細は)?(?:カスタマーサポート|サポート|窓口|担当者)(?:まで|に)(?:お問い合わせください|ご連絡ください)",
)
