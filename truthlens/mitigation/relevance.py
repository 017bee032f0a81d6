"""Check by words whether a text says something, and whether it is about what was asked.

Both decide only clear cases: a text of phrases that claim nothing in any conversation ("Done."), and a text
that has no word in common with the question, the answer and the evidence. Whether a claim is right is for the
verdict to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from truthlens.text.claims.refusals import abstains
from truthlens.text.claims.telling import tells
from truthlens.text.same_language import COMMON_WORDS
from truthlens.text.sentences import sentences

_READ_CHARS = 4000
_MOST_EMPTY_CHARS = 600
_MARKS = " \t\r\n.,;!?…。，；！？、~～-–—*_#>`'\"“”‘’「」()（）[]:："
_WORDS = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_HANGUL = re.compile(r"[\uac00-\ud7af]")
_PREFIX_LETTERS = 4
_PREFIX_HANGUL = 2
_FUNCTION_HAN = frozenset(
    "的是了在有和不我你您他她它们这那一也就都与及为以于而或之其此被把从到对中上下个没无"
)

_TEXT = (
    r"(?:answer|text|response|reply|version|evidence|context|documents?|passages?|sources?|claims?|statements?|figures?"
    r"|numbers?|facts?|errors?|mistakes?|corrections?|changes?|spans?|information|everything)"
)
_DID = (
    r"(?:checked|double-checked|corrected|reviewed|verified|fixed|updated|revised|removed|rewritten|changed|edited"
    r"|amended|adjusted|addressed|done|completed|finished|confirmed|compared|read|understood|made|mended|processed)"
)
_WHICH = (
    rf"(?:it|this|that|them|everything|(?:(?:the|my|your|this|these|those|all|any|of|flagged|marked|given|provided"
    rf"|corrected|required|requested|necessary)\s+){{0,4}}{_TEXT})"
)
_HOW = r"(?:\s+(?:against|with|for|in|from|as|according to|using|based on|accordingly|now|again|already|carefully)\b[^,;:]{0,60})?"
_SAYS_NOTHING = re.compile(
    r"(?:(?:well|so|and|yes|ok|okay|sure),?\s+)?(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|alright|all right|right|done|all done|fine"
    r"|great|good|perfect|noted|understood|got it|will do|no problem|you'?re welcome|thank you|thanks|hello|hi|here you go"
    r"|here it is|here is (?:it|the answer)|sorry|my apologies|i apologi[sz]e|i see|i understand|i agree|agreed|fixed|corrected|updated"
    r"|checked|verified|confirmed|finished|completed?|answer|response|n/?a|tbd|todo|lorem ipsum|ready|as requested|see above"
    r"|erledigt|fertig|in ordnung|gut|danke|verstanden|alles klar|natürlich|klar|fait|c'est fait|d'accord|voilà|bien sûr|compris|merci"
    r"|hecho|listo|de acuerdo|claro|entendido|gracias|vale|fatto|va bene|certo|capito|grazie|feito|pronto|gedaan|klaar|begrepen)"
    rf"|(?:i|we)(?:'ve|'ll| have| had| will| am|'m)?(?:\s+(?:now|just|already|carefully|also|both))*\s+{_DID}(?:\s+and\s+{_DID})?\s+{_WHICH}{_HOW}"
    rf"|(?:i|we)(?:'m|'ve| am| have| are)\s+(?:all\s+)?(?:done|finished|ready)"
    rf"|(?:{_WHICH}|all)\s+(?:has|have|is|was|were|are|looks?|seems?)(?:\s+(?:been|now|all|already|to be))*\s+(?:{_DID}|correct|fine|good|ok|okay"
    rf"|complete|accurate|in order|supported|right){_HOW}"
    rf"|(?:there (?:is|are|were) )?(?:no|nothing)\s+(?:more\s+|further\s+)?(?:{_TEXT}|to\s+(?:correct|change|add|fix|say|mend|report))"
    r"(?:\s+(?:is|are|was|were))?(?:\s+(?:needed|necessary|required|made|found|to be made))?"
    r"|ich habe (?:es|alles|das|die antwort|den text) (?:über|nach)?ge?(?:prüft|schaut|lesen|ändert)|ich habe (?:es|alles|das|die antwort) korrigiert"
    r"|j'ai (?:tout )?(?:vérifié|corrigé)[^,;:]{0,30}|(?:lo )?he (?:verificado|corregido|revisado)[^,;:]{0,30}"
    r"|(?:好的?|好了|当然(?:可以)?|没问题|明白了?|收到|了解了?|知道了|完成了?|谢谢|不客气|你好|您好|抱歉|对不起|如上|略|答案?|回答|无误|以上)"
    r"|(?:我|我们)?(?:已经?|均已|都已)?(?:对?(?:这个?|该|上述|以上|全部|所有|您的|你的|原)?(?:回答|答案|内容|错误|文本|资料|证据|文档)?(?:进行了?)?)?(?:已经?|均已|都已)?"
    r"(?:检查|核对|核实|修改|更正|修正|纠正|完成|确认|更新|处理|阅读)(?:过|了|完毕|完成|好)*(?:这个?|该|上述|以上|全部|所有|您的|你的|原)?"
    r"(?:回答|答案|内容|错误|文本|资料|证据|文档)?了?"
    r"|(?:没有|无需|不需要)(?:任何)?(?:修改|更正|问题|错误)(?:之处|的地方|的内容)?",
    re.IGNORECASE,
)
_POLAR = re.compile(
    r"yes|no|true|false|correct|incorrect|ja|nein|oui|non|sí|si|sì|sim|não|nee"
    r"|是的?|不是的?|对的?|不对|否|可以|不可以|能|不能|会|不会|有|没有|需要|不需要|要|不要",
    re.IGNORECASE,
)
_OPEN_QUESTION = re.compile(
    r"(?:^|[.?!,;:\n]\s*)(?:and |but |so )?(?:(?:in|at|on|by|for|of|from|to|with) )?(?:what|how|which|who|whom|whose|when|where|why|wie|wer"
    r"|wann|wo|warum|welche\w*|combien|comment|quand|où|pourquoi|quel\w*|cuánto\w*|cómo|cuándo|dónde|quién\w*|quanto|come"
    r"|quando|dove|chi|hoe|wanneer|waar|waarom|wie)\b",
    re.IGNORECASE,
)
_OPEN_QUESTION_ZH = re.compile(r"什么|多少|多久|多大|多高|多长|怎么|怎样|如何|谁|哪|为何|几")
_POLAR_QUESTION_ZH = re.compile(r"吗|是否|有没有|是不是|能不能|可不可以|会不会|要不要|需不需要")
# Its subject was named before, or it answers yes or no: it speaks of what was asked.
_REFERS = re.compile(
    r"\W*(?:yes|no|none|nothing|nobody|never|it|it's|its|they|their|this|that|that's|these|those|there|he|she|his|her|both|neither|either"
    r"|ja|nein|es|er|sie|das|dies\w*|sein\w*|ihr\w*|kein\w*|oui|non|il|elle|ils|elles|c'est|ce|cela|ça|sí|no|ninguno|son|está|sì|nessuno|è"
    r"|sono|sim|não|é|são|nee|het|ze|hij|dit|dat|geen)\b"
    r"|\W*(?:它|他|她|这|那|其|该|此|是|不|没|否|对|可以|能|会|有|无)",
    re.IGNORECASE,
)
# What an abstention says of itself, besides function words.
_ABSTENTION_WORDS = (
    "evidence context document documents passage passages source sources information text texts material materials "
    "reference references enough sufficient insufficient available provided given contain contains include includes "
    "state stated states mention mentioned mentions say says said specify specified specifies know known unknown "
    "cannot can't don't doesn't answer answered question determine determined confirm confirmed verify verified find "
    "found unable possible data record lack lacks based there no detail details any specific address describe i we "
    "that unfortunately sorry regarding concerning whether asked request requested dokument dokumente dokumenten "
    "don t doesn didn couldn isn aren can therefore however thus so further fully only clearly exactly current currently request research answers "
    "unterlagen quelle quellen angabe angaben information informationen nicht keine text kontext"
)
_OF_ABSTENTIONS = frozenset(_ABSTENTION_WORDS.split())
_OF_ABSTENTIONS_ZH = frozenset(
    "证据上下文资料档材料段落信息本说明提供给没有未不足够缺乏并无法能确定回答证实判断得知认核实尚清楚而知道相关根据所及到"
)


def says_nothing(text: str, query: str = "") -> bool:
    """Return whether no sentence of ``text`` claims anything: it acknowledges, reports its own work or asks.

    "Yes" and the like claim nothing where the question cannot be answered so. An abstention says something:
    that the evidence does not tell.
    """
    if len(text) > _MOST_EMPTY_CHARS:
        return not _WORDS.search(text)
    if abstains(text):
        return False
    return all(_is_empty(text[start:end], query) for start, end in sentences(text))


def is_off_topic(text: str, about: Sequence[str]) -> bool:
    """Return whether ``text`` has content words, none of which occurs in ``about`` in some form.

    A text whose subject is a pronoun, a number alone, and an abstention that names nothing are never off
    topic.

    Args:
        text: a candidate.
        about: the question, the first answer and the evidence.
    """
    sample = text[:_READ_CHARS].casefold().replace("’", "'")
    abstaining = abstains(text)
    if not abstaining and _REFERS.match(sample):
        return False
    words = _words(sample) - COMMON_WORDS - (_OF_ABSTENTIONS if abstaining else frozenset())
    han = _han(sample) - (_OF_ABSTENTIONS_ZH if abstaining else frozenset())
    if not han and all(_DIGIT.search(word) for word in words):
        return False
    forms = set(map(_form, words))
    return all(
        forms.isdisjoint(map(_form, _words(each.casefold()))) and han.isdisjoint(_han(each)) for each in about
    )


def _is_empty(sentence: str, query: str) -> bool:
    plain = sentence.replace("’", "'").strip(_MARKS)
    if not _WORDS.search(plain):
        return True
    if _POLAR.fullmatch(plain):
        return _is_open(query)
    if tells(plain):
        return False
    if sentence.rstrip().endswith(("?", "？")):
        return True
    return _SAYS_NOTHING.fullmatch(plain) is not None and plain.casefold() not in query.casefold()


def _is_open(query: str) -> bool:
    """Return whether the last question of ``query`` cannot be answered by yes or no."""
    asked = [query[start:end] for start, end in sentences(query[-_READ_CHARS:])]
    last = asked[-1] if asked else ""
    if _OPEN_QUESTION_ZH.search(last):
        return not _POLAR_QUESTION_ZH.search(last)
    return _OPEN_QUESTION.match(last) is not None


def _words(text: str) -> set[str]:
    return set(_WORDS.findall(_UNSPACED.sub(" ", text)))


def _han(text: str) -> set[str]:
    return set(_HAN.findall(text)) - _FUNCTION_HAN


def _form(word: str) -> str:
    """Return what a word and its other endings have in common; a number is returned unchanged."""
    if _DIGIT.search(word):
        return word
    if _HANGUL.match(word):
        return word[:_PREFIX_HANGUL]
    return (word[:-1] if len(word) > 3 and word.endswith("s") else word)[:_PREFIX_LETTERS]
