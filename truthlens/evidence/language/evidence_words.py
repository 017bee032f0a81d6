"""The words for evidence and those that point at it, by language: what announcements and labels are read by."""

from __future__ import annotations

import re

# Words for evidence, by language; patterns of words stand for their forms, "_" for the space in one of two words.
NOUNS = {
    "en": (
        r"contexts? documents? docs passages? sources? references? information knowledge articles? excerpts? snippets? chunks? facts texts? "
        r"transcripts? materials? news data results? memor(?:y|ies) records? notes reports? e-?mails? paragraphs? pieces sections? pages? files? "
        r"content conversation thread"
    ),
    "de": r"kontext dokumente?n? quellen? textauszüge?n? auszüge?n? informationen unterlagen texte?n? suchergebnisse?n?",
    "fr": r"contexte extraits? informations textes? sources résultats",
    "es": r"contexto documentos? fuentes? fragmentos? información textos? resultados?",
    "ru": r"контекст\w{0,3} документ\w{0,3} источник\w{0,3} фрагмент\w{0,3} информаци\w{0,3} текст\w{0,3} сведени\w{0,3} материал\w{0,3}",
    "it, pt": r"contesto documenti fonti informazioni testo estratti informações trechos texto",
}
NOUNS_CJK = "资料 資料 文档 文檔 文章 内容 內容 段落 信息 資訊 材料 上下文 文本 新闻 背景 知识 文件 検索結果 情報 文書 文脈 コンテキスト 記事 本文 マニュアル 参考"
# Words that point at a text.
POINTERS = {
    "en": (
        r"following below above here_(?:is|are) these provided given retrieved supplied using use based_on from only relevant attached surrounded"
    ),
    "de": r"folgende\w* unten\w* oben\w* bereitgestellt\w* gegeben\w* anhand hier nutze\w*",
    "fr": r"suivant\w* ci-dessous ci-dessus fourni\w* voici",
    "es": r"siguient\w* a_continuación proporcionad\w*",
    "ru": r"следующ\w* ниже выше приведённ\w* приведенн\w* предоставленн\w* вот",
    "it, pt": r"seguent\w* qui_sotto seguinte\w* abaixo",
}
POINTERS_CJK = r"[以如]下|下[面列]|上述|给定|提供|根据|基于|次の|上記|与えられた|もとに|基づ"
# Of both, those that talk about evidence in a sentence that has no colon.
SOURCES = {
    "en": (
        r"contexts? documents? docs passages? sources? excerpts? snippets? chunks? search_results? knowledge(?:_base)? articles? information "
        r"references? materials? texts? data facts records"
    ),
    "de": r"kontext\w* dokumente?n? quellen? textauszüge?n? auszüge?n? informationen unterlagen suchergebnisse?n?",
    "fr": r"contexte extraits? informations sources base_de_connaissances",
    "es": r"contexto documentos? fuentes? fragmentos? información base_de_conocimientos?",
    "ru": r"контекст\w{0,3} документ\w{0,3} источник\w{0,3} фрагмент\w{0,3} информаци\w{0,3}",
    "it, pt": r"contesto documenti fonti informazioni informações trechos base_de_conhecimento",
}
GIVEN = {
    "en": r"following below provided given retrieved supplied attached these this above",
    "de": r"folgende\w* untenstehende\w* bereitgestellte\w* gegebene\w*",
    "fr": r"suivant\w* fourni\w*",
    "es": r"siguiente\w* proporcionad\w*",
    "ru": r"следующ\w* приведённ\w* приведенн\w* предоставленн\w*",
    "it, pt": r"seguent\w* fornit\w* seguinte\w*",
}


def any_of(words: dict[str, str]) -> str:
    """Return a pattern for any of the words of a table by language."""
    return (
        "(?:" + "|".join(word.replace("_", " ") for listed in words.values() for word in listed.split()) + ")"
    )


_WORDS = re.compile(
    rf"\b(?:{any_of(SOURCES)}|{any_of(NOUNS)}|{any_of(GIVEN)}|{any_of(POINTERS)})\b", re.IGNORECASE
)

_NOUN = re.compile(rf"\b{any_of(NOUNS)}\b", re.IGNORECASE)
# Of a few words, "from", "only" and "relevant" point at nothing.
_GIVES = re.compile(rf"\b(?!(?:from|only|relevant)\b){any_of(POINTERS)}\b", re.IGNORECASE)


def with_joined_words(text: str) -> str:
    """Return a text with an underscore in each word for evidence that is written as two: ``knowledge_base``."""
    return _WORDS.sub(lambda found: found[0].replace(" ", "_"), text)


def is_evidence_word(word: str) -> bool:
    """Return whether a word of ``with_joined_words`` is one for evidence, or points at it."""
    return _WORDS.fullmatch(word.replace("_", " ")) is not None


def points(word: str) -> bool:
    """Return whether a word of ``with_joined_words`` points at evidence: "following"."""
    return _GIVES.fullmatch(word.replace("_", " ")) is not None


def points_at_noun(words: str) -> bool:
    """Return whether among a few words one is for evidence and one points at it: "the following documents"."""
    return _NOUN.search(words) is not None and _GIVES.search(words) is not None
