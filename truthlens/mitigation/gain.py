"""Compare a candidate with the best answer so far, by its verdict and by what it took out.

A lower score alone proves little: where scores saturate, an answer with one more invention may come out a
hair below the answer without it, and an answer with one less a hair above. So a candidate must have
taken findings out and brought none in, or score lower by a margin that means something at that height; and
what leaves every finding in place and adds to it is never better.
"""

from __future__ import annotations

import asyncio
import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, chain, islice

from truthlens.core.records.enums import Status
from truthlens.core.records.mitigation_result import CandidateFate
from truthlens.core.records.verdict import Verdict
from truthlens.text.scripts import UNSPACED
from truthlens.text.sentences import sentences
from truthlens.text.spans import touching
from truthlens.text.word_forms import STOP_WORDS

UNSCORED = "unscored"
LESS_CHECKED = "less-checked"
SMALL_GAIN = "small-gain"
NOTHING_REMOVED = "nothing-removed"

LEAST_GAIN = 0.03
"""By how much a text must score lower than an answer that is not flagged: below it, on real answers, swaps did about as
often harm as good and cost supported text (docs/mitigation-figures.md)."""

LEAST_LOGIT_GAIN = math.log(1.5)
"""By how much the log-odds of a flagged answer must fall where its findings tell nothing: its odds, by a third."""

# Nearer to 0 or 1, scores of the same findings differ by how the rest is worded; nearer than the second, by rounding.
_LEAST, _ROUNDING = 0.01, 1e-9
# Windows of another text never fall quite alike.
_COVERAGE_SLACK = 0.05
_COMPLETENESS = {Status.CHECKED: 2, Status.PARTIAL: 1}
_WORD = re.compile(rf"[^\W_]+(?:[.,:/-]\d+)*|[{UNSPACED}]")
# What is looked at of answers that hold the same words, or findings, over and over.
_MOST_FINDINGS = 500
_MOST_PLACES = 200
_AT_ONCE_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class ScoredDraft:
    """A text with its verdict; ``replaced`` where it contains another model's words."""

    text: str
    verdict: Verdict
    replaced: bool = False


async def weighed(candidate: ScoredDraft, best: ScoredDraft, *, first: Verdict) -> tuple[CandidateFate, str]:
    """Return ``fate_of``, computed on a thread for long texts so that other exchanges are not held up."""
    if len(candidate.text) + len(best.text) <= _AT_ONCE_CHARS:
        return fate_of(candidate, best, first=first)
    return await asyncio.to_thread(fate_of, candidate, best, first=first)


def fate_of(candidate: ScoredDraft, best: ScoredDraft, *, first: Verdict) -> tuple[CandidateFate, str]:
    """Return what becomes of a candidate that was scored, and the code of the reason where it is not taken.

    Args:
        candidate: another text than the best one.
        best: the text to beat.
        first: the verdict on the backend's own answer, which says how completely a candidate has to be
            checked.
    """
    score, to_beat = candidate.verdict.score, best.verdict.score
    if candidate.verdict.claims_nothing and best.verdict.flagged:
        # To say no more than that it does not know is better than to be wrong.
        return CandidateFate.BETTER, ""
    if score is None or to_beat is None:
        return CandidateFate.REJECTED, UNSCORED
    if less_checked(candidate.verdict, first):
        return CandidateFate.REJECTED, LESS_CHECKED
    if score > to_beat and to_beat <= 1.0 - _LEAST:
        return CandidateFate.WORSE, ""
    old, new = _Findings(best), _Findings(candidate)
    removed, brought = old.exceed(new), new.exceed(old)
    gains = removed and not brought
    # A saturated score falls no more, and may rise by how the rest is worded.
    if score >= to_beat and not (gains and new.count):
        return CandidateFate.WORSE, ""
    if (brought and not removed) or (
        best.verdict.flagged and _holds_all(candidate.text, new, best.text, old)
    ):
        return CandidateFate.REJECTED, NOTHING_REMOVED
    if best.verdict.flagged:
        # Fewer findings than before make a fall of saturated scores mean something.
        least = _ROUNDING if new.count < old.count else _LEAST
        is_clear = gains or logit(to_beat, least=least) - logit(score, least=least) >= LEAST_LOGIT_GAIN
    else:
        is_clear = to_beat - score >= LEAST_GAIN
    return (CandidateFate.BETTER, "") if is_clear else (CandidateFate.REJECTED, SMALL_GAIN)


def less_checked(verdict: Verdict, first: Verdict) -> bool:
    """Return whether ``verdict`` has a lower status than ``first``, or covers clearly less of the tokens."""
    if _COMPLETENESS.get(verdict.status, 0) < _COMPLETENESS.get(first.status, 0):
        return True
    if verdict.status is Status.CHECKED or verdict.coverage is None or first.coverage is None:
        return False
    return (
        verdict.coverage.read_ratio < first.coverage.read_ratio - _COVERAGE_SLACK
        or verdict.coverage.evidence_ratio < first.coverage.evidence_ratio - _COVERAGE_SLACK
    )


class _Findings:
    """The content words of a text, in order and joined, and those of each flagged stretch."""

    def __init__(self, draft: ScoredDraft) -> None:
        placed = [
            (match.start(), match.end(), match[0].casefold())
            for match in _WORD.finditer(draft.text)
            if match[0].casefold() not in STOP_WORDS
        ]
        marked = touching(
            [(start, end) for start, end, _ in placed],
            ((span.start, span.end) for span in draft.verdict.spans),
        )
        starts, ends = [start for start, _, _ in placed], [end for _, end, _ in placed]
        # Two detectors that mark the same words have found the same.
        places = {
            (bisect_right(ends, span.start), bisect_left(starts, span.end)): None
            for span in draft.verdict.spans
        }
        found = Counter(
            _joined([word for _, _, word in placed[first:last]]) for first, last in places if first < last
        )
        self.count = found.total()
        self.found = dict(islice(found.items(), _MOST_FINDINGS))
        self.words = _joined([word for _, _, word in placed])
        # By character of the joined words, how many flagged ones stand before it.
        flagged = (
            [is_marked] * (len(word) + 1) for (_, _, word), is_marked in zip(placed, marked, strict=True)
        )
        self._flagged = [0, *accumulate(chain.from_iterable(flagged)), 0]
        self._flagged[-1] = self._flagged[-2]

    def times(self, words: str, *, most: int) -> int:
        """Return how often ``words`` occur in the text with one of them flagged; ``most`` where that is often enough."""
        times, place = 0, self.words.find(words)
        for _ in range(_MOST_PLACES):
            if place < 0 or times == most:
                return times
            times += self._flagged[place + len(words) - 1] > self._flagged[place]
            place = self.words.find(words, place + 1)
        return most

    def exceed(self, other: _Findings) -> bool:
        """Return whether of any of them the words are not in ``other``, or there unflagged, or flagged less often."""
        return any(other.times(words, most=times) < times for words, times in self.found.items())


def _holds_all(text: str, new: _Findings, best: str, old: _Findings) -> bool:
    return old.words in new.words or _sentences(best) <= _sentences(text)


def _joined(words: list[str]) -> str:
    # Between separators, so that "9" is not found in "19".
    return "".join(f"\n{word}" for word in words) + "\n"


def _sentences(text: str) -> Counter[str]:
    found = (" ".join(text[start:end].casefold().split()) for start, end in sentences(text))
    return Counter(each.rstrip(".。!！;；") for each in found)


def logit(score: float, *, least: float) -> float:
    """Return the log-odds of ``score``, held between ``least`` and 1 less that."""
    held = min(max(score, least), 1.0 - least)
    return math.log(held / (1.0 - held))
