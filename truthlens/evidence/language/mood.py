"""Tell how a paragraph of a prompt reads: as reference text, or as talk to the model about how to answer.

Each sentence is read by its words alone: orders about answering ("answer in one sentence", "cite the sources"), talk
to the model ("you are …"), talk about the assistant and its users, questions, and statements. Nine languages. The
sum over sentences is the *reference score* of a paragraph: above 0 it reads as reference text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from truthlens.core.cancellation import checkpoint
from truthlens.evidence.language.word_table import word_set
from truthlens.text.sentences import sentences

_SENTENCE_CHARS = 400
_MAX_SENTENCES = 40

# What only the talk about answering has: nouns and verbs of the exchange itself.
_META = word_set(
    "answer answers answering answered reply replies respond responds response responses question "
    "questions query queries context contexts document documents source sources passage passages cite "
    "cites citing citation citations information knowledge excerpt excerpts snippet snippets text texts "
    "article articles prompt prompts instruction instructions user users customer customers assistant "
    "chatbot bot ai model language languages markdown json format formatting concise concisely brief "
    "briefly sentence sentences paragraph paragraphs words bullet polite politely tone friendly character "
    "jargon emoji emojis hallucinate unsure conversation chat history tool tools facts detail helpful "
    "output input message messages request requests reference references antwort antworten antworte "
    "beantworte beantworten frage fragen kontext quelle quellen dokument dokumente dokumenten nutzer "
    "benutzer satz sätze sätzen sprache informationen auszüge auszügen textauszüge textauszügen réponds "
    "répondez répondre réponse réponses contexte utilisateur langue phrase phrases extrait extraits "
    "informations responde responda responder respuesta respuestas pregunta preguntas contexto fuente "
    "fuentes usuario idioma frase frases información ответь ответьте отвечай отвечайте ответ ответа "
    "ответы вопрос вопросы вопроса контекст контекста контексте источник источники языке rispondi "
    "risposta domanda contesto fonti utente resposta pergunta fontes usuário"
)
_META_STEMS = ("пользовател", "информаци", "документ")
_META_PHRASES = re.compile(r"make up|made up|don['’]t know|do not know|not sure|prior knowledge|step by step")
_WORD = re.compile(r"\w+")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_META_CJK = re.compile(
    r"回答|作答|答案|问题|問題|用户|用戶|上下文|资料|資料|知识库|知識庫|引用|语言|已知信息|中文|格式|简洁|編造|编造|不知道|无法|助手|对话|历史|提示|输出|文档|内容|ユーザー|"
    r"質問|答え|情報|文脈|コンテキスト|資料|出典|日本語|簡潔|アシスタント|わかりません|分かりません|推測"
)
# What stands before the first word of an item of a list. Without possessive quantifiers a row of dashes would cost exponential time.
_BULLET = r"[-*•#>+]++\s*+|\(?\d{1,2}[.)]\s*+"
# All patterns below but those of names and numbers are for sentences in lower case.
# Verbs with which prompts order; in text that is no prompt they order the reader (a recipe, a manual).
_ORDER = re.compile(
    rf"^(?:{_BULLET}|[a-z][.)]\s*+)*+"
    r"(?:please\s+|kindly\s+|always\s+|never\s+|only\s+|just\s+|strictly\s+|also\s+|then\s+|first,?\s+|instead,?\s+|bitte\s+|por favor,?\s+|пожалуйста,?\s+|"
    r"immer\s+|nur\s+|toujours\s+|siempre\s+|всегда\s+)*"
    r"(?:act|add|adhere|adopt|always|analy[sz]e|answer|apologi[sz]e|ask|assist|assume|attribute|avoid|base|be|begin|behave|carefully|check|choose|cite|combine|communicate|"
    r"compare|consider|correct|create|decline|determine|do|don't|don’t|emit|end|ensure|escalate|examine|explain|extract|find|focus|follow|format|generate|give|greet|"
    r"guide|handle|help|ignore|include|incorporate|indicate|infer|keep|let|limit|list|maintain|make|match|mention|mirror|must|never|no|not|note|offer|only|output|place|"
    r"look|go|have|reply|keep|mark|put|name|report|hand|apply|close|conclude|finish|sign|work|build|call|clarify|come|consult|convert|copy|deliver|describe|elaborate|express|fill|get|identify|inform|invent|invite|know|leave|lean|mind|move|open|pay|pick|point|prepare|present|repeat|restate|reveal|scan|search|see|send|set|share|skip|solve|stop|talk|turn|wait|avoid|concentrate|confine|restrict|stick|ground|pretend|prefer|prioriti[sz]e|produce|provide|quote|read|reason|refer|refrain|refuse|remain|rely|remember|rephrase|reply|respect|respond|return|review|rewrite|say|select|"
    r"show|speak|start|state|stay|stick|strictly|structure|suggest|summari[sz]e|synthesi[sz]e|take|talk|tell|think|track|translate|treat|try|understand|use|using|utili[sz]e|"
    r"verify|when|whenever|work|write|given|based|"
    r"antworte\w*|beantworte\w*|nutze\w*|verwende\w*|benutze\w*|gib|geben|sei|bleib\w*|schreib\w*|nenne\w*|erfinde\w*|halte\w*|stütze\w*|formuliere\w*|vermeide\w*|zitiere\w*|"
    r"réponds|répondez|utilise\w*|donne\w*|cite\w*|n'invente\w*|n’invente\w*|ne|reste\w*|sois|soyez|évite\w*|indique\w*|rédige\w*|appuie\w*|"
    r"responde|responda|utiliza|utilice|usa|use|cita|cite|no|sé|sea|evita|evite|indica|indique|mantén|mantenga|da|dé|"
    r"ответь\w*|отвечай\w*|используй\w*|не|будь\w*|пиши\w*|укажи\w*|цитируй\w*|придерживай\w*|избегай\w*|"
    r"rispondi|usa|utilizza|cita|non|sii|evita|não|cite|seja|evite)\b",
)
_ORDER_CJK = re.compile(
    r"^(?:[-*•#>+]++\s*+|\d{1,2}[.、)]\s*+|[（(]?[一二三四五六七八九十][、)）]\s*+)*+(?:请|請|不要|不得|不能|不可|禁止|切勿|务必|務必|必须|必須|始终|始終|总是|總是|只能|只需|仅|"
    r"只|使用|保持|避免|确保|確保|作为|作為|如果|若|当|當|根据|根據|基于|基於|依据|结合|参考|回答|以.{1,10}(?:语气|風格|风格|格式)|あなたは|必ず|決して)"
    r"|(?:してください|しないでください|ください|すること|しないこと|なさい|せよ)。?$"
)
# "If it is not enough, reply with …".
_LATE_ORDER = re.compile(
    r",\s{0,2}(?:please |just |simply |then |do not |don't |never )?(?:give|write|reply|answer|say|respond|return|state|cite|output|provide)\b",
)
_TO_MODEL = re.compile(
    r"\b(?:you(?:['’]re| are| will be| act| must act)\b.{0,80}\b(?:assistant|chatbot|bot|ai|expert|agent|model|system|helper|tutor|analyst|advisor|specialist|writer|"
    r"engineer|coach|teacher|guide|librarian|researcher|representative|concierge|editor|developer|translator|professional|consultant|support)\b"
    r"|(?:your|the) (?:answers?|responses?|repl(?:y|ies)|output|role|task|job|final answer)\b"
    r"|du bist\b|sie sind (?:ein|eine|der|die)\b|deine (?:aufgabe|antwort)|ihre (?:aufgabe|antwort)"
    r"|tu es\b|vous êtes\b|ta (?:tâche|réponse)|votre (?:tâche|réponse)|eres (?:un|una|el|la)\b|tu (?:tarea|respuesta)|usted es (?:un|una)\b"
    r"|(?:ты|вы)\b.{0,20}(?:помощник|ассистент|эксперт)|sei un\b|você é\b)"
    r"|^(?:[-*•#>]+\s*)?(?:you are|you're|i want you|your (?:task|job|role|goal|name|purpose|response|responses|answer|answers|output|reply|replies)|act as|as an ai|"
    r"picture yourself|imagine (?:that )?you|you play|stell dir vor|imaginez|imagina)"
    r"|^(?:你是|您是|你将|你需要|你的|妳是)|你的(?:回答|任务|职责|角色)|あなたは.{0,30}(?:です|である)",
    re.MULTILINE,
)
_YOU = re.compile(r"\byou(?:r|rs|rself)?\b|\byou['’]")
_ADDRESSES = re.compile(
    r"^(?:[-*•・#>]++\s*+|\d{1,2}[.)]\s*+)*+(?:you|your|you're|du|dein\w*|sie (?:sind|werden|sollen|antworten)|tu|vous|votre|tú|eres|hablas|usted|trabajas|atiendes|ты|вы|tu sei|você|你|您|妳|あなた)\b",
)
_CONDITION = re.compile(
    r"^(?:[-*•#>+]++\s*+|\d{1,2}[.)]\s*+)*+(?:if|when|whenever|unless|in case|should|where|for|before|after|wenn|falls|sollte|si|если|когда|se|quando|もし)\b",
)
_FIRST = re.compile(
    r"\b(?:I|I'm|I’m|I've|I’ve|my|me|we're|ich|mein\w*|je|j'ai|mon|ma|yo|mi|я|мой|моя)\b|^我|我的|私は|私の",
    re.MULTILINE,
)
_ASK_END = ("?", "？", '?"', "？”", "?)", "?*", "吗", "呢", "か。")
_ASK_START = re.compile(
    r"^(?:what|who|whom|whose|when|where|why|which|how|is|are|was|were|do|does|did|can|could|should|would|will|has|have|may|and|"
    r"tell|say|explain|summari[sz]e|describe|list|give|compare|write|find|name|identify|calculate|state|show|translate|please|help|draft|outline|"
    r"wann|wer|was|wo|warum|wie|welche\w*|wieviel|kann|ist|sind|erkläre|nenne|fasse|quand|qui|que|quel\w*|où|pourquoi|comment|combien|est-ce|explique|résume|"
    r"cuándo|quién|qué|dónde|cuánto\w*|cómo|cuál\w*|por qué|explica|resume|когда|кто|что|где|почему|как|сколько|какой|какая|какие|объясни|"
    r"quando|chi|cosa|dove|perché|come|quanto|quem|qual|onde|como|por que)\b"
    r"|^(?:请|請|总结|總結|概括|解释|說明|说明|列出|比较|为什么|如何|怎么|怎樣|谁|誰|哪|几|多少|什么|介绍|いつ|どこ|なぜ|どう|何|誰|いくら)",
)
_SPECIFIC = re.compile(r"\d|(?<=[a-z,;] )[A-ZÄÖÜ][a-zäöü]{2,}|[A-ZА-Я][a-zа-я]+ [A-ZА-Я][a-zа-я]+")
# Talk about the assistant, its users and what it may do: the words of persona files that address nobody.
_ABOUT_ASSISTANT = re.compile(
    r"^(?:[-*•#>]+\s*)?(?:the |this |our )?(?:assistant|chatbot|bot|ai|model|agent|users?|customers? (?:should|must|may)|responses?|answers?|repl(?:y|ies)|conversations?|output|tone|"
    r"style|persona|language|formatting|citations?|der assistent|l'assistant|el asistente|ассистент)\b|助手|用户|アシスタント|ユーザー",
)
# "The above is the knowledge base."
_CLOSES = re.compile(
    r"^(?:the |these |this |all )?(?:above|foregoing|preceding)\b.{0,30}\b(?:is|are|was|were)\b.{0,40}\b(?:contexts?|knowledge|information|documents?|data|sources?|passages?|excerpts?|content|results?|references?|"
    r"material|texts?|snippets?|articles?)\b.{0,40}$|^(?:end of|here ends?)\b.{0,60}$|"
    r"^(?:以上|上述|上面)(?:是|为|就是|内容是|は).{0,40}$|^(?:das|dies) (?:war|waren)\b.{0,60}$|^(?:oben|ci-dessus|arriba|выше)\b.{0,60}$",
)
# A field that is named and not filled in: "{context}", "${question}".
_PLACEHOLDER = re.compile(
    r"\$?\{{1,2}\s*[\w .]{1,40}\s*\}{1,2}|<[\w ]{1,40}>|\[(?:insert|your)\b[^\]]{0,60}\]|\.{3}", re.IGNORECASE
)
_CJK = re.compile(r"[぀-ヿ㐀-鿿]")


@dataclass(frozen=True, slots=True)
class Mood:
    """How a paragraph reads: sentences by kind.

    ``guides`` order something about answering or talk to or about the assistant, ``orders`` order something else,
    ``asks`` ask, ``states`` say something; ``specifics`` are the statements with a number or a name in them, ``first``
    those of somebody about himself, ``addresses`` those that begin by addressing the reader.
    """

    guides: int = 0
    orders: int = 0
    asks: int = 0
    states: int = 0
    specifics: int = 0
    first: int = 0
    addresses: int = 0

    def __add__(self, other: Mood) -> Mood:
        return Mood(
            self.guides + other.guides,
            self.orders + other.orders,
            self.asks + other.asks,
            self.states + other.states,
            self.specifics + other.specifics,
            self.first + other.first,
            self.addresses + other.addresses,
        )

    @property
    def total(self) -> int:
        """Sentences in all."""
        return self.guides + self.orders + self.asks + self.states

    @property
    def is_talk(self) -> bool:
        """Whether more than half of the sentences talk to the model."""
        return self.guides * 2 > self.total

    @property
    def is_half_talk(self) -> bool:
        """Whether half of the sentences or more talk to the model."""
        return self.guides * 2 >= max(1, self.total)

    @property
    def reference_score(self) -> float:
        """Above 0 for reference text, below for talk to the model; bounded, so that no paragraph outweighs five."""
        states = self.states - 0.7 * self.first + 0.4 * self.specifics
        return max(-4.0, min(4.0, states - 1.7 * self.guides - 0.3 * self.asks - 0.1 * self.orders))


def mood(text: str) -> Mood:
    """Return how ``text`` reads, by its first 40 sentences; lines are sentences of their own."""
    counts = dict.fromkeys(("guides", "orders", "asks", "states", "specifics", "first", "addresses"), 0)
    seen = 0
    for start, end in _pieces(text):
        checkpoint()
        piece = text[start : min(end, start + _SENTENCE_CHARS)].strip()
        if not _LETTER_OR_DIGIT.search(piece):
            continue
        kind = sentence_kind(piece)
        counts[kind] += 1
        if kind == "states":
            counts["specifics"] += _SPECIFIC.search(piece) is not None
            counts["first"] += _FIRST.search(piece) is not None
            counts["addresses"] += _ADDRESSES.match(piece.lower()) is not None
        seen += 1
        if seen == _MAX_SENTENCES:
            break
    return Mood(**counts)


def sentence_kind(sentence: str) -> str:
    """Return ``guides``, ``orders``, ``asks`` or ``states`` for one sentence."""
    lowered = sentence.lower()
    if _ABOUT_ASSISTANT.match(lowered):
        return "guides"
    cjk = _CJK.search(sentence) is not None
    to_model = _TO_MODEL.search(lowered) is not None
    if to_model and not _SPECIFIC.search(sentence[20:]):
        return "guides"
    order = _is_order(sentence, lowered, cjk=cjk)
    told = to_model or order or _LATE_ORDER.search(lowered) is not None
    if sentence.rstrip("*_ ").endswith(_ASK_END):
        # What its words are about counts only in an order: to count these takes longest.
        return "guides" if told and _meta(sentence, lowered, cjk=cjk) else "asks"
    meta = _meta(sentence, lowered, cjk=cjk)
    if meta and (told or _is_about_answering(sentence, lowered, meta)):
        return "guides"
    if _CLOSES.match(lowered) or _PLACEHOLDER.fullmatch(sentence):
        return "guides"
    return "orders" if order else "states"


def _is_order(sentence: str, lowered: str, *, cjk: bool) -> bool:
    """Return whether a sentence begins as an order does; in Chinese and Japanese it may end as one."""
    return _ORDER.match(lowered) is not None or (cjk and _ORDER_CJK.search(sentence) is not None)


def _meta(sentence: str, lowered: str, *, cjk: bool) -> int:
    """Return how many words of a sentence are about answering."""
    words = _WORD.findall(lowered)
    known: int = sum(word in _META or word.startswith(_META_STEMS) for word in words)
    return known + len(_META_PHRASES.findall(lowered)) + (len(_META_CJK.findall(sentence)) if cjk else 0)


def _is_about_answering(sentence: str, lowered: str, meta: int) -> bool:
    """Return whether a sentence with ``meta`` words about answering is about it where it gives no order."""
    signs = (meta >= 2, _YOU.search(lowered) is not None, _CONDITION.match(lowered) is not None)
    return sum(signs) >= 2 or (meta >= 3 and len(sentence) <= 60 * meta)


def is_asking(text: str) -> bool:
    """Return whether a short text reads as what a user asks or orders."""
    plain = text.strip().strip("\"'“”«»*_ ")
    if not plain or len(plain) > 600:
        return False
    return plain.endswith(_ASK_END) or _ASK_START.match(plain.lower()) is not None


def _pieces(text: str) -> list[tuple[int, int]]:
    """Return the sentences of ``text``, each within one line, as far as they are looked at."""
    head = text[: _MAX_SENTENCES * _SENTENCE_CHARS]
    pieces: list[tuple[int, int]] = []
    at = 0
    for line in head.split("\n"):
        if line.strip():
            pieces += [(at + start, at + end) for start, end in sentences(line)] or [(at, at + len(line))]
        at += len(line) + 1
        if len(pieces) > 2 * _MAX_SENTENCES:
            break
    return pieces
