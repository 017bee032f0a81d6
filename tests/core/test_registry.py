"""Detectors are found by what they declare."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import truthlens.detection.detectors
from tests.fakes.detectors import FixedDetector, scored
from truthlens.core.errors import DetectorError
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.registry import detector_types
from truthlens.detection.building import OneModel, build_engine
from truthlens.policy import InvalidPolicyError
from truthlens.policy.compile import compile_policy

TOY = """
import pydantic
from truthlens.core.records.verdict import (DetectorResult, Span)
from truthlens.core.registry import DetectorType

class Options(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)
    word: str = "elephants"
    score: float = pydantic.Field(default=0.9, ge=0, le=1)

class Toy:
    model = ""
    def __init__(self, options):
        self.options = options
    def reads(self, exchange, answer):
        return True
    def detect_all(self, exchange, answers, *, aggregation, stop):
        return [self.result(answer.text) for answer in answers]
    def result(self, text):
        at = text.find(self.options.word)
        if at < 0:
            return DetectorResult("toy", None, abstained=True)
        span = Span(at, at + len(self.options.word), self.options.score, "toy")
        return DetectorResult("toy", self.options.score, spans=(span,))

DETECTOR = DetectorType("toy", lambda context: Toy(context.options or Options()), options=Options)
"""
POLICY = "hallucination: {detectors: [encoder, {name: toy, weight: 0.5, word: zebras}]}\n"
EXCHANGE = Exchange(Endpoint.CHAT, "m", "", (Passage("The sky is blue.", Provenance.TOOL),))


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One more file in the folder of detectors."""
    (tmp_path / "toy.py").write_text(TOY)
    package = truthlens.detection.detectors
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    yield
    sys.modules.pop(f"{package.__name__}.toy", None)


def test_the_encoder_is_declared() -> None:
    """It needs a model and follows streams."""
    encoder = detector_types()["encoder"]
    assert encoder.needs == {"model"}
    assert encoder.follows


@pytest.mark.usefixtures("toy")
async def test_a_detector_is_one_file() -> None:
    """One file in the folder is enough to list it with its options, build it, and have it score."""
    policy = compile_policy(POLICY, file="p.yaml")
    engine = build_engine([policy.default], OneModel(FixedDetector(scored(0.2))))
    texts = ["It sells zebras.", "It sells bread."]
    answers = [Answer(place, AnswerKind.TEXT, text) for place, text in enumerate(texts)]
    flagged, clean = await engine.detect(policy.default, EXCHANGE, answers)
    assert flagged.score == pytest.approx(1 - 0.8 * 0.1**0.5)
    assert [(span.start, span.end, span.detector) for span in flagged.spans] == [(9, 15, "toy")]
    assert (clean.score, clean.status) == (0.2, Status.CHECKED)
    await engine.aclose()


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{name: toy, wrod: zebras}", "has no option 'wrod'"),
        ("{name: toy, score: 2}", "less than or equal to 1"),
        ("{name: tyo}", "there is no detector 'tyo'"),
        ("{name: encoder, word: zebras}", "has no option 'word'"),
    ],
)
def test_wrong_options_are_errors_of_the_policy(entry: str, message: str) -> None:
    """Each with its line, its key and a remedy, as every other key."""
    with pytest.raises(InvalidPolicyError, match=message):
        compile_policy(f"hallucination: {{detectors: [{entry}]}}\n", file="p.yaml")


def _distribution(folder: Path, text: str) -> None:
    """Install what declares a detector in ``folder``."""
    (folder / "toy_detector.py").write_text(text)
    info = folder / "toy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[truthlens.detectors]\ntoy = toy_detector:DETECTOR\n")


def test_a_detector_of_another_distribution_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an entry point of the group ``truthlens.detectors``."""
    _distribution(tmp_path, TOY)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert detector_types()["toy"].name == "toy"
    sys.modules.pop("toy_detector", None)


def test_a_detector_is_read_when_it_is_asked_for() -> None:
    """All names are known without the modules of the detectors."""
    code = (
        "import sys; from truthlens.core.registry import detector_types; types = detector_types();"
        "assert {'encoder', 'judge'} <= set(types) and types['encoder'].follows;"
        "names = [name.partition('truthlens.detection.detectors.')[2] for name in sys.modules];"
        "print(*filter(None, names))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split() == ["encoder"]


def test_two_detectors_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which one would run must not depend on an order."""
    _distribution(tmp_path, TOY.replace('"toy"', '"encoder"'))
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(DetectorError, match="two detectors are named 'encoder'"):
        detector_types()
    sys.modules.pop("toy_detector", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            TOY.replace('DetectorType("toy"', 'DetectorType("encoder"'),
            "declares the detector 'encoder'; give",
        ),
        ("", "second declares a NoneType as a detector"),
    ],
)
def test_a_file_declares_the_detector_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    """By that name it is found."""
    package = truthlens.detection.detectors
    (tmp_path / "second.py").write_text(text)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    with pytest.raises(DetectorError, match=message):
        dict(detector_types())
    sys.modules.pop(f"{package.__name__}.second", None)
