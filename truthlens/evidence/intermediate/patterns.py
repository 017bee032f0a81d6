"""How prompts of intermediate calls word their task in English, by kind of task (others: ``languages``).

In a table a line is the pattern of a sentence that gives a task; each line indented below it is a pattern
that has to be found too, anywhere in the instructions. All of it is matched in lower case; ``calls`` decides which
sentences give a task.
"""

from __future__ import annotations

from typing import NamedTuple


class TaskForm(NamedTuple):
    """One way to word a kind of task: ``says`` in the sentence of the task, each of ``also`` somewhere in the instructions.

    What ``.*`` joins outside of brackets is looked for piece by piece, each behind the one before.
    """

    says: str
    also: tuple[str, ...] = ()


def forms(table: str) -> list[TaskForm]:
    """Return the forms of a table; in it a line that begins with ``#`` is a comment."""
    found: list[TaskForm] = []
    for line in table.splitlines():
        if line.startswith("    "):
            found[-1] = TaskForm(found[-1].says, (*found[-1].also, line.strip()))
        elif line.strip() and not line.startswith("#"):
            found.append(TaskForm(line))
    return found


_MAKE = (
    r"\b(?:(?:generat|creat|mak|writ|produc|compos|provid|propos|devis|giv|shap|rephras|paraphras|condens|refin|combin|merg|nam|reword|formulat|reformulat|rewrit|summari[sz]"
    r"|decontextuali[sz])(?:e|es|ing)|(?:draft|return|suggest|find|turn|convert|transform|put|expand|build|construct|output|respond|distil|compress|list|predict|recommend|pick|add"
    r"|attach|label|tell|sum|assign|form)(?:s|ing)?|com(?:e|es|ing) up with|choos(?:e|ing)|repl(?:y|ies))\b"
)
_CHAT = r"\b(?:conversations?|chats?|dialog(?:ue)?s?|threads?|discussion|exchange|chat[_ ]history|history|talk|messages?)\b"
_ASKED = r"\b(?:questions?|quer(?:y|ies)|messages?|inputs?|requests?|utterances?|prompts?)\b"
# What an answer to a user is not told: to be nothing but a label, a list, a piece of code.
_ONLY = (
    r"\b(?:only|solely|exclusively|nothing (?:else|but|except|around|more)|and nothing|no (?:other|more|further|additional|explanations?|prose|comments?"
    r"|preamble|extra|numbering)|without (?:any |further )?(?:explanation|comment|additional|preamble)\w*|json|array|comma|alone|one word"
    r"|single (?:word|label|key)|one per line|strictly|xml)\b"
)
_ONLY_JSON = r"\bjson\b|\barray\b|comma|separated|\bnull\b|\bonly\b|\bschema\b|nothing (?:but|else)|list of|one per line|in the form"
_QUERY_LANGUAGE = r"\b(?:\w*sql\w*|postgres\w*|cypher|sparql|graphql|kql|mongo\w*|elasticsearch|lucene|duckdb|oracle|bigquery|snowflake)\b"
_LANGUAGE = (
    r"(?:english|german|french|spanish|italian|portuguese|dutch|swedish|danish|norwegian|finnish|polish|czech|russian|ukrainian|turkish|greek|arabic"
    r"|hebrew|hindi|chinese|mandarin|japanese|korean|vietnamese|thai|indonesian|romanian|hungarian|latin|\{|the (?:target|given|requested|desired|other)\b)"
)
_USERS_TEXT = r"(?:text|input|message|sentence|content|e-?mail|paragraph|everything|whatever|anything|string|word|line|subtitle|user|document|draft)\w*"
_GRADED = r"\b(?:documents?|passages?|chunks?|contexts?|answers?|facts|statements?|claims?|responses?|generations?|snippets?|excerpts?|results?|pages?)\b"
_SUMMARY_KEPT = (
    r"\b(?:current|existing|previous|prior|running|new|updated|rolling) summary\b|\bnew lines\b|future (?:context|reference|turns)|\bmemor(?:y|ies)\b"
    r"|prompt for|context window|(?:carry on|continue|resume) the (?:conversation|chat|talk)|long-term"
)

# In braces the patterns above; doubled braces are those of a pattern.
ENGLISH = forms(rf"""
# query rewriting
{_MAKE}.*\b(?:stand-?alone|self-contained|context-free|decontextuali[sz]ed)\b.{{0,40}}{_ASKED}
{_MAKE}.*{_ASKED}.*(?:\bstands? (?:alone|for itself|on its own|by itself)|stand-?alone|self-contained|(?:understood|understandable|makes? sense|clear|read|meaningful|complete)\b.{{0,30}}(?:without|on (?:its|their) own|by itself|independent))
{_MAKE}.*\b(?:search|retrieval|google|bing|web|lookup|keyword|vector\w*|semantic|database)(?:[ -]\w+)? quer(?:y|ies)\b
    {_ONLY}|{_CHAT}|single|input query
{_MAKE}.*\bquer(?:y|ies)\b.*\b(?:for|fit for) (?:retrieval|search|a search)
{_MAKE}.*\b(?:alternative|other|different|various|several|multiple|more|\d+|two|three|four|five|six)\b.{{0,30}}\b(?:phrasings?|rephrasings?|wordings?|rewordings?|versions?|variations?|variants?|formulations?|paraphrases?|perspectives)\b.*{_ASKED}
    retriev|search|vector|\bindex|recall|database|per line|original (?:question|query)|\bonly\b
\b(?:break|decompos|split|divid|generat|creat|turn|writ)\w*\b.*\bsub-?(?:questions?|quer(?:y|ies)|problems?)\b
    {_ASKED}
{_MAKE}.*\b(?:search|retrieval) (?:phrase|string|terms?)\b|{_MAKE}.*\bphrase\b.*\bfinds\b
    {_ONLY}
\bstep[- ]back\b.*\bquestion|\bmore generic\b.*\bquestion
# hypothetical document
\b(?:write|generate|compose|draft|imagine)\b.*\bhypothetical\b.*\b(?:passage|paragraph|document|text|answer|excerpt)
\b(?:write|generate|compose|draft)\b.*\battempts? at (?:an |the )?answer
    \bsearch\b|\bretriev
# situating
\bsituat(?:e|es|ing)\b.*\b(?:chunk|passage|excerpt)\b
# title
(?:{_MAKE}|\bas a).*\b(?:titles?|headlines?|heading|name|phrase|topic)\b
    {_CHAT}
    (?:\bwords?\b|\bcharacters\b|\bpunctuation|\bquot|\bonly\b|\bjson\b|emoji|letters|\bconcise\b|\bshort\b|\bbrief\b)
^(?:an? |the )?(?:\w+ ){{0,2}}(?:title|headline) (?:of|for|in|with)\b.*\bwords?\b
    (?:this|the|following|our) {_CHAT}
# tags
{_MAKE}.*\b(?:tags?|hashtags|labels)\b
    {_CHAT}
    (?:\bjson\b|\barray\b|comma|\bonly\b|lower-?case)
# suggestions
{_MAKE}.*\b(?:questions?|prompts?|quer(?:y|ies)|replies|suggestions)\b.*\b(?:user|human|customer|person|student|reader|they|he|she)\b.*\b(?:asks?|put|puts|send|say|type|want)\b
    {_ONLY}|\blist\b|each|{_CHAT}
{_MAKE}.*\b(?:prompt|question|reply) suggestions\b
    {_ONLY}
{_MAKE}.*\bfollow-?[ _]?ups?\b.*\b(?:questions?|prompts?)\b
    {_CHAT}
    {_ONLY}
{_MAKE}.*\bquestions?\b.*\b(?:human|user)\b.*\b(?:would|could|might|will|is likely to)\b.*\bask
    {_ONLY}
# classification
\b(?:classif|categori[sz]|sort|assign|label|tag|determin|decid|detect|identif|recogni[sz]|pick|choos|select|predict|give|return|map)\w*\b.*\b(?:intents?|intentions?|categor(?:y|ies)|class(?:es)?|labels?|departments?|sentiments?|polarity|topics?|urgency|priority|data ?source|one of)\b
    {_ONLY}
\b(?:you are|act as) (?:an? )?(?:\w+[ -]){{0,4}}(?:classifier|router|categori[sz]er)\b
    {_ONLY}
\b(?:rout|dispatch|forward)\w*\b.*\b(?:question|query|message|request|input|user)\b.*\bto\b
    {_ONLY}
\b(?:sort|classify|categori[sz]e|file|route)\b.*\binto (?:exactly |just |only )?one\b
\b(?:select|choose|pick)\b.*\bprompt\b.*\bbest (?:suited|fit)
\b(?:choice|option|tool)s?\b.*\bmost relevant to the question\b
\bclassif\w*\b.*\b(?:as|into)\b.*(?:,| or )
    {_ONLY}
# grading
\b(?:grad|judg|assess|evaluat|determin|decid|check|scor|rat)\w*\b.*(?:{_GRADED}.*\b(?:relevan|useful|helpful|ground|support|hallucinat|faithful|address|bear|resolv)|\b(?:relevan|useful|ground|hallucinat|faithful)\w*\b.*{_GRADED})
    \byes\b.{{0,12}}\bno\b|\bbinary\b|\btrue\b.{{0,12}}\bfalse\b|\b(?:score|rating|grade)\b.*(?:\bjson\b|\bonly\b|\bnumber\b|\d)
# ranking
\b(?:respond|reply|answer|return|output|give)\b.*\b(?:numbers?|ids?) of the (?:documents?|passages?|chunks?)\b
    \brelevan
# query language
^you write {_QUERY_LANGUAGE}
    create table|\bschema\b|\bstatement\b|\bselect\b
\b(?:generat|creat|writ|produc|return|giv|translat|convert|turn|construct|build|output)\w*\b.*(?:{_QUERY_LANGUAGE}.*\b(?:quer|statement|command|code|expression)|\bselect statement)
    \b(?:only|schema|tables? (?:below|given|info)|create table|to (?:be )?run|no explanation|nothing)\b
{_QUERY_LANGUAGE}.*\b(?:quer(?:y|ies)|statements?)\b
    \b(?:writ|generat|creat|return|produc|build)\w*\b
    (?:\bonly (?:use|the|these)|create table|\bschema\b)
    \bquery\b
\btext-?(?:to|2)-?(?:sql|cypher|sparql)\b
\b(?:generat|build|construct|creat|writ)\w*\b.*\b(?:api|http|rest)\b.{{0,20}}\b(?:url|call|request)\b
    documentation|\bonly\b
# code
\b(?:return|output|reply|respond|answer|give|write|produce)\w*\b.*(?:\bcode\b.{{0,20}}\b(?:only|and nothing|alone)\b|\bonly\b.{{0,30}}\b(?:code|script|function)\b(?! (?:of|base))|code block and nothing)
# extraction
\b(?:extract|pull|tak|pick|identif|find|return|list|give|provide|recogni[sz])\w*\b.*\b(?:entit(?:y|ies)|key ?-?words?|key ?-?phrases?|tripl(?:et|e)s?|attributes?|fields|relationships|slots)\b
    {_ONLY_JSON}
\b(?:extract|pull|take)\b.*\b(?:from|out of)\b.*(?:\btext|\bmessage|\be-?mail|\binput|\bsentence|\bsends?\b|\bdescription|\btranscript|\bresume|\bdocument)
    \bjson\b|\bnull\b|\bxml\b
\b(?:you are|act as) (?:an? )?(?:\w+[ -]){{0,4}}extraction (?:algorithm|engine|system|service|model)\b
# translation
^(?:an? )?translator\b(?!.*\?)
    \b(?:in)?to\b.{{0,40}}\b(?:alone|only|nothing)|\btranslation\b
\b(?:you are|act as) (?:an? )?(?:\w+[ ,-]+){{0,5}}(?:translator|translation (?:engine|service|system|machine|assistant|expert|tool|bot|api))\b
    translat|\binput\b|\btext\b|\binto\b
\btranslate\b(?! your)(?! technical).{{0,60}}\b{_USERS_TEXT}\b.{{0,60}}\b(?:in)?to {_LANGUAGE}
    {_ONLY}|\btranslation\b|do not (?:answer|interpret|explain)
# rewriting
\b(?:you are|act as) (?:an? )?(?:\w+[ ,-]+){{0,5}}(?:proofreader|copy ?-?editor|corrector|(?:grammar|spelling|spell|style)[ -]?checker|paraphraser|rewriter|rewriting \w+)\b
    {_ONLY}|corrected|rewritten|rewrite|improve
\b(?:correct|fix|proofread|polish|rewrit|rephras|paraphras|improv|revis|simplif|shorten|edit)\w*\b.{{0,60}}\b(?:the|user'?s|any|every|each|given|whatever|their)\b.{{0,30}}\b(?:text|messages?|sentences?|input|e-?mails?|drafts?|paragraphs?|spelling|grammar|writing)\b
    \b(?:only|nothing but|just)\b.{{0,40}}\b(?:text|version|result|corrected|rewritten|revised|improved|message|sentence)|(?:text|version|result)\b.{{0,30}}\b(?:only|and nothing|alone)\b
# memory
\bextract\b.*\b(?:facts|preferences|memories)\b
    \bjson\b
\b(?:summari[sz]|sum|condens|compress|updat|extend|progressively)\w*\b.*(?:{_CHAT}|\blines\b|\bsummary\b)
    {_SUMMARY_KEPT}
\b(?:writ|extract|not|stor|record|sav|collect|updat|list|maintain|keep)\w*\b.*\b(?:facts?|memor(?:y|ies)|preferences|details)\b.*\b(?:user|human|customer|person)
    \bjson\b|\blist of\b|\barray\b|\bonly\b
# plan
\bbreak\b.*\bdown\b.*\bsteps\b
    \bjson\b|\barray\b
    {_ONLY}
{_MAKE}.*\bplan\b|\bplan\b.*\b(?:steps|tools?)\b
    \bjson\b|.*\barray\b
    \b(?:tools?|steps?|agents?|tasks?)\b
# autocompletion
\bauto-?complet(?:ion|e|es|ing)\b
    \btext\b|\bcode\b
\b(?:continue|complete|finish)\b.*\b(?:text|sentence|code)\b.*<(?:text|prefix|type|cursor)>
# emoji
(?:{_MAKE}|\breflect\w*|\bexpress\w*|\brepresent\w*).*\bemojis?\b
    facial expression|\b(?:only|single|one|fitting)\b.{{0,20}}\bemoji
# image prompt
{_MAKE}.*\bprompt\b.*(?:\bimage|stable diffusion|midjourney|dall|flux)|{_MAKE}.*\b(?:image|diffusion|picture)[ -](?:generation )?prompt\b
""")

# Names of the fields that chat interfaces ask for in JSON, behind a heading "Task".
JSON_FIELD = (
    r"[\"'](?:title|tags|follow_?ups|queries|query|text|prompt|emoji|intent|category|questions)[\"']\s*:"
)
# The last line of a prompt, for the model to go on: what it writes is no answer.
END_CUE = (
    r"(?:(?:final |your |the )?(?:stand-?alone|rephrased|rewritten|reformulated|condensed|decontextuali[sz]ed|refined) (?:follow-?up )?(?:question|query|input)"
    r"|(?:write |here is )?(?:a |an |the )?(?:better|improved) (?:question|query)"
    r"|(?:search|retrieval|optimi[sz]ed|new|step-?back) quer(?:y|ies)|alternative (?:questions|queries)|sub-?questions|sql ?query|sql|cypher(?: (?:query|statement))?|sparql"
    r"|api[ _]url|new summary|updated summary|key ?words|triplets|tags|output \(\d+ queries\)|hypothetical (?:document|passage|answer)"
    r"|独立问题|(?:改写|重写|重述|优化|补全)后的?(?:问题|查询|提问)|检索词|搜索词|检索问题|关键词|新摘要|译文"
    r"|(?:eigenständige|umformulierte) frage|neue zusammenfassung|question (?:autonome|reformulée|indépendante)|nouveau résumé"
    r"|pregunta (?:independiente|reformulada|autónoma)|nuevo resumen|(?:самостоятельный|переформулированный) вопрос|単独の質問|書き換えた質問|検索クエリ)"
)
PASSAGE_TASK = r"\b(?:write|generate|compose)\b.{0,60}\b(?:passage|paragraph|document)\b.{0,60}\banswer"
PASSAGE_CUE = r"(?:passage|paragraph|document)"

# At the start of the user's message: an order about a text of his own, which follows behind a colon or a line break.
OWN_TEXT = (
    r"(?:(?:hi|hello|hey)\b[ ,!.]*)?(?:(?:can|could|would|will) you\s+)?(?:(?:please|kindly|pls)\s+)?(?:help me (?:to )?)?(?:"
    r"translate\b(?=.{0,80}\b(?:in)?to\b)"
    r"|(?:correct|fix|proofread|check|improve|polish|rewrite|rephrase|paraphrase|reword|edit|shorten|simplify)\b(?=\s+(?:(?:the|this|these|my|our|following|any|all|below|spelling|grammar|and|of|in|up)\s+){0,5}"
    r"(?:\w+\s+)?(?:text|sentences?|paragraphs?|e-?mails?|message|letter|draft|post|grammar|spelling|wording|writing|typos|mistakes|errors|style|tone|reply|note|words|speech|bio|this|so)\b)"
    r"|rewrite this\b"
    r"|(?:请|請)?(?:帮我|帮忙|麻烦)?(?:把|将)?(?:下面|以下|这|下列).{0,20}(?:翻译|译成|译为|润色|改写|修改|纠正|校对)"
    r"|(?:请|請)?(?:帮我|帮忙|麻烦)?(?:翻译|润色|改写|校对|纠正).{0,20}(?:成|为|以下|下面|下列|这[段句封篇])"
    r"|(?:bitte )?(?:übersetz|korrigier|verbesser|überarbeit|formulier)\w*\s+(?:(?:bitte|mir|mal|sie)\s+)*(?:das|diese\w*|den folgenden|folgende\w*|meine\w*|die (?:grammatik|rechtschreibung))\b"
    r"|(?:peux-tu |pouvez-vous |s'il (?:te|vous) plaît,? )?(?:tradui\w+|corrig\w+|reformul\w+|amélior\w+|relis\w*)\s+(?:(?:moi|-moi)\s+)?(?:ce|cette|ces|le texte suivant|la phrase suivante|mon|ma|mes|les fautes|l'orthographe|ceci|en)\b"
    r"|(?:por favor,? )?(?:¿?puedes |¿?podrías )?(?:traduc\w+|corrig\w+|corregir|mejora\w*|reescrib\w+|reformula\w*)\s+(?:(?:este|esta|esto|mi|mis|el siguiente|la siguiente|al|la ortografía|la gramática)\b)"
    r"|(?:пожалуйста,? )?(?:переведи\w*|исправь\w*|перепиши\w*|отредактируй\w*|улучши\w*)\s+(?:(?:мне )?(?:этот|эту|это|мой|моё|мою|следующ\w+|ошибки|на)\b)"
    r"|(?:次の|以下の|この)(?:文章|文|メール|テキスト|段落)を.{0,20}(?:訳|直し|修正|添削|校正|書き換え|言い換え)"
    r")"
)
# The text stands elsewhere, or more is asked than to rework it.
OWN_TEXT_NOT = (
    r"\b(?:above|attached|attachment|page|chapter|section|clause|manual|contract|context|source|sources|chunk|second|third|oben|ci-dessus|arriba|выше)\b|上文|上面|資料"
    r"|\b(?:and|then|und|et|y)\b.{0,20}\b(?:tell|explain|summari[sz]e|answer|list|say|erklär\w*|explique\w*|explica\w*)\b|\b(?:if i am wrong|me if)\b"
)

# Instructions with one of these make an answer for a user.
ANSWERS_USER = (
    r"(?:(?<!not )(?<!n't )(?<!never )(?<!without )(?<!easier to )(?<!than )\banswer (?:(?:the|their|his|its|all|any|every|each|general|short|user's|users'|customer's|following|my|simple) ){0,3}"
    r"(?:(?:user|customer)'?s? )?(?:questions?|quer(?:y|ies)|users?|customers?|request|readers?|it\b|them\b|him\b|from\b|based|using|kindly|in plain)"
    r"|\byou (?:help|assist|support|advise|write answers|answer)\b|\b(?:help|assist|advise|guide|support|teach|tell) (?:the )?(?:users?|customers?|readers?|patients?|visitors?|people|guests|tenants|staff|employees|travell?ers?|buyers|citizens|students|members)\b"
    r"|(?<!no )(?<!without )(?<!any )(?<!not )(?<!don't )(?<!never )\bexplain(?:s|ing)?\b(?! who| the plot)|\bgreet\b|\bfinal answer to\b|\banswer to the (?:user|question|input)\b|\bquestion[- ]answering\b|\bsupport agent\b|\btutor\b|\bfor the customer\b"
    r"|(?<!nicht )(?<!keine )\bbeantworte(?:n|st)?\b(?! sie nicht| nicht)|\bhilf(?:st)?\b.{0,20}(?:kunden|nutzer|mitarbeiter)|(?<!pas )(?<!jamais )\brépon\w+ (?:à la|aux|à sa|à ses|à toutes)\b|\bayudas?\b.{0,12}(?:clientes|usuarios)|(?<!no )\brespond\w+ (?:a las|a la|a sus|la|las) preguntas?"
    r"|\bотвечай\w* на вопрос|回答(?:用户|客户|顾客|读者)的?(?:问题|提问)|根据.{0,12}(?:回答|作答)(?!后)|資料をもとに(?:答え|回答)|質問に(?:答えて|お答え|回答して)(?!は|はいけ)|客服|案内係)"
)
