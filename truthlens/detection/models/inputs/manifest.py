"""The manifest of a model folder: how its input is built and how its output is read.

``manifest.json`` travels with the weights. A Hugging Face token-classification folder without one gets a
derived manifest (LettuceDetect conventions). This module does not load weights or tokenizers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from truthlens.core.errors import ModelError
from truthlens.core.records.enums import Aggregation
from truthlens.detection.models.inputs.prompts import TemplateName
from truthlens.detection.models.response_score import MOST_SURE, Calibration, Scoring

MANIFEST_NAME = "manifest.json"
# LettuceDetect v1 was trained at this length; longer windows are for models that say so in a manifest.
LONGEST_INPUT = 4096
_BERT_TYPES = frozenset({"bert"})
_LETTUCE_TYPES = frozenset({"modernbert", "eurobert"})
# These layouts number positions from pad_token_id + 1, so two positions of the table cannot be used.
_OFFSET_POSITION_TYPES = frozenset({"roberta", "xlm-roberta", "camembert"})

FeatureSet = Literal["lexical-v1", "lexical-v2"]
Merge = Literal["min", "mean", "nearest", "weighted", "learned"]
MergeWeights = tuple[float, float, float, float, float]
"""Constant, and the weights of lowest, highest, mean and weighted log-odds."""
Unit = Annotated[float, Field(ge=0.0, le=1.0)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class InputFormat(_Frozen):
    """How evidence and answer become token ids.

    ``template`` ``None`` means ``[CLS] query [SEP] evidence [SEP] answer [SEP]`` (no query: without its
    part); a name means one prompt text in place of query and evidence. ``answer_tokens`` is the size of an
    answer chunk, ``answer_overlap`` how many tokens two neighbouring chunks share. With ``evidence``
    ``select`` the evidence sentences nearest to the chunk fill the window; with ``windows`` every chunk meets
    all evidence, in as many windows as that takes.

    ``evidence_windows`` bounds the windows of a chunk: with ``select`` (where none means one) each further
    window holds the next best sentences, with ``windows`` (where none means all) only the nearest groups are
    read. ``selected_tokens`` bounds what is selected for a chunk, to that many tokens and one more for each
    of the chunk's: a window filled with what a short answer does not speak of hides what is wrong with it.
    ``ranking`` is what nearest means: words shared with the sentence alone, or also by the text around it.
    ``merge`` brings the windows of a chunk together, see ``merging``; ``merge_weights`` are those of
    ``learned``. ``features_over`` is the evidence that the features look at: all of it, or what some window
    holds. Measurements: docs/long-evidence.md.
    """

    max_tokens: int = Field(default=512, ge=16)
    template: TemplateName | None = None
    segment_ids: bool = False
    answer_tokens: int = Field(default=224, ge=4)
    answer_overlap: int = Field(default=48, ge=0)
    evidence: Literal["select", "windows"] = "select"
    evidence_windows: int | None = Field(default=None, ge=1, le=64)
    selected_tokens: int | None = Field(default=None, ge=16)
    ranking: Literal["overlap", "context"] = "overlap"
    merge: Merge = "min"
    merge_weights: MergeWeights | None = None
    features: FeatureSet | None = None
    features_over: Literal["all", "read"] = "all"

    def model_post_init(self, _context: Any) -> None:
        """Refuse sizes that leave no room for evidence or give chunks that do not advance."""
        if self.answer_overlap >= self.answer_tokens:
            raise ValueError("answer_overlap must be smaller than answer_tokens")
        if self.answer_tokens > self.max_tokens * 3 // 4:
            raise ValueError("answer_tokens must leave a quarter of max_tokens for evidence")
        if (self.merge == "learned") != (self.merge_weights is not None):
            raise ValueError("merge_weights belong to merge learned, and merge learned needs them")


class DataSource(_Frozen):
    """A data set that the model was trained on, with its licence."""

    name: str
    licence: str
    rows: int = Field(default=0, ge=0)


class ResponseCalibration(_Frozen):
    """A logistic from what an aggregation measures to the response score; see ``response_score.Calibration``."""

    slope: float = Field(ge=0.0)
    worst: float = Field(default=0.0, ge=0.0)
    length: float = 0.0
    intercept: float
    sure: float = Field(gt=0.0, le=MOST_SURE)
    max_tokens: int | None = Field(default=None, ge=1)


class Manifest(_Frozen):
    """What a model folder says about itself.

    ``hallucinated_label`` is the index of the "not supported" logit. Token probabilities are
    ``softmax(logits / temperature)[hallucinated_label]``. ``tau_token`` is the limit of the Noisy-OR's
    indicator, ``tau_span`` the limit from which a token belongs to a span. ``noisy_or_exponent`` is the
    tempering exponent 1/c (1.0: the raw formula). ``response`` calibrates the response score of an
    aggregation to even odds; without an entry it is the formula alone. ``format`` 1 had none, or calibrations to another
    base rate, which are refused. ``figures`` are results on held-out data, by split.
    ``files`` maps relative names to SHA-256 digests (hex); the loader refuses a file that differs.
    ``score_deciles`` are those of the response scores of the calibration answers at even odds, ascending; without them
    the gateway says nothing of drift.
    """

    format: Literal[1, 2] = 2
    name: str
    base: str
    architecture: str = ""
    note: str = ""
    data: tuple[DataSource, ...] = ()
    licence: str = ""
    languages: tuple[str, ...] = ()
    revision: str = ""
    input: InputFormat
    hallucinated_label: int = Field(default=1, ge=0)
    temperature: float = Field(default=1.0, gt=0.0)
    tau_token: Unit = 0.5
    tau_span: Unit = 0.5
    aggregation: Aggregation = Aggregation.SPAN_NOISY_OR
    noisy_or_exponent: float = Field(default=1.0, gt=0.0, le=1.0)
    response: dict[Aggregation, ResponseCalibration] = Field(default_factory=dict)
    recommended_threshold: Unit = 0.5
    figures: dict[str, Any] = Field(default_factory=dict)
    files: dict[str, Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]] = Field(default_factory=dict)
    score_deciles: Annotated[tuple[Unit, ...], Field(min_length=9, max_length=9)] | None = None

    @field_validator("score_deciles")
    @classmethod
    def _ascending(cls, deciles: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if deciles is not None and list(deciles) != sorted(deciles):
            raise ValueError("score_deciles must ascend")
        return deciles

    @property
    def scoring(self) -> Scoring:
        """How token probabilities become the response score."""
        return Scoring(
            tau=self.tau_token,
            exponent=self.noisy_or_exponent,
            calibrations={name: Calibration(**fitted.model_dump()) for name, fitted in self.response.items()},
        )


def load_manifest(folder: Path) -> Manifest:
    """Load the manifest of ``folder``: ``manifest.json``, or one derived from Hugging Face's ``config.json``.

    Raises:
        ModelError: the folder has neither file, or the file cannot be used.
    """
    path = folder / MANIFEST_NAME
    if path.is_file():
        content = path.read_bytes()
        if _is_calibrated_before(content):
            raise ModelError(
                f"{path}: response: it was calibrated by an earlier version, to a base rate of 0.18, and scores are "
                f"probabilities at even odds now; run: python -m truthlens.lab.calibrate.refit {folder} --data FOLDER "
                "(labelled answers that the model was not trained on)"
            )
        return _parsed(content, path)
    config_path = folder / "config.json"
    if not config_path.is_file():
        raise ModelError(
            f"{folder} is no model folder: expected {MANIFEST_NAME}, or config.json of a Hugging Face model; "
            "give the folder that holds the weights"
        )
    try:
        config = json.loads(config_path.read_bytes())
    except ValueError as error:
        raise ModelError(f"{config_path} is not valid JSON; download the model again") from error
    if not isinstance(config, dict):
        raise ModelError(f"{config_path} holds a {type(config).__name__}, expected an object")
    return derive_manifest(folder.name, config)


def without_calibration(folder: Path) -> Manifest:
    """Load the manifest of ``folder`` of any format, without its calibrations of the response score.

    Raises:
        ModelError: the manifest cannot be used for another reason.
    """
    path = folder / MANIFEST_NAME
    if not path.is_file():
        return load_manifest(folder)
    content = path.read_bytes()
    if _is_calibrated_before(content):
        content = json.dumps(json.loads(content) | {"format": 2, "response": {}}).encode()
    return _parsed(content, path).model_copy(update={"response": {}})


def _parsed(content: bytes, path: Path) -> Manifest:
    try:
        return Manifest.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ModelError(
            f"{path}: {where}: {first['msg']}; fix the manifest or export the model again"
        ) from error


def _is_calibrated_before(content: bytes) -> bool:
    """Return whether this is a manifest of format 1 with calibrations, whose scores are at another base rate."""
    try:
        data = json.loads(content)
    except ValueError:
        return False
    return isinstance(data, dict) and data.get("format", 1) == 1 and bool(data.get("response"))


def derive_manifest(name: str, config: dict[str, Any]) -> Manifest:
    """Derive a manifest from a Hugging Face token-classification ``config``, by LettuceDetect's conventions.

    Label 1 is "hallucinated" whatever ``id2label`` says: published checkpoints never set those names.

    Raises:
        ModelError: the configuration has no usable length or not two labels.
    """
    model_type = str(config.get("model_type", ""))
    positions = config.get("max_position_embeddings", 512)
    if not isinstance(positions, int) or positions < 32:
        raise ModelError(
            f"{name}: max_position_embeddings is {positions!r}, expected a whole number of at least 32"
        )
    labels = _label_count(config)
    if labels != 2:
        raise ModelError(
            f"{name}: the model has {labels} labels, expected 2 (supported, hallucinated); "
            "write a manifest.json for it if it is a token classifier of another kind"
        )
    if model_type in _OFFSET_POSITION_TYPES:
        positions -= 2
    max_tokens = min(positions, LONGEST_INPUT)
    return Manifest(
        name=name,
        base=str(config.get("_name_or_path") or name),
        architecture=model_type,
        note="derived from config.json",
        input=InputFormat(
            max_tokens=max_tokens,
            template="lettucedetect-v1" if model_type in _LETTUCE_TYPES else None,
            segment_ids=model_type in _BERT_TYPES,
            answer_tokens=max(4, min(max_tokens * 3 // 8, 1024)),
            answer_overlap=min(max_tokens // 16, 128),
        ),
    )


def _label_count(config: dict[str, Any]) -> int:
    names = config.get("id2label")
    if isinstance(names, dict) and names:
        return len(names)
    count = config.get("num_labels", 2)
    return count if isinstance(count, int) else 2
