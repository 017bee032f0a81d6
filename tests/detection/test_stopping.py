"""Detection's own loops ask whether anybody still waits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from truthlens.core.cancellation import stopping
from truthlens.core.errors import StoppedError
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.verdict import Span, Verdict
from truthlens.detection.explain.explainer import explained
from truthlens.detection.models.inputs.lexical import evidence_words, index_evidence, token_features
from truthlens.text.sentences import sentences
from truthlens.text.words import words

TEXT = "Tea is free. Milk costs two euros. " * 200
UNITS = evidence_words(TEXT)
INDEX = index_evidence(UNITS)
OFFSETS = np.array([(word.start, word.end) for word in words(TEXT)], dtype=np.int64)
EXCHANGE = Exchange(Endpoint.CHAT, "", "", (Passage(TEXT, Provenance.DOCUMENTS),))
SPANS = tuple(Span(start, end, 0.9) for start, end in sentences(TEXT))
LOOPS: dict[str, Callable[[], object]] = {
    "words": lambda: words(TEXT),
    "sentences": lambda: sentences(TEXT),
    "index": lambda: index_evidence(UNITS),
    "features": lambda: token_features(INDEX, answer=TEXT, offsets=OFFSETS, query=""),
    "explanations": lambda: explained(
        EXCHANGE,
        [Answer(0, AnswerKind.TEXT, TEXT)],
        [Verdict(Status.CHECKED, score=0.9, threshold=0.5, spans=SPANS)],
    ),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("steps", [0, 40])
def test_a_loop_ends_at_the_step_at_which_it_is_told_to(name: str, steps: int) -> None:
    """Not when it is through; and untold, it gets through."""
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > steps

    with stopping(stop), pytest.raises(StoppedError):
        LOOPS[name]()
    assert asked == steps + 1
    LOOPS[name]()
