"""Which claims of an answer are asked about."""

from __future__ import annotations

from tests.detection.detectors.verify.test_detector import EXCHANGE
from truthlens.core.records.claims import Finding
from truthlens.core.records.coefficients import Coefficients
from truthlens.core.records.enums import AnswerKind
from truthlens.core.records.exchange import Answer
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import DetectorResult
from truthlens.core.registry import detector_types
from truthlens.detection.detectors.verify.options import Options
from truthlens.detection.detectors.verify.questions import questions_on


def test_doubtful_are_the_claims_that_the_plans_own_weights_leave_open() -> None:
    """A detector whose opinion a fit found worth nothing leaves every claim open; plans of other weights share no detector."""
    answer = Answer(0, AnswerKind.TEXT, "The ferry leaves at nine.")
    first = [DetectorResult("encoder", 0.95, findings=(Finding(0, len(answer.text), 0.95),))]
    options = Options(model="m")
    assert questions_on(EXCHANGE, answer, first, options).asked == ()
    own = Coefficients(intercept=0.0, opinions={"encoder": 0.0})
    assert len(questions_on(EXCHANGE, answer, first, options, own).asked) == 1
    declared = detector_types()["verify"]
    assert declared.key(Plan("a", coefficients=own), options) != declared.key(Plan("b"), options)
    assert declared.key(Plan("a", coefficients=own), options) == declared.key(
        Plan("b", coefficients=own), options
    )
