"""The parts of an answer that claim nothing: abstentions, lead-ins, politeness, offers, restated questions, headings.

A classifier trained on claims scores them all the same, and they are its commonest false alarms. The patterns are
meant to be conservative: a sentence is left out only as a whole, or up to the comma of its lead-in, and anything
that could carry a fact ("..., but it costs 40 euros") keeps its score. English and Chinese.
"""

from __future__ import annotations

import re

from truthlens.core.text import sentences
from truthlens.detection import claim_patterns as patterns
from truthlens.detection.words import words

_END = r"[\s.!?。！？…*_\"')]*"
_START = r"[\s*_#>\-•\"'(]*"
_MARK = re.compile(r"[\s*_#>\-•.:：\"'()]+")
_NUMBERED = re.compile(r"\b(?:passage|step|source|document)s? \d{1,3}\b", re.IGNORECASE)


def _alternatives(*tables: tuple[str, ...]) -> str:
    return "(?:" + "|".join(f"(?:{pattern})" for table in tables for pattern in table) + ")"


_LEAD = re.compile(
    _START + _alternatives(patterns.LEAD_INS, patterns.LEAD_INS_ZH) + r"[\s*_]*", re.IGNORECASE
)
_ABSTAINS = re.compile(
    rf"{_START}{_alternatives(patterns.ABSTENTIONS, patterns.ABSTENTIONS_ZH)}"
    rf"(?:,? {patterns.FROM_EVIDENCE})?{_END}",
    re.IGNORECASE,
)
_SAYS_NOTHING = re.compile(
    _START
    + _alternatives(patterns.META, patterns.POLITE, patterns.META_ZH, patterns.POLITE_ZH)
    + f"[:：,，]?{_END}",
    re.IGNORECASE,
)
_OFFERS_HELP = re.compile(_START + _alternatives(patterns.OFFERS, patterns.OFFERS_ZH) + _END, re.IGNORECASE)


def is_abstention(text: str) -> bool:
    """Whether ``text`` only says that it cannot answer: it makes no claim, so nothing in it can be unsupported.

    True where at least one sentence abstains and every other one says nothing either. A wrong refusal counts too:
    it is a poor answer, but not a hallucination. Blank text is not an abstention.
    """
    ranges = sentences(text)
    kinds = [_abstains(text[start:end]) for start, end in ranges]
    return any(kinds) and all(
        abstains or _is_empty_talk(text[start:end], query_words=frozenset())
        for abstains, (start, end) in zip(kinds, ranges, strict=True)
    )


def claimless_ranges(text: str, *, query: str = "") -> list[tuple[int, int]]:
    """Character ranges of ``text`` that claim nothing, in order, not overlapping.

    Whole sentences that abstain, lead in, are polite, offer more help, ask the user something, restate the query,
    or are headings without content of their own; and the lead-in of any other sentence ("Based on the passages,").

    Args:
        text: the answer.
        query: what the user asked; a question or heading made of its words claims nothing.
    """
    words = frozenset(_stems(query))
    found: list[tuple[int, int]] = []
    for start, end in sentences(text):
        sentence = text[start:end]
        if _abstains(sentence) or _is_empty_talk(sentence, query_words=words):
            found.append((start, end))
        elif lead := _lead_length(sentence):
            found.append((start, start + lead))
    return found


def _abstains(sentence: str) -> bool:
    plain = _plain(sentence)
    return _ABSTAINS.fullmatch(plain, _lead_length(sentence)) is not None


def _is_empty_talk(sentence: str, *, query_words: frozenset[str]) -> bool:
    plain = _plain(sentence)
    rest = _lead_length(sentence)
    return (
        not _MARK.sub("", plain[rest:])
        or _SAYS_NOTHING.fullmatch(plain, rest) is not None
        or _SAYS_NOTHING.fullmatch(plain) is not None
        or _OFFERS_HELP.fullmatch(plain, rest) is not None
        or _restates(plain[rest:], query_words)
        or _is_heading(plain[rest:], query_words)
    )


def _lead_length(sentence: str) -> int:
    """Length of the lead-ins at the sentence's start; several may follow each other ("Sorry, based on ...,")."""
    plain = _plain(sentence)
    length = 0
    while match := _LEAD.match(plain, length):
        length = match.end()
    return length


def _restates(plain: str, query_words: frozenset[str]) -> bool:
    """Whether this is a question, all of whose words of content stand in the query."""
    if not query_words or not plain.rstrip(" *_\"')").endswith(("?", "？")):
        return False
    stems = _stems(plain)
    return bool(stems) and all(stem in query_words or stem in patterns.QUESTION_WORDS for stem in stems)


def _is_heading(plain: str, query_words: frozenset[str]) -> bool:
    """Whether this line only names or announces what follows, in words of the query."""
    bare = plain.strip()
    if not (bare.startswith("#") or bare.endswith((":", "：", ":**")) or _is_bold(bare)):
        return False
    stems = _stems(_NUMBERED.sub("", bare))
    if stems[:1] == _stems("here"):
        return all(stem in query_words or stem in patterns.ANNOUNCING_WORDS for stem in stems)
    return all(
        (stem in query_words or stem in patterns.HEADING_WORDS) and stem not in patterns.VERBS
        for stem in stems
    )


def _is_bold(bare: str) -> bool:
    return len(bare) > 4 and bare.startswith("**") and bare.endswith("**") and "**" not in bare[2:-2]


def _plain(sentence: str) -> str:
    """The sentence with straight quotes, of the same length, so that positions stay valid."""
    return (
        sentence.replace("\u2019", "'").replace("\u2018", "'").replace("\u201c", '"').replace("\u201d", '"')
    )


def _stems(text: str) -> list[str]:
    return [word.stem for word in words(text)]
