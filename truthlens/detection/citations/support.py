"""Ask the encoder whether the passages that a sentence cites support it, and which other one does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from truthlens.core.cancellation import StopCheck
from truthlens.core.errors import StoppedError
from truthlens.core.records.enums import AnswerKind
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.detection.citations.report import Report, Sentence
from truthlens.detection.interfaces import Detector

# Each costs one pass of the encoder with a single passage; the rest is left to the detector of the whole answer.
_MOST_SENTENCES = 12
_MOST_OTHERS = 6
_UNSUPPORTED = 0.6
_SUPPORTED = 0.4


@dataclass(frozen=True, slots=True)
class WrongCitation:
    """A sentence whose cited passage ``cited`` does not support it, and the passage ``other`` that does, if one does.

    ``confidence`` is the encoder's score with the cited passages alone, 0..1.
    """

    start: int
    end: int
    cited: int
    other: int | None
    confidence: float


class Support:
    """Checks sentences against passages, one at a time.

    Args:
        encoder: scores a sentence against the passages of an exchange.
    """

    def __init__(self, encoder: Detector) -> None:
        self._encoder = encoder

    def wrong(
        self, exchange: Exchange, answer: Answer, report: Report, *, stop: StopCheck
    ) -> list[WrongCitation]:
        """Return the first sentences whose cited passages do not support them while another passage does.

        What no passage supports is left to the detector of whole answers: it is unsupported, whatever it cites.
        """
        found: list[WrongCitation] = []
        for sentence in [each for each in report.sentences if each.passages and each.factual][
            :_MOST_SENTENCES
        ]:
            score = self._score(exchange, answer, sentence, sentence.passages, stop)
            if score is None or score < _UNSUPPORTED:
                continue
            other = self._other(exchange, answer, sentence, stop)
            if other is not None:
                found.append(WrongCitation(sentence.start, sentence.end, sentence.passages[0], other, score))
        return found

    def _other(self, exchange: Exchange, answer: Answer, sentence: Sentence, stop: StopCheck) -> int | None:
        words = _words(answer.text[sentence.start : sentence.end])
        others = [place for place in range(len(exchange.passages)) if place not in sentence.passages]
        shared = {place: len(words & _words(exchange.passages[place].text[:20_000])) for place in others}
        for place in sorted(others, key=lambda each: -shared[each])[:_MOST_OTHERS]:
            score = self._score(exchange, answer, sentence, (place,), stop) if shared[place] else None
            if score is not None and score <= _SUPPORTED:
                return place
        return None

    def _score(
        self, exchange: Exchange, answer: Answer, sentence: Sentence, places: Iterable[int], stop: StopCheck
    ) -> float | None:
        if stop():
            raise StoppedError
        passages = tuple(exchange.passages[place] for place in places)
        text = answer.text[sentence.start : sentence.end]
        results: Sequence[object] = self._encoder.detect_all(
            replace(exchange, passages=passages),
            [Answer(answer.index, AnswerKind.TEXT, text)],
            aggregation=None,
            stop=stop,
        )
        return getattr(results[0], "score", None)


def _words(text: str) -> set[str]:
    return set(text.lower().split())
