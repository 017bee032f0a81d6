"""What the bundled encoder makes of right and of exchanged citations."""

from __future__ import annotations

import pytest

from tests.detection.detectors.citations.support_set import CITED, PASSAGES
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.explanation import SpanKind
from truthlens.detection.detectors.citations.detector import CitationDetector
from truthlens.detection.detectors.citations.report import Options
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.process.settings import models_folder

EXCHANGE = Exchange(
    Endpoint.CHAT,
    "m",
    "What are the rules?",
    tuple(Passage(text, Provenance.TOOL, id=label) for label, text in PASSAGES.items()),
)


@pytest.fixture(scope="module")
def detector() -> CitationDetector:
    return CitationDetector(
        Options(check_support=True), load_encoder(models_folder() / "truthlens-minilm-en-v2")
    )


def accused(detector: CitationDetector, sentence: str, label: str, form: str) -> bool:
    answer = Answer(0, AnswerKind.TEXT, form.format(sentence.rstrip("."), label))
    (found,) = detector.detect_all(EXCHANGE, [answer], aggregation=None, stop=lambda: False)
    kinds = [span.explanation.kind for span in found.spans if span.explanation is not None]
    return SpanKind.WRONG_CITATION in kinds


@pytest.mark.parametrize("form", ["{} [{}].", "{}. [{}]"])
def test_exchanged_citations_are_found_and_right_ones_left_alone(
    detector: CitationDetector, form: str
) -> None:
    """At least eight of ten that name another passage; at most one of ten that name the right one."""
    assert sum(accused(detector, sentence, wrong, form) for sentence, _, wrong in CITED) >= 8
    assert sum(accused(detector, sentence, right, form) for sentence, right, _ in CITED) <= 1
