"""Tests of ``truthlens.lab.evaluate.served_encoder``: token scores read back are those that the detector served."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.fakes.tiny_encoder import write_encoder
from truthlens.core.errors import DetectorError
from truthlens.core.records.enums import Aggregation, AnswerKind, Endpoint, Provenance, Reason
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.lab.evaluate.served_encoder import ServedEncoder, load_served

EVIDENCE = "The lamp stands in the hall beside the green door. " * 12
ANSWER = (
    "Based on the passages, Zorblax keeps the lamp in the hall, and perhaps the green door was painted by Quibble. "
    "The lamp stands beside it, the door is green, the hall is long, and perhaps nobody knows who Zorblax is."
)
SETTINGS = {
    "temperature": 2.0,
    "tau_token": 0.1,
    "tau_span": 0.3,
    "format": 2,
    "response": {"noisy_or": {"slope": 0.8, "worst": 0.2, "intercept": -1.0, "sure": 8.0}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with a temperature and limits of its own, whose answers take several chunks."""
    return write_encoder(tmp_path_factory.mktemp("tiny"), manifest=SETTINGS)


@pytest.fixture(scope="module")
def encoder(folder: Path) -> ServedEncoder:
    return load_served(folder)


@pytest.mark.parametrize("evidence", ["select", "windows"])
def test_readings_are_what_the_detector_serves(tmp_path: Path, evidence: str) -> None:
    """Under every aggregation the score read back is the one that the detector gives when asked for it."""
    sizes = {
        "max_tokens": 64,
        "answer_tokens": 16,
        "answer_overlap": 4,
        "segment_ids": True,
        "evidence": evidence,
    }
    folder = write_encoder(tmp_path, manifest={**SETTINGS, "input": sizes})
    said = load_served(folder)("Where is the lamp?", [EVIDENCE, " ", EVIDENCE], ANSWER)
    assert len(said.windows) > 2
    reading = said.reading([])
    assert reading is not None
    detector = load_encoder(folder)
    exchange = Exchange(
        Endpoint.CHAT, "", "Where is the lamp?", (Passage(EVIDENCE, Provenance.DOCUMENTS),) * 2
    )
    for aggregation in Aggregation:
        served = detector.detect(exchange, Answer(0, AnswerKind.TEXT, ANSWER), aggregation=aggregation)
        assert reading.scores[aggregation] == pytest.approx(served.score, abs=1e-9)
        assert reading.spans[:, 0].tolist() == pytest.approx([span.score for span in served.spans])
        assert float(reading.p.max()) == pytest.approx(served.details["max_token"])
    assert len(reading.spans) == 2


def test_tokens_and_spans_stand_beside_the_marks(encoder: ServedEncoder) -> None:
    """A token is gold where it overlaps a mark, a span is right where it does."""
    start = ANSWER.index("Zorblax")
    reading = encoder("", [EVIDENCE], ANSWER).reading([(start + 2, start + 3)])
    assert reading is not None
    assert reading.gold is not None
    assert int(reading.gold.sum()) == 1
    assert float(reading.p[reading.gold][0]) > 0.9
    assert reading.spans[:, 1].tolist() == [1.0, 0.0]


def test_a_sentence_that_claims_nothing_has_tokens_of_score_zero(encoder: ServedEncoder) -> None:
    """A phrase of the closed list is read as served: 0, not the model's background."""
    alone = encoder("", [EVIDENCE], ANSWER).reading(None)
    after = encoder("", [EVIDENCE], f"I hope this helps! {ANSWER}").reading(None)
    assert alone is not None
    assert after is not None
    phrase = len(after.p) - len(alone.p)
    assert after.p[:phrase].tolist() == [0.0] * phrase
    assert float(after.p[phrase:].min()) > 0.0


def test_without_marks_nothing_is_gold(encoder: ServedEncoder) -> None:
    """Unmarked is not the same as marked with nothing."""
    said = encoder("", [EVIDENCE], ANSWER)
    unmarked, clean = said.reading(None), said.reading([])
    assert unmarked is not None
    assert clean is not None
    assert clean.gold is not None
    assert unmarked.gold is None
    assert np.isnan(unmarked.spans[:, 1]).all()
    assert not clean.gold.any()
    assert clean.spans[:, 1].tolist() == [0.0] * 2


def test_an_answer_without_a_score_has_no_reading(encoder: ServedEncoder) -> None:
    """Nothing was scored, so nothing is read, and nothing of the answer before it either."""
    encoder("", [EVIDENCE], ANSWER)
    said = encoder("", [], ANSWER)
    assert (said.score, said.result.reason) == (None, Reason.NO_CONTEXT)
    assert (said.reading([]), list(said.windows)) == (None, [])


def test_a_sentence_in_another_script_is_read_as_unscored(encoder: ServedEncoder) -> None:
    """What the model cannot read has score 0 in the reading, as in what was served."""
    text = f"{ANSWER} Лампа стоит в зале."
    reading = encoder("", [EVIDENCE], text).reading([])
    assert reading is not None
    assert reading.p[-4:].tolist() == [0.0] * 4


def test_a_reading_that_differs_from_what_was_served_is_an_error(encoder: ServedEncoder) -> None:
    """Figures of another model than the served one are worse than none."""
    said = encoder("", [EVIDENCE], ANSWER)
    other = replace(said, manifest=said.manifest.model_copy(update={"temperature": 1.0}))
    with pytest.raises(DetectorError, match="served were"):
        other.reading([])


def test_byte_pair_tokens_count_without_their_space() -> None:
    """A mark that ends where a token's leading space begins does not make the token gold."""
    from truthlens.lab.evaluate.served_encoder import _overlapping, _trimmed

    offsets = np.array([[0, 3], [3, 7]])
    assert _trimmed(offsets, "abc def").tolist() == [[0, 3], [4, 7]]
    assert _overlapping(_trimmed(offsets, "abc def"), [(0, 4)]).tolist() == [True, False]


def test_readings_of_json_are_what_the_detector_serves(encoder: ServedEncoder) -> None:
    """Keys and values are scored, and the tokens that are read back point into the answer."""
    text = '{"lamp": "Zorblax", "door": "green", "hall": 48000, "id": "Quibble"}'
    served = encoder("", [EVIDENCE], text)
    start = text.index("Zorblax")
    reading = served.reading([(start, start + len("Zorblax"))])
    assert reading is not None
    assert reading.gold is not None
    assert reading.gold.any()
    assert [text[span.start : span.end] for span in served.spans] == ["Zorblax", "Quibble"]
