"""Tell the sentences of an answer that claim nothing: whole phrases of a closed list, and nothing else.

A classifier trained on claims takes thanks, offers and declines for inventions. What is left out of its score is known
from what it is: every piece of such a sentence between two commas is a phrase of ``non_claim_phrases``. Words of the
question are content, so is a heading, and so is "of course".
"""

from __future__ import annotations

import re

from truthlens.text.claims import non_claim_phrases as phrases
from truthlens.text.sentences import sentences

_LONGEST = 300
_EDGES = " \t\r\n\"'*_#>.,!?。，！？…-–—•"
_JOINT = re.compile(r"\s*[,;:!，；：！]\s*|\s+[-–—]\s+")
_CONJUNCTION = re.compile(
    r"(?:and|but|so|however|therefore|thus|still)(?:\s+|$)|但是?|不过|因此", re.IGNORECASE
)
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
# How a text begins that refuses to answer; it speaks of the model, where a decline speaks of the evidence as well.
_REFUSES = re.compile(
    r"\W*(?:(?:(?:i'?m|i am)\s+(?:very\s+|really\s+|so\s+)?sorry\b[^.!?\n]{0,60}|sorry\b[^.!?\n]{0,20}|i apologi[sz]e\b[^.!?\n]{0,60}"
    r"|unfortunately,?\s*|as an? (?:ai|artificial)\b[^.!?\n]{0,60})?[,.;:!—-]?\s*(?:but\s+|and\s+|however,?\s+)?\bi(?:'?m| am)?\s*"
    r"(?:can(?:no|')?t|can not|could not|couldn'?t|will not|won'?t|(?:not|un)\s?able to|must decline|have to decline|decline)"
    r"(?:\s+to)?\s+(?:\w+\s+){0,2}?(?:help|assist|answer|provide|comply|fulfil+|do|discuss|respond|continue|complete|create"
    r"|generate|rewrite|correct)\b"
    r"|(?:非常|很|十分)?(?:抱歉|对不起|不好意思)[，,。]?\s*(?:但)?(?:作为[^，。]{0,20}[，,])?我?(?:无法|不能|没有办法|不便)"
    r"|(?:作为(?:一个|一名|一款)?(?:AI|人工智能|语言模型|大模型)[^。]{0,30})?我(?:无法|不能)"
    r"(?:回答|提供|协助|帮助|完成|继续|处理))",
    re.IGNORECASE,
)
_REFUSAL_CHARS = 160


def _compiled(*tables: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{each})" for table in tables for each in table), re.IGNORECASE)


_DECLINES = _compiled(phrases.DECLINES)
_CLAIMLESS = _compiled(phrases.DECLINES, phrases.COURTESIES)
_ACKNOWLEDGES = _compiled(phrases.ACKNOWLEDGEMENTS, phrases.COURTESIES)


def claimless_ranges(text: str) -> list[tuple[int, int]]:
    """Return the character ranges of the sentences of ``text`` that claim nothing, in order, not overlapping."""
    return [(start, end) for start, end in sentences(text) if _consists_of(_CLAIMLESS, text[start:end])]


def is_claimless(text: str) -> bool:
    """Return whether no sentence of ``text`` claims anything; blank text too."""
    return all(_consists_of(_CLAIMLESS, text[start:end]) for start, end in sentences(text))


def is_abstention(text: str) -> bool:
    """Return whether ``text`` claims nothing and says that it does not answer.

    A wrong refusal counts too: it is a poor answer, but not a hallucination. Blank text is not an abstention.
    """
    return is_claimless(text) and any(
        any(_DECLINES.fullmatch(piece) for piece in _pieces(text[start:end]))
        for start, end in sentences(text)
    )


def is_refusal(text: str) -> bool:
    """Return whether ``text`` opens with a refusal to answer ("I can't help with that"); English and Chinese."""
    return _REFUSES.match(text[:_REFUSAL_CHARS].translate(_QUOTES)) is not None


def acknowledges(sentence: str) -> bool:
    """Return whether ``sentence`` only takes note of a request or reports work on an answer.

    Such a sentence answers nothing. It is not claimless: "of course" affirms, "all correct" holds of the evidence or not.
    """
    return _consists_of(_ACKNOWLEDGES, sentence)


def _consists_of(phrases: re.Pattern[str], sentence: str) -> bool:
    if len(sentence) > _LONGEST:
        return False
    pieces = _pieces(sentence)
    whole = " ".join(sentence.translate(_QUOTES).strip(_EDGES).split())
    return phrases.fullmatch(whole) is not None or (
        bool(pieces) and all(phrases.fullmatch(piece) for piece in pieces)
    )


def _pieces(sentence: str) -> list[str]:
    """Return what stands between the commas of a sentence, without conjunctions; nothing of a long one."""
    if len(sentence) > _LONGEST:
        return []
    bare = (piece.strip(_EDGES) for piece in _JOINT.split(sentence.translate(_QUOTES)))
    pieces = (" ".join(_without_conjunction(piece).split()) for piece in bare)
    return [piece for piece in pieces if piece]


def _without_conjunction(piece: str) -> str:
    match = _CONJUNCTION.match(piece)
    return piece[match.end() :] if match else piece
