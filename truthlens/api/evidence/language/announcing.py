"""The words with which a prompt announces evidence that follows or stands somewhere in it: "Use the following documents:"."""

from __future__ import annotations

import re

# Words for evidence, by language; patterns of words stand for their forms, "_" for the space in one of two words.
_NOUNS = {
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
_NOUNS_CJK = "资料 資料 文档 文檔 文章 内容 內容 段落 信息 資訊 材料 上下文 文本 新闻 背景 知识 文件 検索結果 情報 文書 文脈 コンテキスト 記事 本文 マニュアル 参考"
# Words that point at a text.
_POINTERS = {
    "en": (
        r"following below above here_(?:is|are) these provided given retrieved supplied using use based_on from only relevant attached surrounded"
    ),
    "de": r"folgende\w* unten\w* oben\w* bereitgestellt\w* gegeben\w* anhand hier nutze\w*",
    "fr": r"suivant\w* ci-dessous ci-dessus fourni\w* voici",
    "es": r"siguient\w* a_continuación proporcionad\w*",
    "ru": r"следующ\w* ниже выше приведённ\w* приведенн\w* предоставленн\w* вот",
    "it, pt": r"seguent\w* qui_sotto seguinte\w* abaixo",
}
_POINTERS_CJK = r"[以如]下|下[面列]|上述|给定|提供|根据|基于|次の|以下|上記|与えられた|もとに|基づ"
# Of both, those that talk about evidence in a sentence that has no colon.
_SOURCES = {
    "en": (
        r"contexts? documents? docs passages? sources? excerpts? snippets? chunks? search_results? knowledge(?:_base)? articles? information "
        r"references? materials? texts? data facts records"
    ),
    "de": r"kontext\w* dokumente?n? quellen? textauszüge?n? auszüge?n? informationen unterlagen suchergebnisse?n?",
    "fr": r"contexte extraits? informations sources",
    "es": r"contexto documentos? fuentes? fragmentos? información",
    "ru": r"контекст\w{0,3} документ\w{0,3} источник\w{0,3} фрагмент\w{0,3} информаци\w{0,3}",
    "it, pt": r"contesto documenti fonti informazioni informações trechos",
}
_GIVEN = {
    "en": r"following below provided given retrieved supplied attached these this above",
    "de": r"folgende\w* untenstehende\w* bereitgestellte\w* gegebene\w*",
    "fr": r"suivant\w* fourni\w*",
    "es": r"siguiente\w* proporcionad\w*",
    "ru": r"следующ\w* приведённ\w* приведенн\w* предоставленн\w*",
    "it, pt": r"seguent\w* fornit\w* seguinte\w*",
}


def _any(words: dict[str, str]) -> str:
    """Return a pattern for any of the words of a table by language."""
    return (
        "(?:" + "|".join(word.replace("_", " ") for listed in words.values() for word in listed.split()) + ")"
    )


_EVIDENCE_NOUN = re.compile(rf"\b{_any(_NOUNS)}\b|{'|'.join(_NOUNS_CJK.split())}", re.IGNORECASE)
_POINTS = re.compile(rf"\b{_any(_POINTERS)}\b|{_POINTERS_CJK}", re.IGNORECASE)
# "the following pieces of context", "the documents below", "based on the context".
_SPEAKS_OF = re.compile(
    rf"\b{_any(_GIVEN)}\W+(?:\w+\W+){{0,4}}?{_any(_SOURCES)}\b"
    rf"|\b{_any(_SOURCES)}\b\W+(?:\w+\W+){{0,3}}?(?:{_any(_GIVEN)}|follows?|unten|ci-dessous|a continuación|ниже|abaixo)\b"
    rf"|\b(?:based|only|solely|using|from|anhand|aus|à partir|a partir|на основе)\W+(?:\w+\W+){{0,3}}?{_any(_SOURCES)}\b"
    r"|(?:以下|下面|下列|上述|给定|提供|根据|基于).{0,10}(?:上下文|资料|資料|文档|内容|信息|知识|材料|参考)"
    r"|(?:以下|次|上記|与えられた).{0,8}(?:情報|文書|資料|文脈|コンテキスト|テキスト)",
    re.IGNORECASE,
)
_REWORDING = re.compile(
    r"\btranslat|翻译|翻譯|译成|譯成|übersetz|tradui|traduc|перевед|翻訳|\bproofread|\brewrite|\brephrase",
    re.IGNORECASE,
)


def announces_text(line: str, *, opens: bool = False) -> bool:
    """Return whether a line announces evidence on the lines after it: "Use the following documents:".

    Args:
        line: Any line; of a long one the last sentence counts.
        opens: Whether marks stand around what follows, so that the line need not end in a colon.
    """
    line = line[-500:].rstrip("*_ \t")
    colon = line.endswith((":", "："))
    if not (colon or opens):
        return False
    sentence = re.split(r"(?<=[.!?。！？])\s+", line)[-1] if len(line) > 200 else line
    if not _EVIDENCE_NOUN.search(sentence) or is_rewording(sentence):
        return False
    if colon:
        return _POINTS.search(sentence) is not None or len(sentence) <= 60
    return _POINTS.search(line) is not None


def speaks_of_evidence(text: str) -> bool:
    """Return whether talk to the model speaks of evidence that the prompt holds: "use the following context"."""
    return _SPEAKS_OF.search(text) is not None


def is_rewording(text: str) -> bool:
    """Return whether an order asks for a text in other words or another language: the text is worked on, and no evidence."""
    return _REWORDING.search(text) is not None
