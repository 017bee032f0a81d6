"""The parts of an answer that claim nothing: abstentions, lead-ins, politeness, offers, restated questions, headings.

A classifier trained on claims scores them all the same, and they are its commonest false alarms. A sentence is left out
only where nothing in it can be false against the evidence. It needs the form of one of the patterns, and where the form
is open nothing but words of the query and of closed lists: no number, no negation, no clause of its own, and no word that
nobody asked about. Whatever else a frame of politeness holds keeps its score. English and Chinese; plain declines in seven
languages (``declines``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from truthlens.text.claims import non_claim_patterns as patterns
from truthlens.text.claims.declines import closes, declines
from truthlens.text.sentences import sentences
from truthlens.text.words import HAN, words

_END = r"[\s.!?。！？…*_\"')]*"
# Taken whole or not at all: of what is made of nothing else every part would be tried.
_START = r"[\s*_#>\-•\"'(]*+"
_MARK = re.compile(r"[\s*_#>\-•.:：\"'()]+")
_NUMBERED = re.compile(r"\b(?:passage|step|source|document)s? \d{1,3}\b", re.IGNORECASE)


def _alternatives(*tables: tuple[str, ...]) -> str:
    return "(?:" + "|".join(f"(?:{pattern})" for table in tables for pattern in table) + ")"


_LEAD = re.compile(
    _START + _alternatives(patterns.LEAD_INS, patterns.LEAD_INS_ZH) + r"[\s*_]*", re.IGNORECASE
)
_ABSTAINS = re.compile(
    rf"{_START}(?:(?:however|but|still|nevertheless|additionally|also),? )?{_alternatives(patterns.ABSTENTIONS, patterns.ABSTENTIONS_ZH)}"
    rf"(?:,? {patterns.FROM_EVIDENCE})?{_END}",
    re.IGNORECASE,
)
_SAYS_NOTHING = re.compile(
    _START
    + _alternatives(patterns.META, patterns.POLITE, patterns.META_ZH, patterns.POLITE_ZH)
    + f"[:：,，]?{_END}",
    re.IGNORECASE,
)
_ACKNOWLEDGES = re.compile(
    _alternatives(patterns.ACKNOWLEDGEMENTS, patterns.ACKNOWLEDGEMENTS_ZH), re.IGNORECASE
)
_REFUSES = re.compile(rf"\W*{_alternatives(patterns.REFUSALS)}", re.IGNORECASE)
_REFUSAL_CHARS = 160
_OFFERS_HELP = re.compile(_START + _alternatives(patterns.OFFERS, patterns.OFFERS_ZH) + _END, re.IGNORECASE)
_ASKS = re.compile(_START + _alternatives(patterns.ASKS, patterns.ASKS_ZH) + _END, re.IGNORECASE)
# Words of a thing's name; in more of them a clause would fit.
_NAME_WORDS = 3


# What a bare place may be written with: a bracket, a colon or a sign begins something else.
_PLAIN_TEXT = re.compile(r"[^\W\d_'\"*.!?？。…-]*(?:[\s'\"*.!?？。…-]+[^\W\d_'\"*.!?？。…-]*)*")
_THIS = re.compile(
    r"\bthat(?= (?:question|answer|information|topic|subject|request|point|detail|matter|text|passage)s?\b"
    r"| (?:from|in|with|for|based|on)\b"
    r"| (?:was|were|are|have been|i was|you) (?:provided|given|gave|retrieved|available)\b|\W*$)",
    re.IGNORECASE,
)
# "Many", which tells nothing, has the same stem.
_MEN = re.compile(r"\bm[ae]n\b", re.IGNORECASE)
_HAN = re.compile(f"[{HAN}]+")
_GENERIC_ZH = re.compile(patterns.GENERIC_ZH)
_NEVER_BARE_ZH = re.compile(patterns.NEVER_BARE_ZH)
_AFFIRMS = re.compile(
    r"\W*(?:sure|certainly|of course|absolutely|okay|ok|当然(?:可以)?|没问题|好的)\W*", re.IGNORECASE
)
# The user asks whether something is so; what is asked of the model ("can you tell me") is no such question.
_POLAR = re.compile(
    r"(?:(?:is|are|was|were|do|does|did|has|have|had|can|could|may|must|should|will|would|shall|am)(?:n't)?\b)(?! you\b)",
    re.IGNORECASE,
)
_POLAR_ZH = re.compile(r"吗|是否|能否|可否|有没有|是不是|能不能|可不可以|会不会|要不要")
_CLAUSE_JOINT = re.compile(r"(?:[,;:，]|\b(?:and|or)\b)\s*")
# Behind these a word of a question is its verb; looked at from every word, for one may be followed by another.
_VERB = re.compile(
    r"(?:\b(?:i|we|you|he|she|they|one|people|to|can|should|must|may|will|would|could|might|please|do|does|did|not)\s+"
    r"|^\W*)(?=(?P<verb>[^\W\d_]+))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Query:
    """What the user asked, as far as it says what a sentence may speak of without claiming anything.

    Of ``evidence`` a sentence may only repeat the name of a thing. What is found in them is found once.
    """

    text: str = ""
    evidence: Sequence[str] = ()

    @cached_property
    def stems(self) -> frozenset[str]:
        """Return the stems of its words."""
        return frozenset(_stems(self.text))

    @cached_property
    def verbs(self) -> frozenset[str]:
        """Return the stems of its verbs, as far as their place tells them."""
        return frozenset(stem for match in _VERB.finditer(self.text) for stem in _stems(match["verb"]))

    @cached_property
    def is_polar(self) -> bool:
        """Return whether one of its questions can be answered by yes or no."""
        return _POLAR_ZH.search(self.text) is not None or any(
            _POLAR.match(self.text, start)
            for first, end in sentences(self.text)
            for start in _clause_starts(self.text, first, end)
        )

    def names(self, thing: str) -> bool:
        """Whether query or evidence call something just so."""
        pattern = re.compile(rf"(?<![^\W{HAN}]){re.escape(thing)}(?![^\W{HAN}])", re.IGNORECASE)
        return any(pattern.search(text) for text in (self.text, *self.evidence))


_NOTHING_ASKED = Query()


def is_refusal(text: str) -> bool:
    """Return whether ``text`` opens with a refusal to answer ("I can't help with that"); English and Chinese."""
    return _REFUSES.match(text[:_REFUSAL_CHARS].replace("’", "'")) is not None


def is_abstention(text: str, asked: Query = _NOTHING_ASKED) -> bool:
    """Return whether ``text`` only says that it cannot answer: it makes no claim, so nothing can be unsupported.

    True where at least one sentence abstains and every other one says nothing either. A wrong refusal counts too:
    it is a poor answer, but not a hallucination. Blank text is not an abstention.

    Args:
        text: the answer.
        asked: what the user asked: the only thing that an abstention may name. With ``text`` itself it may name
            anything, and only its form counts.
    """
    ranges = sentences(text)
    kinds = [_abstains(text[start:end], asked) for start, end in ranges]
    return any(kinds) and all(
        abstains or _is_empty_talk(text[start:end], asked)
        for abstains, (start, end) in zip(kinds, ranges, strict=True)
    )


def is_claimless(text: str, asked: Query = _NOTHING_ASKED) -> bool:
    """Return whether no sentence of ``text`` claims anything: see ``claimless_ranges``."""
    return all(
        _abstains(text[start:end], asked) or _is_empty_talk(text[start:end], asked)
        for start, end in sentences(text)
    )


def acknowledges(sentence: str) -> bool:
    """Return whether ``sentence``, without marks around it, only takes note of a request or reports work on an answer.

    Such a sentence answers nothing. It is not claimless: "of course" affirms, "all correct" holds of the evidence or not.
    """
    return _fits(_ACKNOWLEDGES, _plain(sentence), 0, _NOTHING_ASKED)


def claimless_ranges(text: str, asked: Query = _NOTHING_ASKED) -> list[tuple[int, int]]:
    """Return the character ranges of ``text`` that claim nothing, in order, not overlapping.

    Whole sentences that abstain, lead in, are polite, offer more help, ask the user something, restate the query,
    or are headings without content of their own; and the lead-in of any other sentence ("Based on the passages,").
    Sentences that decline in further words (``declines``) are among them only where the whole text claims nothing: beside
    a claim they are as suspicious as it is.

    Args:
        text: the answer.
        asked: what the user asked: beside generic words, its are the only ones that such a sentence may hold. Its
            evidence names the things about which a question to the user may be.
    """
    ranges = sentences(text)
    silent = [_has_a_silent_form(text[start:end], asked) for start, end in ranges]
    if not all(silent) and is_claimless(text, asked):
        return ranges
    found: list[tuple[int, int]] = []
    for (start, end), whole in zip(ranges, silent, strict=True):
        if whole:
            found.append((start, end))
        elif (lead := _frame_length(text[start:end])) and start + lead < end:
            found.append((start, start + lead))
    return found


def _abstains(sentence: str, asked: Query) -> bool:
    plain = _plain(sentence)
    return _has_abstaining_form(plain, asked) or declines(plain, lambda place: _is_bare(place, asked))


def _has_abstaining_form(plain: str, asked: Query) -> bool:
    return _fits(_ABSTAINS, plain, _lead_length(plain), asked)


def _has_a_silent_form(sentence: str, asked: Query) -> bool:
    """Return whether a sentence claims nothing beside whatever claims: see ``claimless_ranges``."""
    return _has_abstaining_form(_plain(sentence), asked) or _is_idle(sentence, asked)


def _is_empty_talk(sentence: str, asked: Query) -> bool:
    return _is_idle(sentence, asked) or closes(_plain(sentence))


def _is_idle(sentence: str, asked: Query) -> bool:
    plain = _plain(sentence)
    rest = _lead_length(sentence)
    if _AFFIRMS.fullmatch(plain):
        return not asked.is_polar
    return (
        not _MARK.sub("", plain[rest:])
        or _fits(_SAYS_NOTHING, plain, rest, asked)
        or _fits(_SAYS_NOTHING, plain, 0, asked)
        or _fits(_OFFERS_HELP, plain, rest, asked)
        or _asks_user(plain, rest, asked)
        or _restates(plain[rest:], asked)
        or _is_heading(plain[rest:], asked)
    )


def _fits(pattern: re.Pattern[str], plain: str, start: int, asked: Query) -> bool:
    """Return whether the sentence from ``start`` has this form, and nothing stands where the form is open."""
    match = pattern.fullmatch(plain, start)
    return match is not None and all(_is_bare(place, asked) for place in match.groups() if place)


def _is_bare(place: str, asked: Query) -> bool:
    """Return whether this open place of a pattern holds only words that tell nothing, or that the user asked about."""
    place = _THIS.sub("this", place)
    if (
        not _PLAIN_TEXT.fullmatch(place)
        or _MEN.search(place)
        or any(character.isnumeric() for character in place if character < "\u3400")
    ):
        return False
    before = ""
    for word in words(_HAN.sub(" ", place)):
        generic = word.stem in patterns.GENERIC_WORDS
        if word.numbers or word.negation or word.stem in patterns.NEVER_BARE:
            return False
        if not generic and word.stem not in asked.stems and word.stem != "any":
            return False
        if before == "any" and not generic:
            return False
        if word.stem in patterns.RELATIVES and before and before not in patterns.GENERIC_WORDS:
            return False
        if before in {"and", "or", "then"} and word.stem in asked.verbs and not generic:
            return False
        before = word.stem
    return all(_is_bare_zh(match[0], asked.text) for match in _HAN.finditer(place))


def _is_bare_zh(place: str, query: str) -> bool:
    asked = _POLAR_ZH.sub(" ", place)
    if _NEVER_BARE_ZH.search(asked):
        return False
    return place in query or all(piece in query for piece in _GENERIC_ZH.sub(" ", asked).split())


def _lead_length(sentence: str) -> int:
    """Return the length of the lead-ins at the sentence's start; several may follow each other ("Sorry, based on ...,")."""
    plain = _plain(sentence)
    length = 0
    while match := _LEAD.match(plain, length):
        length = match.end()
    return length


def _frame_length(sentence: str) -> int:
    """Return the length of the sentence's beginning that claims nothing, where the rest does: its lead-ins, and an offer's frame."""
    plain = _plain(sentence)
    lead = _lead_length(sentence)
    match = _OFFERS_HELP.fullmatch(plain, lead)
    place = next((number for number, held in enumerate(match.groups(), 1) if held), 0) if match else 0
    if match is None or not place:
        return lead
    length = match.start(place)
    for word in words(match[place]):
        if word.stem not in patterns.GENERIC_WORDS:
            break
        length = match.start(place) + word.end
    return length


def _asks_user(plain: str, start: int, asked: Query) -> bool:
    """Whether this only asks whether the user looked at a thing that there is."""
    match = _ASKS.fullmatch(plain, start)
    thing = next((place for place in match.groups() if place), "") if match else ""
    listed = words(thing)
    return (
        0 < len(thing.split()) <= _NAME_WORDS
        and not any(word.numbers or word.negation or word.stem in patterns.NEVER_BARE for word in listed)
        and not _NEVER_BARE_ZH.search(thing)
        and asked.names(thing)
    )


def _restates(plain: str, asked: Query) -> bool:
    """Return whether this is a question, all of whose words of content stand in the query."""
    if not asked.text or not plain.rstrip(" *_\"')").endswith(("?", "？")):
        return False
    listed = words(plain)
    return bool(listed) and all(
        word.stem in asked.stems or (word.stem in patterns.QUESTION_WORDS and not word.negation)
        for word in listed
    )


def _is_heading(plain: str, asked: Query) -> bool:
    """Return whether this line only names or announces what follows, in words of the query.

    Where the user asks whether something is so, the query's words may be the answer ("**Safe with alcohol**").
    """
    bare = plain.strip()
    if not (bare.startswith("#") or bare.endswith((":", "：", ":**", "：**")) or _is_bold(bare)):
        return False
    listed = words(_NUMBERED.sub("", bare))
    if any(word.numbers or word.negation for word in listed):
        return False
    stems = [word.stem for word in listed]
    topical = frozenset[str]() if asked.is_polar else asked.stems
    if stems[:1] == _stems("here"):
        return all(stem in topical or stem in patterns.ANNOUNCING_WORDS for stem in stems)
    if stems and stems[0] in asked.verbs:
        return False
    known = (topical - patterns.VERBS - patterns.NEVER_BARE) | patterns.HEADING_WORDS
    return all(stem in known for stem in stems)


def _clause_starts(text: str, start: int, end: int) -> list[int]:
    """Return where clauses begin: at the sentence's start, and behind commas and "and"."""
    return [start, *(match.end() for match in _CLAUSE_JOINT.finditer(text, start, end))]


def _is_bold(bare: str) -> bool:
    return len(bare) > 4 and bare.startswith("**") and bare.endswith("**") and "**" not in bare[2:-2]


def _plain(sentence: str) -> str:
    """Return the sentence with straight quotes, of the same length, so that positions stay valid."""
    return (
        sentence.replace("\u2019", "'").replace("\u2018", "'").replace("\u201c", '"').replace("\u201d", '"')
    )


def _stems(text: str) -> list[str]:
    return [word.stem for word in words(text)]
