"""Tests of ``truthlens.lab.evaluate.plan_scorer``: the whole list runs, and each detector's part is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.tiny_encoder import write_encoder
from truthlens.core.errors import DetectorError, ModelError
from truthlens.core.records.enums import Aggregation, Reason
from truthlens.core.records.exchange import plain_exchange
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.detection.detectors.citations.report import Options
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.lab.evaluate.plan_scorer import PlanScorer

EVIDENCE = ["The lamp stands in the hall.", "The door of the hall is green."]
ENCODER = DetectorSpec("encoder")
CITATIONS = DetectorSpec("citations", options=Options(require_citations=True))
BOTH = Plan("default", detectors=(ENCODER, CITATIONS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("tiny"))


def test_the_verdict_is_of_all_detectors_and_the_parts_of_each(folder: Path) -> None:
    """An uncited answer with a wrong word: either detector alone says less than both."""
    with PlanScorer(BOTH, folder) as scorer:
        said = scorer("Where is the lamp?", EVIDENCE, "The lamp stands in the Zorblax of the hall.")
    encoder, citations = said.shares
    assert (encoder.name, citations.name) == ("encoder", "citations")
    assert encoder.alone == citations.without
    assert citations.alone == encoder.without
    assert said.score is not None
    assert encoder.alone is not None
    assert citations.alone is not None
    assert said.score == pytest.approx(1 - (1 - encoder.alone) * (1 - citations.alone))
    assert said.score > encoder.alone


def test_one_that_abstains_has_no_part(folder: Path) -> None:
    """Without a duty to cite, citations say nothing of an answer that cites nothing."""
    plan = replace(BOTH, detectors=(ENCODER, replace(CITATIONS, options=Options())))
    with PlanScorer(plan, folder) as scorer:
        encoder, citations = scorer("", EVIDENCE, "The lamp stands in the hall.").shares
    assert (citations.abstained, citations.alone) == (True, None)
    assert encoder.alone == citations.without
    assert encoder.without is None


@pytest.mark.parametrize("aggregation", Aggregation)
def test_scores_and_readings_are_those_of_the_encoder(folder: Path, aggregation: Aggregation) -> None:
    """With the encoder alone a plan that names an aggregation scores as its detector does under it."""
    answer = "The lamp stands in the Zorblax hall, perhaps beside the Quibble door."
    detector = load_encoder(folder)
    exchange, asked = plain_exchange("", EVIDENCE, answer)
    with PlanScorer(Plan("default", aggregation=aggregation, detectors=(ENCODER,)), folder) as scorer:
        said = scorer("", EVIDENCE, answer)
    assert said.score == detector.detect(exchange, asked, aggregation=aggregation).score
    reading = said.reading([])
    assert reading is not None
    assert reading.scores[aggregation] == pytest.approx(said.score)


def test_support_checks_do_not_disturb_the_reading(folder: Path) -> None:
    """Where citations ask the encoder again, the reading is still that of the whole answer, which has no marks for the encoder."""
    options = Options(require_citations=True, check_support=True)
    plan = replace(
        BOTH, detectors=(replace(CITATIONS, options=options), ENCODER, replace(CITATIONS, options=options))
    )
    answer = "The lamp stands in the Zorblax of the hall [1]. The door of the hall is green [2]."
    with PlanScorer(plan, folder) as scorer:
        said = scorer("", EVIDENCE, answer)
        reading = said.reading([])
    assert said.served is not None
    assert said.served.text == answer.replace(" [1]", "").replace(" [2]", "")
    assert reading is not None
    assert len(reading.p) > 16


def test_a_plan_without_the_encoder_needs_no_model(tmp_path: Path) -> None:
    """Nothing is loaded, and there are no token scores."""
    with PlanScorer(replace(BOTH, detectors=(CITATIONS,)), tmp_path / "nowhere") as scorer:
        said = scorer("", EVIDENCE, "The lamp stands in the hall of the house.")
        assert scorer.encoder is None
    assert said.score is not None
    assert said.reading([]) is None


def test_an_answer_that_nothing_runs_on_has_no_parts(folder: Path) -> None:
    """No evidence: unchecked, with its reason."""
    with PlanScorer(BOTH, folder) as scorer:
        said = scorer("", [], "The lamp stands in the hall.")
    assert (said.score, said.verdict.reason, said.shares) == (None, Reason.NO_CONTEXT, ())
    assert said.reading([]) is None


def test_a_detector_that_fails_ends_the_evaluation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its figures would be those of the others alone."""
    with PlanScorer(Plan("default"), folder) as scorer:
        assert scorer.encoder is not None

        def fail(*_: object, **__: object) -> None:
            raise ValueError

        monkeypatch.setattr(scorer.encoder, "detect_all", fail)
        with pytest.raises(
            DetectorError, match=r"encoder failed on an answer: detector-error \(ValueError\)"
        ):
            scorer("", EVIDENCE, "The lamp stands in the hall.")


def test_a_missing_model_is_an_error(tmp_path: Path) -> None:
    """When the plan's encoder cannot be loaded."""
    with pytest.raises(ModelError):
        PlanScorer(Plan("default"), tmp_path)
