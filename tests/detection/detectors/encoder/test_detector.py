"""Tests of ``truthlens.detection.detectors.encoder.detector`` with a fixed-weight model in real ONNX."""

from __future__ import annotations

import itertools
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes.tiny_encoder import write_encoder
from truthlens.core.errors import DetectorError
from truthlens.core.records.enums import Aggregation, AnswerKind, Endpoint, Provenance, Reason
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.detectors.encoder.detector import EncoderDetector
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.models.runtime import never

SKY = "The sky above the harbour is blue."
FEES = "Late returns cost two euros a week."
HOT = 1 / (1 + np.exp(-6.0))


@pytest.fixture
def encoder(tmp_path: Path) -> EncoderDetector:
    """A detector that flags Zorblax and Quibble, and thinks that perhaps is likely wrong."""
    return load_encoder(write_encoder(tmp_path / "tiny"))


def detector(folder: Path, *, max_windows: int = 256, **manifest: Any) -> EncoderDetector:
    """The tiny detector with other keys in its manifest."""
    return load_encoder(write_encoder(folder, manifest=manifest), max_windows=max_windows)


def exchange(*passages: str, query: str = "") -> Exchange:
    """An exchange with these passages."""
    return Exchange(
        Endpoint.CHAT, "m", query, tuple(Passage(text, Provenance.DOCUMENTS) for text in passages)
    )


def answer(text: str) -> Answer:
    """A text answer."""
    return Answer(0, AnswerKind.TEXT, text)


def marked(result: DetectorResult, text: str) -> list[str]:
    """The texts of the spans."""
    return [text[span.start : span.end] for span in result.spans]


def test_a_supported_answer_scores_low(encoder: EncoderDetector) -> None:
    """Without a suspicious token there is no span and no score above 0."""
    result = encoder.detect(exchange(SKY), answer("The sky is blue."))
    assert (result.score, result.spans, result.reason) == (0.0, (), None)
    assert result.coverage is not None
    assert result.coverage.complete


def test_a_suspicious_word_is_a_span(encoder: EncoderDetector) -> None:
    """The span points to the word and scores as its token; explaining it is another step."""
    text = "Late returns cost Zorblax euros a week. The sky is blue."
    result = encoder.detect(exchange(SKY, FEES), answer(text))
    assert marked(result, text) == ["Zorblax"]
    assert result.spans[0].score == pytest.approx(HOT)
    assert result.spans[0].passage is None
    assert result.score == pytest.approx(HOT)
    assert dict(result.details) == {
        "model": "tiny",
        "aggregation": "span_noisy_or",
        "max_token": pytest.approx(HOT),
        "top_span": pytest.approx(HOT),
    }


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        (Aggregation.SPAN_MAX, HOT),
        (Aggregation.SPAN_NOISY_OR, 1 - (1 - HOT) ** 2),
        (Aggregation.NOISY_OR, 1 - (1 - HOT) ** 3),
    ],
)
def test_the_aggregation_of_the_plan_is_used(
    encoder: EncoderDetector, aggregation: Aggregation, expected: float
) -> None:
    """Two spans of together three tokens score as the named aggregation says."""
    result = encoder.detect(
        exchange(SKY), answer("Zorblax Quibble is here and Zorblax there."), aggregation=aggregation
    )
    assert result.score == pytest.approx(expected)
    assert result.details["aggregation"] == aggregation


def test_the_manifest_calibrates(tmp_path: Path) -> None:
    """Temperature, tau, exponent and default aggregation come from the manifest."""
    hot = detector(
        tmp_path / "a", temperature=3.0, tau_token=0.6, noisy_or_exponent=0.5, aggregation="noisy_or"
    )
    result = hot.detect(exchange(SKY), answer("It is perhaps Zorblax."))
    p = 1 / (1 + np.exp(-2.0))
    assert result.score == pytest.approx(1 - (1 - p) ** 0.5)
    assert len(result.spans) == 1


def test_the_end_of_a_long_answer_is_scored(encoder: EncoderDetector) -> None:
    """A claim behind hundreds of tokens, far more than a window holds, is found where it stands."""
    text = "The sky is blue. " * 150 + "The sea is Zorblax."
    result = encoder.detect(exchange(SKY), answer(text))
    assert marked(result, text) == ["Zorblax"]
    assert result.spans[0].start == text.index("Zorblax")
    assert result.coverage is not None
    assert result.coverage.answer_tokens == 755
    assert result.coverage.complete


def test_a_bound_that_cuts_is_seen_in_the_coverage(tmp_path: Path) -> None:
    """With fewer windows than the answer needs, coverage says how much was scored."""
    result = detector(tmp_path / "a", max_windows=2).detect(exchange(SKY), answer("The sky is blue. " * 50))
    assert result.score == 0.0
    assert result.coverage is not None
    assert 0 < result.coverage.answer_tokens_scored < result.coverage.answer_tokens == 250
    assert not result.coverage.complete


def test_an_answer_that_no_window_may_hold_is_too_large(tmp_path: Path) -> None:
    """Where the bounds leave nothing to score, there is no score."""
    result = detector(tmp_path / "a", max_windows=0).detect(exchange(SKY), answer("The sky is blue."))
    assert (result.score, result.reason) == (None, Reason.TOO_LARGE)


@pytest.mark.parametrize(
    ("passages", "text", "reason"),
    [
        ((SKY,), "", Reason.EMPTY_ANSWER),
        ((SKY,), " \n", Reason.EMPTY_ANSWER),
        ((SKY,), "\x00\x01", Reason.EMPTY_ANSWER),
        ((), "The sky is Zorblax.", Reason.NO_CONTEXT),
        (("  ",), "The sky is Zorblax.", Reason.NO_CONTEXT),
        ((SKY,), "天空是蓝色的。", Reason.LANGUAGE),
        (("天空是蓝色的。",), "The sky is Zorblax.", Reason.LANGUAGE),
    ],
)
def test_what_cannot_be_scored_says_why(
    encoder: EncoderDetector, passages: tuple[str, ...], text: str, reason: Reason
) -> None:
    """There is a reason and no made-up score."""
    result = encoder.detect(exchange(*passages), answer(text))
    assert (result.score, result.reason, result.spans) == (None, reason, ())


def test_a_model_for_all_languages_reads_everything(tmp_path: Path) -> None:
    """Languages that the manifest does not restrict are scored."""
    result = detector(tmp_path / "a", languages=[]).detect(
        exchange("天空是蓝色的。"), answer("天空是蓝色的。")
    )
    assert result.reason is None
    assert result.score == 0.0


def test_a_foreign_sentence_makes_the_result_partial(encoder: EncoderDetector) -> None:
    """A sentence that the model does not read is not counted as scored."""
    text = "The sky above the old harbour is Zorblax. 天空是蓝色的。"
    result = encoder.detect(exchange(SKY), answer(text))
    assert result.reason is Reason.LANGUAGE
    assert marked(result, text) == ["Zorblax"]
    assert result.coverage is not None
    assert 0 < result.coverage.answer_tokens_scored < result.coverage.answer_tokens


def test_a_foreign_passage_makes_the_result_partial(encoder: EncoderDetector) -> None:
    """Evidence that the model does not read is not counted as seen."""
    result = encoder.detect(exchange(SKY, "天空是蓝色的。"), answer("The sky is blue."))
    assert result.reason is Reason.LANGUAGE
    assert result.score == 0.0
    assert result.coverage is not None
    assert result.coverage.evidence_tokens_seen < result.coverage.evidence_tokens


def test_the_spans_of_json_are_characters_of_the_answer(encoder: EncoderDetector) -> None:
    """Keys, values and nulls are marked where they stand, whatever is written of them for the model."""
    text = '{"Zorblax": "sky", "sky": "blue", "blue": "Zorblax\\u0021", "sky": 9, "Quibble": null}'
    result = encoder.detect(exchange(SKY), answer(text))
    marked_at = [text.index("Zorblax"), text.rindex("Zorblax"), text.index("Quibble")]
    assert [span.start for span in result.spans] == marked_at
    follower = encoder.follow(exchange(SKY))
    ends = [0, *(match.end() for match in re.finditer(r", ", text)), len(text)]
    parts = [*itertools.pairwise(ends)]
    for results in (
        follower.detect_all([answer(text)], [parts], aggregation=None, stop=never)[1:],
        follower.detect_ranges([answer(text)], [parts], aggregation=None, stop=never),
    ):
        assert [len(part.spans) for part in results] == [1, 0, 1, 0, 1]
        assert [part.reason for part in results] == [None] * 5
        assert results[2].spans[0].start == text.rindex("Zorblax")


def test_words_of_the_question_are_content(encoder: EncoderDetector) -> None:
    """In a decline, an offer, a heading or a question; only whole phrases of the closed list are left out."""
    query = "Is Zorblax blue?"
    for text in (
        "**Zorblax**",
        "I don't know about Zorblax.",
        "Would you like to hear more of Zorblax?",
        query,
    ):
        result = encoder.detect(exchange(SKY, query=query), answer(text))
        assert marked(result, text) == ["Zorblax"], text
    result = encoder.detect(exchange(SKY, query=query), answer("I don't know. I hope this helps!"))
    assert (result.score, result.reason) == (None, Reason.EMPTY_ANSWER)


def test_several_answers_get_a_result_each_in_order(encoder: EncoderDetector) -> None:
    """Choices share batches, and neither mix nor hide one another."""
    texts = [
        "The sky is blue.",
        "",
        "It is Zorblax.",
        "天空是蓝色的。",
        "The sky is blue. " * 20 + "Quibble.",
    ]
    together = encoder.detect_all(exchange(SKY), [answer(text) for text in texts])
    alone = [encoder.detect(exchange(SKY), answer(text)) for text in texts]
    assert [result.reason for result in together] == [None, Reason.EMPTY_ANSWER, None, Reason.LANGUAGE, None]
    assert [(r.score, r.spans, r.coverage) for r in together] == [
        (r.score, r.spans, r.coverage) for r in alone
    ]


def test_threads_do_not_disturb_each_other(encoder: EncoderDetector) -> None:
    """Concurrent calls give what single calls give."""
    texts = [f"The sky is {'Zorblax' if number % 3 else 'blue'}. " * number for number in range(1, 25)]
    alone = [encoder.detect(exchange(SKY), answer(text)).score for text in texts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: encoder.detect(exchange(SKY), answer(text)).score, texts))
    assert together == alone


def test_a_stop_ends_the_work(encoder: EncoderDetector) -> None:
    """A detector that is told to stop raises and gives no half result."""
    stop = threading.Event()
    stop.set()
    with pytest.raises(DetectorError):
        encoder.detect(exchange(SKY), answer("The sky is blue."), stop=stop.is_set)


def test_answers_of_one_exchange_are_scored_as_they_would_be_alone(tmp_path: Path) -> None:
    """Choices share the evidence that was read once; their scores, spans and coverage are their own."""
    encoder = load_encoder(write_encoder(tmp_path))
    exchange = Exchange(
        Endpoint.CHAT,
        "m",
        "Where is the lamp?",
        (Passage("The lamp is in the hall. " * 40, Provenance.DOCUMENTS),),
    )
    answers = [
        Answer(number, AnswerKind.TEXT, text)
        for number, text in enumerate(("Perhaps Zorblax is red.", "", "The door is in the hall. " * 30))
    ]
    together = encoder.detect_all(exchange, answers)
    alone = [encoder.detect(exchange, answer) for answer in answers]
    for both, single in zip(together, alone, strict=True):
        assert (both.score, both.spans, both.coverage, both.reason) == (
            single.score,
            single.spans,
            single.coverage,
            single.reason,
        )
    assert together[0].coverage != together[2].coverage
