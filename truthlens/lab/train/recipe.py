"""The recipe of the bundled model: which data, how much of each, in which input format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from truthlens.detection.models.inputs.manifest import DataSource, InputFormat
from truthlens.lab.calibrate.calibration import OTHER
from truthlens.lab.data.dataset import Example, Mixture, Recipe, Shares
from truthlens.lab.data.evidence_twins import EVIDENCE_TWINS
from truthlens.lab.data.minimal_pairs import EVIDENCE, PAIRS
from truthlens.lab.data.synthetic_errors import SOURCE as SYNTHETIC
from truthlens.lab.data.table_records import TABLES
from truthlens.lab.data.twins import SOURCE as TWINS

MAIN_SOURCE = "ragtruth"
TWINS_FOLDER = Path(__file__).parents[3] / "data" / "twins" / "train"
"""The twins that the bundled model learns from, of a checkout."""
# Selection as measured in docs/long-evidence.md.
INPUT = InputFormat(
    max_tokens=512, segment_ids=True, features="lexical-v2", ranking="context", selected_tokens=192
)
# Few answer chunks and, where the evidence is long, small windows: most of the time goes into tokens.
TRAIN_INPUT = INPUT.model_copy(update={"answer_tokens": 288, "answer_overlap": 16})
TRAIN_INPUT_SMALL = INPUT.model_copy(update={"max_tokens": 288, "answer_tokens": 144, "answer_overlap": 16})
_LONG_SOURCES = frozenset({MAIN_SOURCE, EVIDENCE})

BUNDLED_RECIPE = Recipe(
    shares={MAIN_SOURCE: Shares(calibration=0.1, test=0.15)},
    default_shares=Shares(calibration=0.03, test=0.05),
    mixture={
        TWINS: Mixture(rows=100_000, weight=1.5),
        EVIDENCE_TWINS: Mixture(rows=7_000),
        MAIN_SOURCE: Mixture(rows=1_800),
        SYNTHETIC: Mixture(rows=300, weight=0.7),
        PAIRS: Mixture(rows=800),
        EVIDENCE: Mixture(rows=300, weight=0.7),
        TABLES: Mixture(rows=200, weight=0.5),
        "written": Mixture(rows=0),
        "summedits": Mixture(rows=700),
        "bump": Mixture(rows=600),
        "wice": Mixture(rows=250),
        "xsum_hallucination": Mixture(rows=250, weight=0.5),
        "begin": Mixture(rows=1_000, weight=0.5),
        "fever_symmetric": Mixture(rows=1_400),
        "snli": Mixture(rows=1_000, weight=0.3),
        "frank_bbc": Mixture(rows=300, weight=0.7),
        "frank_cnndm": Mixture(rows=500, weight=0.7),
        "factcg": Mixture(rows=900),
        "infotabs": Mixture(rows=1_500, weight=0.7),
        "tabfact": Mixture(rows=1_500, weight=0.7),
        "quintd": Mixture(rows=300, weight=0.5),
        "clapnq": Mixture(rows=300),
        "alexa_dialogs": Mixture(rows=300, weight=0.5),
        "storysumm": Mixture(rows=0),
        "accuracy_shared_task": Mixture(rows=0),
        "uhgeval": Mixture(rows=0),
    },
)
_EXTRACTIVE, _ABSTRACTIVE, _LONG = "extractive summaries", "abstractive summaries", "long answers"
_CLAIMS, _TABLES, _DIALOGUE = "short claims", "tables and records", "dialogue"
KINDS: Mapping[tuple[str, str], str] = {
    ("frank_cnndm", ""): _EXTRACTIVE,
    ("bump", ""): _EXTRACTIVE,
    (MAIN_SOURCE, "summary"): _ABSTRACTIVE,
    ("frank_bbc", ""): _ABSTRACTIVE,
    ("xsum_hallucination", ""): _ABSTRACTIVE,
    ("summedits", ""): _ABSTRACTIVE,
    ("storysumm", ""): _ABSTRACTIVE,
    (MAIN_SOURCE, "qa"): _LONG,
    ("clapnq", ""): _LONG,
    ("wice", ""): _CLAIMS,
    ("fever_symmetric", ""): _CLAIMS,
    ("snli", ""): _CLAIMS,
    ("factcg", ""): _CLAIMS,
    (MAIN_SOURCE, "data2txt"): _TABLES,
    ("infotabs", ""): _TABLES,
    ("tabfact", ""): _TABLES,
    ("quintd", ""): _TABLES,
    ("begin", ""): _DIALOGUE,
    ("alexa_dialogs", ""): _DIALOGUE,
    (TWINS, ""): "twins",
}
"""By source and task (empty: any): the kind of answers that a calibration is fitted and reported by."""
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
    TWINS: DataSource(
        name="twins: passages in two readings and answers to them, written for TruthLens",
        licence="Apache-2.0",
    ),
    EVIDENCE_TWINS: DataSource(
        name="twins of supported answers of all sources: one edit of their evidence",
        licence="as their sources",
    ),
    "frank_bbc": DataSource(name="FRANK, BBC", licence="MIT (articles: their publishers')"),
    "frank_cnndm": DataSource(name="FRANK, CNN and Daily Mail", licence="MIT (articles: their publishers')"),
    "factcg": DataSource(name="FactCG, documents", licence="MIT"),
    "infotabs": DataSource(name="InfoTabS", licence="Apache-2.0 (tables from Wikipedia)"),
    "tabfact": DataSource(name="TabFact", licence="MIT (tables from Wikipedia)"),
    "quintd": DataSource(name="Quintd-1", licence="MIT"),
    "clapnq": DataSource(name="CLAP NQ", licence="Apache-2.0 (passages CC BY-SA)"),
    "alexa_dialogs": DataSource(
        name="grounded dialogues with annotated answers of GPT-2", licence="CC BY-SA 4.0"
    ),
    TABLES: DataSource(name="generated JSON records and texts about them", licence="Apache-2.0"),
}
"""By source: name and licence for manifest and card."""


def kind_of(example: Example) -> str:
    """Return the kind of an answer; that of sources which the table does not name is ``other``."""
    for key in ((example.source, example.task), (example.source, "")):
        if key in KINDS:
            return KINDS[key]
    return OTHER


def calibrates(example: Example, recipe: Recipe) -> bool:
    """Return whether an answer may be calibrated on: not if ``recipe`` leaves its source out and no kind names it.

    Sources are left out because they tell by their wording alone which answers are wrong, hold one class, or are in
    a language that the model does not read.
    """
    return kind_of(example) != OTHER or recipe.mixture.get(example.source, recipe.default_mixture).rows > 0


def train_format(example: Example) -> InputFormat:
    """Return the window sizes that ``example`` is trained with."""
    return TRAIN_INPUT if example.source in _LONG_SOURCES else TRAIN_INPUT_SMALL
