"""The words with which a prompt announces evidence that follows or stands somewhere in it: "Use the following documents:"."""

from __future__ import annotations

import re

from truthlens.evidence.language.evidence_words import (
    GIVEN,
    NOUNS,
    NOUNS_CJK,
    POINTERS,
    POINTERS_CJK,
    SOURCES,
    any_of,
)
from truthlens.evidence.language.label_words import Part, is_unspaced, part_of_label, points_at_evidence

_EVIDENCE_NOUN = re.compile(rf"\b{any_of(NOUNS)}\b|{'|'.join(NOUNS_CJK.split())}", re.IGNORECASE)
_POINTS = re.compile(rf"\b{any_of(POINTERS)}\b|{POINTERS_CJK}", re.IGNORECASE)
# "the following pieces of context", "the documents below", "based on the context".
_SPEAKS_OF = re.compile(
    rf"\b{any_of(GIVEN)}\W+(?:\w+\W+){{0,4}}?{any_of(SOURCES)}\b"
    rf"|\b{any_of(SOURCES)}\b\W+(?:\w+\W+){{0,3}}?(?:{any_of(GIVEN)}|follows?|unten|ci-dessous|a continuación|ниже|abaixo)\b"
    rf"|\b(?:based|only|solely|using|from|anhand|aus|à partir|a partir|на основе)\W+(?:\w+\W+){{0,3}}?{any_of(SOURCES)}\b"
    r"|(?:以下|下面|下列|上述|给定|提供|根据|基于).{0,10}(?:上下文|资料|資料|文档|内容|信息|知识|材料|参考)"
    r"|(?:以下|次|上記|与えられた).{0,8}(?:情報|文書|資料|文脈|コンテキスト|テキスト)",
    re.IGNORECASE,
)
# So few words before a colon are a label, and no sentence.
_LABEL_WORDS = 6
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
    if colon and len(sentence.split()) <= _LABEL_WORDS:
        return _names_evidence(sentence)
    return _POINTS.search(sentence if colon else line) is not None


def _names_evidence(phrase: str) -> bool:
    """Return whether a few words before a colon say that evidence follows: not "Text of the draft", nor "Draft text below"."""
    plain = phrase.rstrip(":：")
    if is_unspaced(plain):
        return _POINTS.search(plain) is not None or part_of_label(plain) is Part.EVIDENCE
    return part_of_label(plain) is Part.EVIDENCE or points_at_evidence(plain)


def speaks_of_evidence(text: str) -> bool:
    """Return whether talk to the model speaks of evidence that the prompt holds: "use the following context"."""
    return _SPEAKS_OF.search(text) is not None


def is_rewording(text: str) -> bool:
    """Return whether an order asks for a text in other words or another language: the text is worked on, and no evidence."""
    return _REWORDING.search(text) is not None
