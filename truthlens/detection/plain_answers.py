"""Give detectors the answers of one exchange without citation marks and lists of sources, and put their findings back in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.verdict import Coverage, DetectorResult
from truthlens.detection.citation_sources import Sources
from truthlens.detection.interfaces import Ranges
from truthlens.text.citations import Labels
from truthlens.text.without_citations import Cut, Marks, Unmarked, find_marks


@dataclass(frozen=True, slots=True)
class PlainAnswer:
    """An answer as a detector reads it; ``reading`` tells where its characters stand in the answer as it was written."""

    answer: Answer
    reading: Unmarked

    def placed(self, result: DetectorResult) -> DetectorResult:
        """Return a result on the plain answer with its places in the answer as it was written."""
        return result.moved(self.reading.start, self.reading.end)


class PlainAnswers:
    """Reads the answers of one exchange, whole or while they grow; its sources are read when a bracket comes.

    Args:
        exchange: query and passages.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self._labels = Labels(self._knows, self._resembles, self._is_id)
        # By answer: its text, the cuts that stay whatever follows, and those of the rest.
        self._read: dict[int, tuple[str, tuple[Cut, ...], Marks]] = {}

    def seen_by(self, detector: object, answers: Sequence[Answer]) -> list[PlainAnswer]:
        """Return the answers as a detector reads them: as they are where it says that it ``reads_marks``."""
        if getattr(detector, "reads_marks", False):
            return [PlainAnswer(answer, Unmarked(answer.text, ())) for answer in answers]
        return [self.of(answer) for answer in answers]

    def of(self, answer: Answer) -> PlainAnswer:
        """Return an answer without its marks; of one that has grown, only what may have changed is read again."""
        text = answer.text
        before, settled, marks = self._read.get(answer.index, ("", (), Marks()))
        if text != before:
            if not text.startswith(before):
                settled, marks = (), Marks()
            settled = (*settled, *(cut for cut in marks.cuts if cut.end <= marks.settled))
            most = len(self.exchange.passages)
            marks = find_marks(text, self._labels, most=most, start=marks.settled, fence=marks.fence)
            self._read[answer.index] = (text, settled, marks)
        reading = Unmarked(text, (*settled, *marks.cuts))
        return PlainAnswer(answer if reading.text == text else replace(answer, text=reading.text), reading)

    def reading(self, answer: Answer) -> Unmarked | None:
        """Return the answer without its marks, ``None`` where it has none."""
        plain = self.of(answer)
        return None if plain.answer is answer else plain.reading

    def shortened(self, answer: Answer) -> Answer:
        """Return an answer of the length that it had without the marks that are known of it: cheap, for counts of characters."""
        _, settled, marks = self._read.get(answer.index, ("", (), Marks()))
        known = sum(cut.end - cut.start - len(cut.filler) for cut in (*settled, *marks.cuts))
        return replace(answer, text=answer.text[known:]) if known else answer

    def _knows(self, label: str) -> bool:
        return self._sources.knows(label)

    def _resembles(self, label: str) -> bool:
        return self._sources.resembles(label)

    def _is_id(self, label: str) -> bool:
        return self._sources.is_id(label)

    @cached_property
    def _sources(self) -> Sources:
        return Sources(self.exchange)


class PlainParts:
    """The answers and parts of them that a detector is asked about, and its results put back in place.

    A part of marks alone is not asked about: nothing in it can be false.

    Args:
        plain: the answers.
        ranges: the parts of each, in characters of the answers as they were written.
    """

    def __init__(self, plain: Sequence[PlainAnswer], ranges: Sequence[Ranges]) -> None:
        self._plain = plain
        self._parts = [
            (each, (each.reading.place(start), each.reading.place(end)))
            for each, own in zip(plain, ranges, strict=True)
            for start, end in own
        ]
        self.answers = [each.answer for each in plain]
        self.ranges = [
            [part for owner, part in self._parts if owner is each and _holds_text(each, part)]
            for each in plain
        ]

    def placed_answers(self, results: Sequence[DetectorResult]) -> list[DetectorResult]:
        """Return the results on the answers, one each."""
        return [each.placed(result) for each, result in zip(self._plain, results, strict=True)]

    def placed_parts(self, detector: str, results: Sequence[DetectorResult]) -> list[DetectorResult]:
        """Return the results on the parts, one for each range that was asked for."""
        asked = iter(results)
        found = [
            owner.placed(next(asked))
            if _holds_text(owner, part)
            else DetectorResult(detector, 0.0, coverage=Coverage(0, 0, 0, 0))
            for owner, part in self._parts
        ]
        if next(asked, None) is not None:
            raise ValueError("more results than parts")
        return found


def _holds_text(plain: PlainAnswer, part: tuple[int, int]) -> bool:
    return bool(plain.answer.text[slice(*part)].strip())
