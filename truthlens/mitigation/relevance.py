"""Check by words whether a text says something, and whether it is about what was asked.

Both decide only clear cases: a text of phrases that claim nothing in any conversation ("Done."), and a text
that has no word in common with the question, the answer and the evidence. Whether a claim is right is for the
verdict to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from truthlens.text.claims.non_claims import acknowledges, is_abstention, is_claimless
from truthlens.text.function_words import COMMON_WORDS
from truthlens.text.scripts import CJK, HAN
from truthlens.text.sentences import sentences
from truthlens.text.word_forms import form

_READ_CHARS = 4000
_MOST_EMPTY_CHARS = 600
_MARKS = " \t\r\n.,;!?…。，；！？、~～-–—*_#>`'\"“”‘’「」()（）[]:："
_WORDS = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_HAN = re.compile(f"[{HAN}]")
_UNSPACED = re.compile(f"[{CJK}]+")
_PREFIX_LETTERS = 4
_FUNCTION_HAN = frozenset(
    "的是了在有和不我你您他她它们这那一也就都与及为以于而或之其此被把从到对中上下个没无"
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
    """Return whether no sentence of ``text`` answers anything: it acknowledges, reports its own work, asks or is polite.

    "Yes" and the like answer nothing where the question cannot be answered so. An abstention says something: that the
    evidence does not tell.
    """
    if len(text) > _MOST_EMPTY_CHARS:
        return not _WORDS.search(text)
    if is_abstention(text):
        return False
    return all(_is_empty(text[start:end], query) for start, end in sentences(text))


def is_off_topic(text: str, about: Sequence[str]) -> bool:
    """Return whether ``text`` has words of content, none of which stands in ``about`` in some form.

    A text whose subject is a pronoun, a number alone, and an abstention that names nothing are never off
    topic.

    Args:
        text: a candidate.
        about: the question, the first answer and the evidence.
    """
    sample = text[:_READ_CHARS].casefold().replace("’", "'")
    # Whatever it names: that is what is compared here.
    abstaining = is_abstention(text[:_READ_CHARS])
    if not abstaining and _REFERS.match(sample):
        return False
    words = _words(sample) - COMMON_WORDS - (_OF_ABSTENTIONS if abstaining else frozenset())
    han = _han(sample) - (_OF_ABSTENTIONS_ZH if abstaining else frozenset())
    if not han and all(_DIGIT.search(word) for word in words):
        return False
    forms = _forms(words)
    return all(
        forms.isdisjoint(_forms(_words(each.casefold()))) and han.isdisjoint(_han(each)) for each in about
    )


def _is_empty(sentence: str, query: str) -> bool:
    plain = sentence.replace("’", "'").strip(_MARKS)
    if not _WORDS.search(plain):
        return True
    if _POLAR.fullmatch(plain):
        return _is_open(query)
    if sentence.rstrip().endswith(("?", "？")):
        return True
    if plain.casefold() in query.casefold():
        return False
    return acknowledges(plain) or is_claimless(sentence)


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


def _forms(words: set[str]) -> set[str]:
    return {form(word, letters=_PREFIX_LETTERS) for word in words}
