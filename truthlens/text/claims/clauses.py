"""Clauses of a sentence, and sentences that claim nothing: closed word classes, English and Chinese.

Conservative both ways: a sentence is cut only where each half has a subject and a finite verb of its own, and it is
held to claim nothing only as a whole. No parser, no model, no part-of-speech tagging.
"""

from __future__ import annotations

import re

from truthlens.text.claims.telling import tells
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
_LONGEST, _LONGEST_CLAIMLESS = 1200, 400
_LEAST_WORDS = re.compile(r"\s*\S+(?:\s+\S+){2}")
_LEAST_HAN = re.compile(r"(?:[^\u3400-\u4dbf\u4e00-\u9fff]*+[\u3400-\u4dbf\u4e00-\u9fff]){5}")
_OPENING, _CLOSING = "([{（【「『“《", ")]}）】」』”》"
_NESTING = re.compile(r"[()\[\]{}（）【】「」『』“”《》\"`]")

_SPEAKER = r"(?:I|we)"
_SOURCE = (
    r"(?:the|this|these|any of the|given|provided|my|our)?\s*(?:(?:given|provided|available|above|three|supplied)\s+)*"
    r"(?:passages?|context|evidence|documents?|sources?|texts?|information|excerpts?|materials?)"
)
_SAYS_NOTHING = re.compile(
    r"(?:hello|hi|hey|dear|greetings|good (?:morning|afternoon|evening))\b[^.:]{0,40}"
    r"|(?:sure|certainly|of course|absolutely|great question|good question|no problem|okay|ok|yes|no)"
    r"|(?:you'?re welcome|thank(?:s| you)\b.{0,60}|(?:I|we) hope (?:this|that|it)\b.{0,60}|good luck\b.{0,30})"
    r"|(?:I apologi[sz]e|I'?m sorry|sorry|my apologies)\b.{0,60}"
    r"|(?:please )?(?:let me know|feel free|don'?t hesitate|reach out|do not hesitate)\b.{0,100}"
    r"|(?:I'?(?:d| would) be|I am|I'?m) (?:happy|glad|here) to\b.{0,80}"
    rf"|(?:based on|according to|from) {_SOURCE}"
    rf"|(?:based on|according to|from) {_SOURCE},? (?:here|the following|below)\b.{{0,120}}"
    r"|(?:here|below|following) (?:is|are|'s|you)\b.{0,120}"
    r"|(?:in (?:summary|conclusion)|to (?:sum up|conclude|summari[sz]e)|overall|note|answer|conclusion|summary)",
    re.IGNORECASE | re.DOTALL,
)
_ABSTAINS = re.compile(
    rf"(?:sorry,? |unfortunately,? |(?:based on|from|according to) {_SOURCE},? )*"
    r"(?:(?:it is |(?:I|we)(?: am|'m| are|'re) )?(?:unable|not able|not possible|impossible) to "
    r"(?:answer|determine|say|tell|provide|find)\b.{0,160}"
    rf"|{_SPEAKER} (?:can ?not|can'?t|could not|couldn'?t|do not|don'?t) (?:answer|determine|say|tell|know|find|provide)"
    r"\b.{0,160}"
    rf"|(?:there is no|{_SOURCE} (?:do|does|did) ?n[o']t (?:contain|provide|include|mention|say|give|offer|have|specify"
    r"|state|address|discuss)(?: any| enough| sufficient| specific)*) (?:information|answer|details?|anything|mention"
    r"|evidence)\b.{0,160})",
    re.IGNORECASE | re.DOTALL,
)
_SAYS_NOTHING_ZH = re.compile(
    r"(?:你好|您好|大家好|早上好|晚上好|好的|当然|没问题|不客气|谢谢|感谢).{0,15}"
    r"|(?:希望(?:这|以上|对).{0,30})|(?:如(?:果|有).{0,20}(?:问题|疑问|需要).{0,30})"
    r"|(?:以下|下面|下列)(?:是|为|列出|将).{0,40}|(?:根据|基于|依据)(?:所?提供的|以上|上述|给定的?)?(?:资料|文档|上下文|信息|段落|内容|文本)"
    r"|(?:综上所述|总之|总结|总的来说|答案?|回答|注)",
    re.DOTALL,
)
_ABSTAINS_ZH = re.compile(
    r"(?:抱歉|对不起|很遗憾)?[，,]?(?:(?:根据|基于|从).{0,20}[，,])?(?:我|我们)?(?:目前|暂时)?"
    r"(?:(?:无法|不能|没有?办法)(?:回答|确定|判断|得知|提供).{0,60}"
    r"|.{0,16}(?:没有|并?未)(?:提供|包含|提到|提及|说明|给出).{0,24}(?:信息|内容|资料|答案|细节))",
    re.DOTALL,
)
_ANNOUNCES = re.compile(
    r"\b(?:here|below|following|follows|these|steps?|reasons?|ways?|tips?|factors?|examples?|points?|options?|include)\b"
    r"|以下|如下|下列|下面|包括|几点|步骤|原因|方法",
    re.IGNORECASE,
)
_MARKS = "*_#>`~\"'“”‘’「」『』()（）[]-–—• \t"


def clauses(sentence: str) -> list[tuple[int, int]]:
    """Character ranges of the coordinated main clauses of ``sentence``; the whole of it where it is not safe to cut.

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


def is_claimless(sentence: str) -> bool:
    """Return whether ``sentence`` only greets, leads in, asks, offers help or says that it cannot answer.

    With a number or a clause of its own a question, an offer, a thanks or an abstention claims something.
    """
    plain = sentence.replace("’", "'").strip(_MARKS)
    if not plain:
        return True
    if plain.endswith(("?", "？")):
        return not tells(plain)
    if plain.endswith((":", "：")):
        return bool(_ANNOUNCES.search(plain)) or not _claims_much(plain)
    if len(plain) > _LONGEST_CLAIMLESS:
        return False
    bare = plain.rstrip(" .!。！…,，~～" + _MARKS)
    return not tells(bare) and any(
        pattern.fullmatch(bare) is not None
        for pattern in (_SAYS_NOTHING, _ABSTAINS, _SAYS_NOTHING_ZH, _ABSTAINS_ZH)
    )


def _claims_much(lead: str) -> bool:
    """Whether a lead-in is a statement: it has a verb and a number, as in "It costs 40 euros, in detail:"."""
    return any(character.isdigit() for character in lead) and (
        _VERB.search(lead) is not None or is_chinese(lead)
    )


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
        """Whether a match begins at ``start`` or later and ends at ``end`` at the latest."""
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
