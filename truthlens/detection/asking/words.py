"""Read how likely YES, NO and UNSURE are from the log probabilities of a reply, without trusting it. Pure.

A reply is read at its first token that bears an answer. Where the text and its tokens say different things, or the text says
two things, there is no reading: what cannot be read is never taken for a yes.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from truthlens.core.records.calls import Completion, TokenLogprob

_MOST_SKIPPED = 8
# Probabilities of different tokens in one place; more than this together is no distribution.
_MOST_SUM = 1.02
# With less than this on the three answers a model speaks of something else.
_LEAST_MASS = 0.5
_AGAINST_TEXT = 0.6
_MOST_TEXT = 400


class Word(StrEnum):
    """What a model may answer."""

    YES = "yes"
    NO = "no"
    UNSURE = "unsure"


_SPELLINGS: Mapping[str, Word] = {
    **{"yes"[:length]: Word.YES for length in (1, 2, 3)},
    **{"no"[:length]: Word.NO for length in (1, 2)},
    **{"unsure"[:length]: Word.UNSURE for length in range(1, 7)},
    "是": Word.YES,
    "是的": Word.YES,
    "否": Word.NO,
    "不是": Word.NO,
    # Begins "不是" as well, which is no yes either.
    "不": Word.UNSURE,
    "不确": Word.UNSURE,
    "不确定": Word.UNSURE,
}
# Said before an answer: "**Answer:** YES", "答案：是".
_LEAD_WORDS = frozenset(
    {
        "answer",
        "final",
        "final answer",
        "verdict",
        "the",
        "is",
        "the answer is",
        "答案",
        "回答",
        "结论",
        "判断",
    }
)
_LEAD = re.compile(r"(?:(?:the |final )?(?:answer|verdict)(?: is)?|答案|回答|结论|判断)(?![^\W_])[\W_]*")
_MARKS = re.compile("^[▁ĠĊ]+|[▁Ċ]+$")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_TAG = re.compile(r"\s*</?[^<>\s]{1,40}>\s*")
_WORDS = re.compile(r"(?<![^\W_])(?:yes|no|unsure)(?![^\W_])|不确定|不是|是的|是(?!否)|否")


@dataclass(frozen=True, slots=True)
class Reading:
    """Probabilities of the three answers, all spellings of one summed; the rest went to other tokens.

    ``most_yes`` is the most that YES can be where it is not ``listed``: no more than the least likely listed token, nor than
    what is left. ``several`` says that more than the token that was said is listed.
    """

    yes: float
    no: float
    unsure: float
    listed: bool
    most_yes: float
    several: bool

    @property
    def mass(self) -> float:
        """What the three answers have together."""
        return self.yes + self.no + self.unsure

    def plain(self, *, highest: bool = False) -> float:
        """Return P(YES) as it stands, or the most that it can be."""
        return min(1.0, self.yes if self.listed or not highest else self.most_yes)

    def share(self, *, highest: bool = False) -> float:
        """Return YES/(YES+NO+UNSURE), or the most that it can be.

        Where one token alone is known, what is left may all be another answer.
        """
        if not self.several:
            return self.plain(highest=highest)
        yes = self.plain(highest=highest)
        rest = self.no + self.unsure
        return min(1.0, yes / (yes + rest)) if yes + rest > 0.0 else 0.0

    def as_json(self) -> dict[str, float | bool]:
        """Return it as JSON can hold it."""
        return asdict(self)


def reading_from(value: object) -> Reading | None:
    """Return the reading that a cache kept, ``None`` where it is not one."""
    if not isinstance(value, dict):
        return None
    figures = [value.get(key) for key in ("yes", "no", "unsure", "most_yes")]
    flags = [value.get(key) for key in ("listed", "several")]
    if not all(isinstance(each, bool) for each in flags):
        return None
    numbers = [
        float(each)
        for each in figures
        if isinstance(each, (int, float)) and not isinstance(each, bool) and 0 <= each <= _MOST_SUM
    ]
    if len(numbers) != len(figures):
        return None
    yes, no, unsure, most_yes = numbers
    found = Reading(yes, no, unsure, flags[0] is True, most_yes, flags[1] is True)
    return found if _LEAST_MASS <= found.mass <= _MOST_SUM else None


def read(reply: Completion) -> Reading | None:
    """Return how likely each answer is, ``None`` where the reply does not say it."""
    said = _said(reply.text)
    place = _answering(reply.logprobs)
    if said is None or place is None:
        return None
    # "不" begins two answers, neither of them a yes.
    if (_word(place.token) is Word.YES) is not (said is Word.YES):
        return None
    listed = dict[str, float]()
    total = 0.0
    for token, logprob in place.top:
        probability = _probability(logprob)
        total += probability
        listed[token] = listed.get(token, 0.0) + probability
    if place.token not in listed:
        listed[place.token] = _probability(place.logprob)
        total += listed[place.token]
    if not total <= _MOST_SUM:
        return None
    sums = dict.fromkeys(Word, 0.0)
    words = set[Word]()
    for token, probability in listed.items():
        if (word := _word(token)) is not None:
            sums[word] += probability
            words.add(word)
    least = min(listed.values())
    found = Reading(
        yes=sums[Word.YES],
        no=sums[Word.NO],
        unsure=sums[Word.UNSURE],
        listed=Word.YES in words,
        most_yes=sums[Word.YES] if Word.YES in words else max(0.0, min(least, 1.0 - total)),
        several=len(listed) > 1,
    )
    if found.mass < _LEAST_MASS:
        return None
    # It said one thing and its figures say the other.
    if said is not Word.YES and found.share() > _AGAINST_TEXT:
        return None
    return found


def _probability(logprob: float) -> float:
    return math.exp(min(0.0, logprob)) if not math.isnan(logprob) else 0.0


def _answering(tokens: tuple[TokenLogprob, ...]) -> TokenLogprob | None:
    """Return the first token that bears an answer; only marks and what leads to an answer may stand before it."""
    for place in tokens[:_MOST_SKIPPED]:
        if _word(place.token) is not None:
            return place
        bare = _bare(place.token)
        if bare and bare not in _LEAD_WORDS and not _TAG.fullmatch(place.token):
            return None
    return None


def _word(token: str) -> Word | None:
    return _SPELLINGS.get(_bare(token))


def _bare(token: str) -> str:
    """Return a token without marks of tokenizers, punctuation and quotation marks around it, in one case and width."""
    text = _MARKS.sub("", unicodedata.normalize("NFKC", token[:_MOST_TEXT]).strip())
    return _EDGES.sub("", text.casefold())


def _said(text: str) -> Word | None:
    """Return the answer that a text begins with, ``None`` where it has none or names a second one."""
    plain = unicodedata.normalize("NFKC", text[:_MOST_TEXT]).casefold()
    plain = _EDGES.sub("", _TAG.sub(" ", plain))
    plain = _LEAD.sub("", plain, count=1) if _LEAD.match(plain) else plain
    first = re.match(r"不确定|不确|不是|是的|是|否|不|[^\W\d_]+", plain)
    word = None if first is None else _SPELLINGS.get(first[0])
    if first is None or word is None or plain[first.end() : first.end() + 1].isalnum():
        return None
    others = {_SPELLINGS[match[0]] for match in _WORDS.finditer(plain)} - {word}
    return None if others else word
