"""The number of the scoring rules is raised whenever the code makes other scores of the same token scores."""

from __future__ import annotations

from tests.fakes.context_model import ContextModel
from truthlens.core.records.enums import Aggregation, AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.scoring_version import SCORING_VERSION
from truthlens.detection.detectors.encoder.detector import EncoderDetector
from truthlens.detection.models.inputs.manifest import InputFormat, Manifest, ResponseCalibration
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.lab.export.parity_inputs import ParityInput, samples
from truthlens.process.model_store import BUNDLED_MODEL
from truthlens.process.settings import models_folder

FOLDER = models_folder() / BUNDLED_MODEL
MANIFEST = Manifest(
    name="fixed",
    base="none",
    languages=("en",),
    input=InputFormat(
        max_tokens=512, segment_ids=True, features="lexical-v1", ranking="context", selected_tokens=192
    ),
    temperature=1.7052,
    tau_token=0.01,
    tau_span=0.15,
    aggregation=Aggregation.NOISY_OR,
    response={
        Aggregation.NOISY_OR: ResponseCalibration(slope=0.2, worst=0.4, length=0.01, intercept=0.5, sure=16),
        Aggregation.SPAN_MAX: ResponseCalibration(slope=0.3, length=0.1, intercept=0.1, sure=24),
    },
)
"""Of the test's own, so that another bundled model changes nothing here."""
PASSAGES = (
    "Dr. Weiss et al. opened the U.S. museum on 3 March 1998. It holds 1,250 maps.",
    "Entry: 4.50 euros.",
)
ANSWERS = (
    "It opened in March 1998.",
    "Sure! Here is what I found:\n\n- It opened in 1999.\n- It holds 1,250 maps.\n\nAnything else?",
    "The documents do not say when it opened. Entry costs €4.50.",
    "I cannot help with that.",
    "```python\nprint(1250)\n```\nThe code prints 1,250, e.g. the number of maps.",
    '"It opened in 1998," she said. Mr. Weiss et al. agree.',
)
SCORES = {
    1: [
        0.1025, 0.0, 0.0, 0.6583, 0.3, 0.4991, 0.6925, 0.3423, 0.5026, 0.78, 0.3545, 0.5847,
        0.7842, 0.3596, 0.6142, 0.7966, 0.3728, 0.5968, 0.2696, 0.2616, 0.2827, 0.7423, 0.3396, 0.3811,
        0.3686, 0.247, 0.2341, 0.0466, 0.0, 0.0, 0.374, 0.2531, 0.2763, 0.706, 0.3251, 0.3825,
    ],
    2: [
        0.1025, 0.0, 0.0, 0.6583, 0.3, 0.4991, 0.6925, 0.3423, 0.5026, 0.78, 0.3545, 0.5847,
        0.7842, 0.3596, 0.6142, 0.7966, 0.3728, 0.5968, 0.2696, 0.2616, 0.2827, 0.7423, 0.3396, 0.3811,
        0.3686, 0.247, 0.2341, 0.0, 0.0, 0.0, 0.374, 0.2531, 0.2763, 0.706, 0.3251, 0.3825,
    ],
    3: [
        0.3474, 0.404, 0.0, 0.7581, 0.649, 0.9953, 0.7763, 0.6863, 0.9963, 0.8198, 0.6951, 1.0,
        0.826, 0.6986, 1.0, 0.8315, 0.7088, 1.0, 0.5511, 0.6154, 0.6421, 0.7956, 0.6858, 0.9044,
        0.6104, 0.5943, 0.4987, 0.0, 0.0, 0.0, 0.6336, 0.5987, 0.6454, 0.7714, 0.6742, 0.9037,
    ],
    5: [
        0.3474, 0.404, 0.0, 0.7581, 0.649, 0.9953, 0.7763, 0.6863, 0.9963, 0.8198, 0.6951, 1.0,
        0.826, 0.6986, 1.0, 0.8315, 0.7088, 1.0, 0.5511, 0.6154, 0.6421, 0.7969, 0.6858, 0.9044,
        0.6124, 0.5943, 0.4987, 0.0, 0.0, 0.0, 0.6336, 0.5987, 0.6454, 0.7714, 0.6742, 0.9037,
    ],
}  # fmt: skip
SCORES[6] = SCORES[5]  # an answer's score is made of its claims
SCORES[7] = SCORES[6]  # proof, more citation marks, values with sign, unit and noun, where sentences end
SCORES[8] = SCORES[7]  # the reader joins the verdict
SCORES[9] = SCORES[8]  # what the encoder's opinion counts for beside the reader's
SCORES[4] = SCORES[3]  # the rules of `numbers` moved, and answers longer than a calibration's
"""Scores by the rules of each number (1 and 2 with the bundled manifest of their time), of all aggregations in turn, answer by answer."""


class _Calm(ContextModel):
    """Suspects few tokens, so that scores are not all near one."""

    def odds_of(self, window, state):  # type: ignore[no-untyped-def]
        return super().odds_of(window, state) - 4.5


def test_other_scores_have_another_number() -> None:
    """Splitting, windows, features, claims, merging and aggregation: raise SCORING_VERSION and add what is found here.

    The token scores are made by whole numbers, so that every machine has the same.
    """
    encoder = EncoderDetector(_Calm(), load_tokenizer(FOLDER), MANIFEST)
    asked = [*samples(), *(ParityInput("When did the museum open?", PASSAGES, answer) for answer in ANSWERS)]
    found = []
    for sample in asked:
        passages = tuple(Passage(text, Provenance.DOCUMENTS) for text in sample.passages)
        exchange = Exchange(Endpoint.CHAT, "m", sample.query, passages)
        for aggregation in Aggregation:
            answer = Answer(0, AnswerKind.TEXT, sample.answer)
            found.append(round(encoder.detect(exchange, answer, aggregation=aggregation).score or 0.0, 4))
    assert found == SCORES[SCORING_VERSION]
