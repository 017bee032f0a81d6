"""Find what is shown of the spans of detectors: the phrase or clause around each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from truthlens.core.errors import StoppedError
from truthlens.core.records.exchange import Answer
from truthlens.core.records.verdict import DetectorResult
from truthlens.text.claims.phrases import phrases_around


def with_shown(
    results: Sequence[DetectorResult],
    answers: Sequence[Answer],
    *,
    failed: Callable[[Exception], None] | None = None,
) -> list[DetectorResult]:
    """Return the results on ``answers``, one each, with ``shown`` set in their spans.

    A detector that says itself what is to be shown of a span keeps its word. Nothing that is measured changes: neither
    scores nor what the spans mark. Where the phrases of an answer cannot be found, its result stays as it is and ``failed``
    is told why. CPU-bound; keep it off the event loop.

    Raises:
        StoppedError: nobody waits for the results any more.
    """
    found: list[DetectorResult] = []
    for result, answer in zip(results, answers, strict=True):
        try:
            found.append(_with_shown(result, answer.text))
        except StoppedError:
            raise
        except Exception as error:  # noqa: BLE001 - it costs what people read of a verdict, never the verdict
            found.append(result)
            if failed is not None:
                failed(error)
    return found


def _with_shown(result: DetectorResult, text: str) -> DetectorResult:
    open_spans = [span for span in result.spans if span.shown is None]
    if not open_spans:
        return result
    phrases = iter(phrases_around(text, [(span.start, span.end) for span in open_spans]))
    spans = tuple(replace(span, shown=next(phrases)) if span.shown is None else span for span in result.spans)
    return replace(result, spans=spans)
