"""The recipe of the bundled model: which data, how much of each, in which input format."""

from __future__ import annotations

from truthlens.detection.encoder.inputs.manifest import DataSource, InputFormat
from truthlens.training.data.dataset import Example, Mixture, Recipe, Shares
from truthlens.training.data.minimal_pairs import EVIDENCE, PAIRS
from truthlens.training.data.synthetic_errors import SOURCE as SYNTHETIC
from truthlens.training.data.table_records import TABLES

MAIN_SOURCE = "ragtruth"
# Selection as measured in docs/long-evidence.md.
INPUT = InputFormat(
    max_tokens=512, segment_ids=True, features="lexical-v1", ranking="context", selected_tokens=192
)
# Few answer chunks and, where the evidence is long, small windows: most of the time goes into tokens.
TRAIN_INPUT = INPUT.model_copy(update={"answer_tokens": 288, "answer_overlap": 16})
TRAIN_INPUT_SMALL = INPUT.model_copy(update={"max_tokens": 288, "answer_tokens": 144, "answer_overlap": 16})
_LONG_SOURCES = frozenset({MAIN_SOURCE, EVIDENCE})

BUNDLED_RECIPE = Recipe(
    shares={MAIN_SOURCE: Shares(calibration=0.1, test=0.15)},
    default_shares=Shares(calibration=0.03, test=0.05),
    mixture={
        MAIN_SOURCE: Mixture(rows=100_000),
        SYNTHETIC: Mixture(rows=1_000, weight=0.7),
        PAIRS: Mixture(rows=3_000),
        EVIDENCE: Mixture(rows=700, weight=0.7),
        TABLES: Mixture(rows=400, weight=0.5),
        "summedits": Mixture(rows=1_800),
        "bump": Mixture(rows=2_000),
        "wice": Mixture(rows=1_000),
        "xsum_hallucination": Mixture(rows=500, weight=0.5),
        "begin": Mixture(rows=5_000, weight=0.7),
        "fever_symmetric": Mixture(rows=2_000),
        "snli": Mixture(rows=6_000, weight=0.5),
    },
)
LICENCES = {
    MAIN_SOURCE: DataSource(name="RAGTruth, question answering (ParticleMedia)", licence="MIT"),
    "wice": DataSource(name="WiCE", licence="ODC-BY (text: CC BY-SA, Common Crawl terms)"),
    "bump": DataSource(name="BUMP", licence="MIT"),
    "xsum_hallucination": DataSource(name="XSum hallucination annotations", licence="CC BY 4.0 (labels)"),
    "begin": DataSource(name="BEGIN", licence="CC BY (per folder)"),
    "fever_symmetric": DataSource(name="FEVER-symmetric", licence="MIT, CC BY-SA"),
    "summedits": DataSource(name="SummEdits", licence="Apache-2.0"),
    "snli": DataSource(name="SNLI", licence="CC BY-SA 4.0"),
    SYNTHETIC: DataSource(
        name="synthetic answers over the evidence of RAGTruth, SummEdits, WiCE and BUMP",
        licence="as their sources",
    ),
    PAIRS: DataSource(
        name="minimal pairs: supported answers of all sources with one edit", licence="as their sources"
    ),
    EVIDENCE: DataSource(
        name="RAGTruth answers with evidence withheld or supplied", licence="as their source"
    ),
    TABLES: DataSource(name="generated JSON records and texts about them", licence="Apache-2.0"),
}
"""By source: name and licence for manifest and card."""


def train_format(example: Example) -> InputFormat:
    """Return the window sizes that ``example`` is trained with."""
    return TRAIN_INPUT if example.source in _LONG_SOURCES else TRAIN_INPUT_SMALL
