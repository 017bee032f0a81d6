"""Answers that the encoder does not read: unchecked, or partial where rules judged them, and never clean."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.detectors import FixedDetector, WordDetector, scored
from tests.fakes.engines import engine_of
from tests.fakes.tiny_encoder import write_encoder
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Reason, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.verdict import Verdict
from truthlens.delivery.headers import headers, worst
from truthlens.detection.detectors.citations.detector import CitationDetector
from truthlens.detection.detectors.citations.report import Options
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.detectors.numbers.detector import NumberDetector
from truthlens.detection.detectors.numbers.options import Options as NumberOptions
from truthlens.detection.engine import Engine
from truthlens.detection.interfaces import Detector

ENGLISH = "The fee for a transfer within the country is twelve dollars."
GERMAN = "Die Gebühr für eine Überweisung beträgt zwölf Euro, und sie wird sofort fällig."
CHINESE = "国内电汇费用为七十五美元。"
HINDI = "सभी सदस्यों के लिए शुल्क बारह यूरो है। अनुबंध दो साल बाद समाप्त होता है।"
EXCHANGE = Exchange(
    Endpoint.CHAT, "m", "What is the fee?", (Passage(ENGLISH, Provenance.DOCUMENTS, id="S0"),)
)
PLAN = Plan("p", threshold=0.6, timeout_s=30.0, detectors=(DetectorSpec("encoder"), DetectorSpec("rules")))
# Judges the figures of answers in any language: 75 is wrong, 12 is right; without a figure it abstains.
FIGURES = WordDetector({"75": 0.9, "12": 0.0}, otherwise=None)


@pytest.fixture
def encoder(tmp_path: Path) -> Detector:
    return load_encoder(write_encoder(tmp_path / "tiny"))


def rules_of(encoder: Detector, rule: Detector = FIGURES) -> Engine:
    return engine_of({None: encoder}, detectors={"rules": rule})


def answer(text: str) -> Answer:
    return Answer(0, AnswerKind.TEXT, text)


def told(verdict: Verdict) -> dict[str, str]:
    return headers(Outcome(PLAN, worst([verdict]), (verdict,)))


@pytest.mark.parametrize("text", [GERMAN, CHINESE])
async def test_what_nobody_reads_is_unchecked(encoder: Detector, text: str) -> None:
    """Where the rules find nothing to judge, nothing was checked: no score, no verdict in the headers."""
    engine = rules_of(encoder)
    (verdict,) = await engine.detect(PLAN, EXCHANGE, [answer(text)])
    followed = await engine.follow(PLAN, EXCHANGE).detect([answer(text)], [((0, len(text)),)])
    for each in (verdict, followed.verdicts[0], followed.ranges[0][0]):
        assert (each.status, each.reason, each.score) == (Status.UNCHECKED, Reason.LANGUAGE, None)
    fields = told(verdict)
    assert (fields["x-truthlens-status"], fields["x-truthlens-reason"]) == ("unchecked", "language")
    assert fields["x-truthlens-enabled"] == "false"
    assert not {"x-truthlens-score", "x-truthlens-detected"} & set(fields)
    await engine.aclose()


@pytest.mark.parametrize(
    ("text", "score", "flagged"),
    [(f"{GERMAN} 75.", 0.9, True), (f"{GERMAN} 12.", 0.0, False), (f"{CHINESE}共75美元。", 0.9, True)],
)
async def test_what_rules_alone_judged_is_partial(
    encoder: Detector, text: str, score: float, flagged: bool
) -> None:
    """The rule's score stands, the status says that it is not all, and the coverage that the encoder read nothing."""
    engine = rules_of(encoder)
    (verdict,) = await engine.detect(PLAN, EXCHANGE, [answer(text)])
    follower = engine.follow(PLAN, EXCHANGE)
    followed = await follower.detect([answer(text)], [((0, len(text)),)])
    ((near,),) = await follower.detect_ranges([answer(text)], [((0, len(text)),)])
    for each in (verdict, followed.verdicts[0], followed.ranges[0][0], near):
        assert (each.status, each.reason, each.flagged) == (Status.PARTIAL, Reason.LANGUAGE, flagged)
        assert each.score == pytest.approx(score)
        assert each.coverage is not None
        assert each.coverage.answer_ratio == 0.0
    fields = told(verdict)
    assert (fields["x-truthlens-status"], fields["x-truthlens-reason"]) == ("partial", "language")
    assert fields["x-truthlens-detected"] == str(flagged).lower()
    await engine.aclose()


async def test_of_several_choices_none_hides_the_unread_one(encoder: Detector) -> None:
    """An English choice that is checked does not make the German one checked, in status or coverage."""
    engine = rules_of(encoder)
    verdicts = await engine.detect(
        PLAN, EXCHANGE, [answer(ENGLISH), Answer(1, AnswerKind.TEXT, f"{GERMAN} 12.")]
    )
    assert [each.status for each in verdicts] == [Status.CHECKED, Status.PARTIAL]
    whole = worst(verdicts)
    assert (whole.status, whole.reason) == (Status.PARTIAL, Reason.LANGUAGE)
    assert whole.coverage is not None
    assert 0.0 < whole.coverage.answer_ratio < 1.0
    await engine.aclose()


@pytest.mark.parametrize(
    ("text", "status", "scored_share"),
    [
        (f"{ENGLISH} {ENGLISH} {GERMAN}", Status.PARTIAL, "some"),
        (f"{ENGLISH} {GERMAN} {GERMAN} {GERMAN}", Status.UNCHECKED, "none"),
        (f"{ENGLISH} {GERMAN} {GERMAN} {GERMAN} 12", Status.PARTIAL, "nothing by the encoder"),
    ],
)
async def test_mixed_answers_say_what_was_read(
    encoder: Detector, text: str, status: Status, scored_share: str
) -> None:
    """A foreign sentence leaves the English ones scored; where most is foreign, only rules judge."""
    engine = rules_of(encoder)
    (verdict,) = await engine.detect(PLAN, EXCHANGE, [answer(text)])
    assert (verdict.status, verdict.reason) == (status, Reason.LANGUAGE)
    if scored_share == "some":
        assert verdict.coverage is not None
        assert 0.0 < verdict.coverage.answer_ratio < 1.0
    await engine.aclose()


async def test_foreign_evidence_is_not_compared_with(encoder: Detector) -> None:
    """An English answer to evidence in German: the encoder has nothing to read, rules may have."""
    exchange = Exchange(Endpoint.CHAT, "m", "", (Passage(GERMAN, Provenance.DOCUMENTS),))
    engine = rules_of(encoder)
    bare, figure = await engine.detect(PLAN, exchange, [answer(ENGLISH), answer(f"{ENGLISH} It is 75.")])
    assert (bare.status, bare.reason) == (Status.UNCHECKED, Reason.LANGUAGE)
    assert (figure.status, figure.reason, figure.flagged) == (Status.PARTIAL, Reason.LANGUAGE, True)
    await engine.aclose()


async def test_a_detector_that_reads_everything_is_asked_for_any_language(encoder: Detector) -> None:
    """What can be scored beforehand depends on all detectors of the plan."""
    assert not engine_of({None: encoder}).scores(Plan("e"), EXCHANGE, [answer(GERMAN)])
    assert rules_of(encoder, FixedDetector(scored(0.1))).scores(PLAN, EXCHANGE, [answer(GERMAN)])


@pytest.mark.parametrize(
    "text", ["国内电汇是免费的，安全附加费也由银行自己承担。", "Die Überweisung ist gebührenfrei."]
)
async def test_values_are_read_in_any_language_where_there_are_any(encoder: Detector, text: str) -> None:
    """No model is asked beforehand for an answer that is then not scored."""
    engine = rules_of(encoder, NumberDetector(NumberOptions()))
    assert not engine.scores(PLAN, EXCHANGE, [answer(text)])
    assert engine.scores(PLAN, EXCHANGE, [answer(f"{text} 75 %")])
    await engine.aclose()


@pytest.mark.parametrize(
    ("text", "reads", "status", "reason"),
    [
        (f"{ENGLISH[:-1]} [S0].", True, Status.CHECKED, None),
        (f"{GERMAN[:-1]} [S0].", True, Status.PARTIAL, Reason.LANGUAGE),
        (f"该银行对客户收取的{CHINESE[:-1]}[S0]。", True, Status.PARTIAL, Reason.LANGUAGE),
        (f"{HINDI} [S0]", False, Status.UNCHECKED, Reason.LANGUAGE),
        (f"{HINDI} [S9]", False, Status.PARTIAL, Reason.LANGUAGE),
    ],
)
async def test_citations_read_labels_in_every_language_and_claims_where_sentences_end(
    encoder: Detector, text: str, reads: bool, status: Status, reason: Reason | None
) -> None:
    """Where claims cannot be told apart none is counted; an invalid citation is one in any language."""
    detector = CitationDetector(Options(require_citations=True))
    assert detector.reads(EXCHANGE, answer(text)) is reads
    engine = rules_of(encoder, detector)
    (verdict,) = await engine.detect(PLAN, EXCHANGE, [answer(text)])
    assert (verdict.status, verdict.reason) == (status, reason)
    assert verdict.flagged is ("S9" in text)
    await engine.aclose()
