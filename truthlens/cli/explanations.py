"""An explanation as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from truthlens.core.records.exchange import Passage
from truthlens.core.records.explanation import Difference
from truthlens.core.records.verdict import Mark

_LONGEST = 160


def explanation_lines(mark: Mark, response: str, passages: Sequence[Passage]) -> Iterator[str]:
    """Yield kind, confidence and reason, every difference, the nearest sentence; nothing if unexplained.

    Args:
        mark: what is shown of spans of ``response``.
        response: the answer.
        passages: the exchange's passages.
    """
    span = mark.telling
    explanation = span.explanation
    if explanation is None:
        return
    yield f"{explanation.kind.value} ({explanation.confidence:.2f}): {explanation.reason}"
    passage = passages[span.passage].text if span.passage is not None else ""
    for difference in mark.differences:
        yield _difference(difference, response, passage)
    if span.passage is not None and explanation.sentence is not None:
        start, end = explanation.sentence
        shown = _short(passage[start:end])
        yield f"nearest: passage {span.passage + 1}, similarity {explanation.similarity:.2f}: {shown}"


def _difference(difference: Difference, response: str, passage: str) -> str:
    own = _short(response[difference.start : difference.end])
    if difference.evidence is None:
        return f"{difference.kind.value}: {own}, which stands nowhere in the evidence"
    start, end = difference.evidence
    return f"{difference.kind.value}: {own}, in the evidence {_short(passage[start:end])}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
