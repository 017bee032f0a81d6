"""Compare a candidate with the best answer so far, by its verdict and by what it took out.

A lower score alone proves little: where scores saturate, an answer with one more invention may come out a
hair below the answer without it. So a candidate must have taken findings out and brought none in, or score
lower by a margin that means something at that height; and what leaves every finding in place and adds to it
is never better.
"""

from __future__ import annotations

import asyncio
import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, chain

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

# Beyond these, scores differ by rounding, not by what was written.
_LEAST, _MOST = 0.01, 0.99
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
    if score is None or to_beat is None:
        return CandidateFate.REJECTED, UNSCORED
    if less_checked(candidate.verdict, first):
        return CandidateFate.REJECTED, LESS_CHECKED
    if score >= to_beat:
        return CandidateFate.WORSE, ""
    old, new = _Findings(best), _Findings(candidate)
    # A finding is gone where its words are no longer in the candidate, or are there unflagged; it is an old
    # one where its words are in the best text and touch a finding there.
    removed = any(not new.flags(words) for words in old.found)
    brought = any(not old.flags(words) for words in new.found)
    adds = best.verdict.flagged and (
        old.words in new.words or _sentences(best.text) <= _sentences(candidate.text)
    )
    if adds or (brought and not removed):
        return CandidateFate.REJECTED, NOTHING_REMOVED
    if not best.verdict.flagged:
        is_clear = to_beat - score >= LEAST_GAIN
    else:
        is_clear = (removed and not brought) or _logit(to_beat) - _logit(score) >= LEAST_LOGIT_GAIN
    return (CandidateFate.BETTER, "") if is_clear else (CandidateFate.REJECTED, SMALL_GAIN)


def less_checked(verdict: Verdict, first: Verdict) -> bool:
    """Return whether ``verdict`` has a lower status than ``first``, or covers clearly less of the tokens."""
    if _COMPLETENESS.get(verdict.status, 0) < _COMPLETENESS.get(first.status, 0):
        return True
    if verdict.status is Status.CHECKED or verdict.coverage is None or first.coverage is None:
        return False
    return (
        verdict.coverage.answer_ratio < first.coverage.answer_ratio - _COVERAGE_SLACK
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
        starts = [start for start, _, _ in placed]
        found: dict[str, None] = {}
        for span in draft.verdict.spans:
            first = max(bisect_right(starts, span.start) - 1, 0)
            last = bisect_left(starts, span.end)
            if within := [word for start, end, word in placed[first:last] if end > span.start]:
                found[_joined(within)] = None
        self.found = list(found)[:_MOST_FINDINGS]
        self.words = _joined([word for _, _, word in placed])
        # By character of the joined words, how many flagged ones stand before it.
        flagged = (
            [is_marked] * (len(word) + 1) for (_, _, word), is_marked in zip(placed, marked, strict=True)
        )
        self._flagged = [0, *accumulate(chain.from_iterable(flagged)), 0]
        self._flagged[-1] = self._flagged[-2]

    def flags(self, words: str) -> bool:
        """Return whether ``words`` occur in the text with one of them flagged."""
        place = self.words.find(words)
        for _ in range(_MOST_PLACES):
            if place < 0:
                return False
            if self._flagged[place + len(words) - 1] > self._flagged[place]:
                return True
            place = self.words.find(words, place + 1)
        return True


def _joined(words: list[str]) -> str:
    # Between separators, so that "9" is not found in "19".
    return "".join(f"\n{word}" for word in words) + "\n"


def _sentences(text: str) -> Counter[str]:
    found = (" ".join(text[start:end].casefold().split()) for start, end in sentences(text))
    return Counter(each.rstrip(".。!！;；") for each in found)


def _logit(score: float) -> float:
    held = min(max(score, _LEAST), _MOST)
    return math.log(held / (1.0 - held))
