"""Ask the encoder whether the passages that a sentence cites support it, and which other one does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from truthlens.core.cancellation import StopCheck
from truthlens.core.errors import StoppedError
from truthlens.core.records.enums import AnswerKind
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.detection.detectors.citations.report import CitationReport
from truthlens.detection.interfaces import Detector
from truthlens.detection.plain_answers import PlainAnswers

# Each costs one pass of the encoder with a single passage; the rest is left to the detector of the whole answer.
_MOST_SENTENCES = 12
_MOST_OTHERS = 6
# A sentence alone with one short passage scores near the middle; which passage supports it best shows all the same.
_UNSUPPORTED = 0.5
_BETTER_BY = 0.15


@dataclass(frozen=True, slots=True)
class WrongCitation:
    """A sentence whose cited passages do not support it, and the passage ``other`` that does.

    ``confidence`` is the encoder's score with the cited passages alone, 0..1.
    """

    start: int
    end: int
    other: int
    confidence: float


class Support:
    """Checks sentences against passages, one at a time.

    Args:
        encoder: scores a sentence against the passages of an exchange.
    """

    def __init__(self, encoder: Detector) -> None:
        self._encoder = encoder

    def wrong(
        self, exchange: Exchange, answer: Answer, report: CitationReport, *, stop: StopCheck
    ) -> list[WrongCitation]:
        """Return the first sentences whose cited passages do not support them while another passage does.

        What no passage supports is left to the detector of whole answers: it is unsupported, whatever it cites.
        """
        plain = PlainAnswers(exchange).of(answer)
        found: list[WrongCitation] = []
        for sentence in [each for each in report.sentences if each.passages and each.factual][
            :_MOST_SENTENCES
        ]:
            read = plain.reading
            text = read.text[read.place(sentence.start) : read.place(sentence.end)]
            asked = replace(answer, kind=AnswerKind.TEXT, text=text)
            score = self._score(exchange, asked, sentence.passages, stop)
            if score is None or score < _UNSUPPORTED:
                continue
            other = self._other(exchange, asked, sentence.passages, score - _BETTER_BY, stop)
            if other is not None:
                found.append(WrongCitation(sentence.start, sentence.end, other, score))
        return found

    def _other(
        self, exchange: Exchange, asked: Answer, cited: Sequence[int], most: float, stop: StopCheck
    ) -> int | None:
        """Return the first passage that supports the sentence, with a score of at most ``most`` and below the middle."""
        words = _words(asked.text)
        others = [place for place in range(len(exchange.passages)) if place not in cited]
        shared = {place: len(words & _words(exchange.passages[place].text[:20_000])) for place in others}
        for place in sorted(others, key=lambda each: -shared[each])[:_MOST_OTHERS]:
            score = self._score(exchange, asked, (place,), stop) if shared[place] else None
            if score is not None and score <= min(most, _UNSUPPORTED):
                return place
        return None

    def _score(
        self, exchange: Exchange, asked: Answer, places: Iterable[int], stop: StopCheck
    ) -> float | None:
        if stop():
            raise StoppedError
        passages = tuple(exchange.passages[place] for place in places)
        (result,) = self._encoder.detect_all(
            replace(exchange, passages=passages), [asked], aggregation=None, stop=stop
        )
        return result.score


def _words(text: str) -> set[str]:
    return set(text.lower().split())
