"""Clauses of a sentence, by closed word classes; English and Chinese.

A sentence is cut only where each half has a subject and a finite verb of its own. No parser, no model, no
part-of-speech tagging.
"""

from __future__ import annotations

import re

from truthlens.text.sentences import is_chinese

_FINITE = (
    "is are was were has have had do does did can could will would shall should may might must cannot isn't aren't "
    "wasn't weren't hasn't haven't hadn't don't doesn't didn't can't couldn't won't wouldn't shouldn't needs need "
    "includes include included contains contain means makes make made takes take took gives give gave gets get got "
    "provides provide costs cost offers offer requires require uses use helps help allows allow begins begin began "
    "ends end opens open closes close lasts last starts start says say said states state shows show goes go went "
    "comes come came runs run ran rises rise rose falls fall fell keeps keep kept leads lead led becomes become became "
    "holds hold held lies lie lay pays pay paid sells sell sold wins win won loses lose lost grows grow grew"
)
_VERB = re.compile(
    rf"\b(?:(?:{_FINITE.replace(' ', '|')})\b|(?<!\bthe )(?<!\ba )(?<!\ban )(?<!\bof )[a-z]{{2,}}ed\b)",
    re.IGNORECASE,
)
_JOINT = re.compile(
    r",\s+(?:and|but|yet|while|whereas|so(?!\s+that\b))\s+"
    r"|(?:(?<!\s)\s*)?;\s+(?:(?:and|but|however|therefore|moreover|furthermore|in addition|also|instead|thus),?\s+)?"
)
_PRONOUN = re.compile(r"(?:it|they|he|she|we|you|I|this|these|those|there|that)\s+[\w']+", re.IGNORECASE)
# A subject of at most six words, then an auxiliary: further away, or another verb, it might be the end of a list.
_SUBJECT = re.compile(
    r"(?![a-z]+ing\b)(?:[^\s,;:()]+\s+){1,6}?(?P<verb>is|are|was|were|has|have|had|does|did|can|could|will|would"
    r"|shall|should|may|might|must|cannot|isn't|aren't|wasn't|weren't|can't|won't)\b(?!\s+being\b)",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(
    r"[\s*_\"'“(]*(?:if|when|while|although|though|because|since|as|after|before|once|unless|until|whether|where"
    r"|whenever|even|given|despite|in case|not only|both|either|neither|let|make sure|ensure|please)\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:sa(?:ys?|id)|stat(?:es?|ed)|claim(?:s|ed)?|argue[sd]?|believe[sd]?|th(?:inks?|ought)|suggest(?:s|ed)?"
    r"|impl(?:y|ies|ied)|mention(?:s|ed)?|not(?:es?|ed)|report(?:s|ed)?|explain(?:s|ed)?)\s+that\b"
    r"|\b(?:if|whether|unless)\b",
    re.IGNORECASE,
)
_JOINT_ZH = re.compile(
    r"[，,]\s*(?:但是?|不过|然而|同时|另外|此外)(?![有无])[，,]?|[，,]\s*(?:而且|并且|而)(?=[它他她其该这那我你您])"
)
_SUBORDINATE_ZH = re.compile(
    r"[\s*_“「]*(?:虽然|尽管|如果|若|因为|由于|不仅|不但|只要|只有|除非|即使|当|为了|无论)"
)
# Characters: no sentence of prose is longer, and nothing here may take long over what is none.
_LONGEST = 1200
_LEAST_WORDS = re.compile(r"\s*\S+(?:\s+\S+){2}")
_LEAST_HAN = re.compile(r"(?:[^\u3400-\u4dbf\u4e00-\u9fff]*+[\u3400-\u4dbf\u4e00-\u9fff]){5}")
_LEADING = " \t\r\n\"'“‘*_(["
_OPENING, _CLOSING = "([{（【「『“《", ")]}）】」』”》"
_NESTING = re.compile(r"[()\[\]{}（）【】「」『』“”《》\"`]")


def clauses(sentence: str) -> list[tuple[int, int]]:
    """Return the character ranges of the coordinated main clauses of ``sentence``; the whole of it where it is not safe to cut.

    What joins two clauses (", and ", "; ") belongs to neither. A sentence that begins with a subordinate clause, or
    that reports what somebody says, is never cut: its halves would claim something else than the whole. Nor is one
    of more than 1,200 characters.
    """
    if len(sentence) > _LONGEST:
        return [(0, len(sentence))]
    chinese = is_chinese(sentence)
    joint, subordinate = (_JOINT_ZH, _SUBORDINATE_ZH) if chinese else (_JOINT, _SUBORDINATE)
    if subordinate.match(sentence):
        return [(0, len(sentence))]
    found: list[tuple[int, int]] = []
    start = 0
    nesting = _Nesting(sentence)
    halves = _HalvesZh(sentence) if chinese else _Halves(sentence)
    for match in joint.finditer(sentence):
        if not nesting.is_inside(match.start()) and halves.stand_alone(start, match):
            found.append((start, match.start()))
            start = match.end()
    return [*found, (start, len(sentence))]


def refers_back(text: str) -> bool:
    """Return whether ``text`` begins with a pronoun and so speaks of what stands before it; English."""
    return _PRONOUN.match(text.lstrip(_LEADING)) is not None


class _Halves:
    """Whether what stands before and after a joint of a sentence can stand alone; joints are asked for in order."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence
        self._verbs_before = _Finder(_VERB, sentence)
        self._verbs_after = _Finder(_VERB, sentence)
        self._reports = _Finder(_REPORTED, sentence)

    def stand_alone(self, start: int, joint: re.Match[str]) -> bool:
        """For the halves from ``start`` to ``joint``, and from there to the sentence's end."""
        sentence, left, right = self._sentence, joint.start(), joint.end()
        if not _LEAST_WORDS.match(sentence, start, left) or not _LEAST_WORDS.match(sentence, right):
            return False
        if not self._verbs_before.is_between(start, left) or self._reports.is_between(start, left):
            return False
        if _PRONOUN.match(sentence, right):
            return self._verbs_after.is_between(right, len(sentence))
        return _SUBJECT.match(sentence, right) is not None and _VERB.match(sentence, right) is None


class _HalvesZh:
    """As ``_Halves``, for Chinese."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    def stand_alone(self, start: int, joint: re.Match[str]) -> bool:
        """For the halves from ``start`` to ``joint``, and from there to the sentence's end."""
        before = _LEAST_HAN.match(self._sentence, start, joint.start())
        return before is not None and _LEAST_HAN.match(self._sentence, joint.end()) is not None


class _Finder:
    """The first match behind places that are asked for in order; no part of the text is searched twice."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self._pattern = pattern
        self._text = text
        self._found = (-1, -1)

    def is_between(self, start: int, end: int) -> bool:
        """Return whether a match begins at ``start`` or later and ends at ``end`` at the latest."""
        if self._found[0] < start:
            match = self._pattern.search(self._text, start)
            self._found = match.span() if match else (len(self._text), len(self._text) + 1)
        return self._found[1] <= end


class _Nesting:
    """Whether places of a text, asked for in order, stand in brackets, quotes or code."""

    def __init__(self, text: str) -> None:
        self._marks = [(match.start(), match[0]) for match in _NESTING.finditer(text)]
        self._passed = 0
        self._depth = 0
        self._open: set[str] = set()

    def is_inside(self, place: int) -> bool:
        while self._passed < len(self._marks) and self._marks[self._passed][0] < place:
            mark = self._marks[self._passed][1]
            if mark in _OPENING:
                self._depth += 1
            elif mark in _CLOSING:
                self._depth -= 1
            else:
                self._open ^= {mark}
            self._passed += 1
        return self._depth > 0 or bool(self._open)
