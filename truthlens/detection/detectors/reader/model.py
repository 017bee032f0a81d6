"""Run the reader: claims with their evidence sentences in, probabilities of the three outcomes out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from tokenizers import Tokenizer

from truthlens.core.cancellation import StopCheck
from truthlens.core.errors import DetectorError, ModelError, StoppedError
from truthlens.detection.detectors.encoder.loading import verify_files
from truthlens.detection.detectors.reader.inputs import ReaderEvidence, ReaderFormat, ReaderInput
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.detection.models.onnx_runtime import load_session
from truthlens.detection.models.runtime import batches

MANIFEST_NAME, ONNX_NAME, TOKENIZER_NAME = "manifest.json", "model.onnx", "tokenizer.json"
TABLE_NAME = "embeddings.bin"
"""The word embeddings, which ``model.onnx`` of a trained reader names; so that neither file is above 100 MB."""
INPUTS = ("input_ids", "attention_mask", "claim_mask")
PAIR_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
"""Of a checkpoint that has a template; the last one where its layout has segments."""
OUTPUT = "logits"
Outcome = Literal["supported", "contradicted", "not_stated"]
OUTCOMES: tuple[Outcome, ...] = ("supported", "contradicted", "not_stated")
"""The columns of what the reader gives."""

_WARM_UP_TEXT = "The reading room opens at nine. It closes at six on weekdays and at noon on Saturdays. "
_BATCH_TOKENS = 512  # larger batches take longer a token on one core: their activations leave its cache


class ReaderManifest(BaseModel):
    """What the folder of a reader says about itself.

    ``kind`` tells it from a detector's. ``temperature`` divides the logits; ``labels`` are their outcomes, in order: a head of two
    classes never says one of the three. ``commit`` is that of ``base`` on a hub, empty where it has none. ``files`` maps names to
    SHA-256 digests (hex); loading refuses what differs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    kind: Literal["reader"] = "reader"
    name: str
    base: str
    commit: str = ""
    licence: str
    languages: tuple[str, ...]
    labels: tuple[Outcome, ...] = OUTCOMES
    input: ReaderFormat
    temperature: float = Field(default=1.0, gt=0.0)
    figures: dict[str, Any] = Field(default_factory=dict)
    files: dict[str, Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]]

    @field_validator("labels")
    @classmethod
    def _tell_support(cls, labels: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
        if "supported" not in labels or len(labels) < 2 or len(set(labels)) != len(labels):
            raise ValueError("labels are to be two or three different outcomes, supported among them")
        return labels

    @property
    def revision(self) -> str:
        """The first 12 digits of the weights' digest."""
        return self.files.get(ONNX_NAME, "")[:12]


class Reader:
    """Judges claims; safe to use from several threads.

    Args:
        session: the graph: ids, attention mask and claim mask (or segments) in, a logit a label and claim out.
        tokenizer: the model's own.
        manifest: of the model's folder.
    """

    def __init__(self, session: ort.InferenceSession, tokenizer: Tokenizer, manifest: ReaderManifest) -> None:
        self.manifest = manifest
        self.tokenizer = tokenizer
        self._session = session
        self._pad = tokenizer.token_to_id(manifest.input.pad) or 0
        self._columns = [OUTCOMES.index(label) for label in manifest.labels]
        self._inputs = [node.name for node in session.get_inputs()]

    @classmethod
    def load(cls, folder: Path, *, threads: int = 1) -> Reader:
        """Load the reader of ``folder``: ``manifest.json``, ``model.onnx`` and ``tokenizer.json``.

        Raises:
            ModelError: the folder cannot be used; the message says why and what to do.
        """
        manifest = load_reader_manifest(folder)
        verify_files(folder, manifest.files)
        file = folder / ONNX_NAME
        session = load_session(file, threads=threads)
        taken, given = {node.name for node in session.get_inputs()}, session.get_outputs()[0].shape
        pair = manifest.input.template is not None
        fits = taken in (set(PAIR_INPUTS), set(PAIR_INPUTS[:2])) if pair else taken == set(INPUTS)
        if not fits or given[-1] != len(manifest.labels):
            expected = PAIR_INPUTS if pair else INPUTS
            raise ModelError(
                f"{file}: the graph takes {', '.join(sorted(taken))} and gives {given}; expected {', '.join(expected)} and "
                f"{len(manifest.labels)} logits a claim: export it again"
            )
        return cls(session, load_tokenizer(folder), manifest)

    def warm_up(self) -> None:
        """Read a few claims about a text of our own, so that the first exchange meets warmed-up weights.

        Raises:
            ModelError: the model cannot read them.
        """
        evidence = ReaderEvidence(self.tokenizer, self.manifest.input, [_WARM_UP_TEXT * 4])
        try:
            self.read([evidence.input_for(_WARM_UP_TEXT * repeats) for repeats in (1, 1, 2, 4)])
        except DetectorError as error:
            raise ModelError(f"reader {self.manifest.name} fails on a test text: {error}") from error

    def read(self, inputs: Sequence[ReaderInput], *, stop: StopCheck = lambda: False) -> NDArray[np.float32]:
        """Return the probabilities of the outcomes, shape (inputs, 3), in the order of ``inputs``.

        Raises:
            DetectorError: the model failed.
            StoppedError: ``stop`` said that the result is no longer needed.
        """
        result = np.zeros((len(inputs), len(OUTCOMES)), dtype=np.float32)
        for places in batches([len(each.ids) for each in inputs], budget_tokens=_BATCH_TOKENS):
            if stop():
                raise StoppedError
            result[places] = self._probabilities([inputs[place] for place in places])
        return result

    def _probabilities(self, inputs: Sequence[ReaderInput]) -> NDArray[np.float32]:
        longest = max(len(each.ids) for each in inputs)
        ids = np.full((len(inputs), longest), self._pad, dtype=np.int64)
        attention, claim, segments = np.zeros_like(ids), np.zeros_like(ids), np.zeros_like(ids)
        for row, each in enumerate(inputs):
            ids[row, : len(each.ids)] = each.ids
            attention[row, : len(each.ids)] = 1
            claim[row, each.claim] = 1
            if each.segments is not None:
                segments[row, : len(each.ids)] = each.segments
        given = {
            "input_ids": ids,
            "attention_mask": attention,
            "claim_mask": claim,
            "token_type_ids": segments,
        }
        try:
            logits = self._session.run([OUTPUT], {name: given[name] for name in self._inputs})[0]
        except Exception as error:  # onnxruntime raises its own kinds, none of them in one public tree
            raise DetectorError(f"the reader failed: {type(error).__name__}") from error
        logits = logits / self.manifest.temperature
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities = np.zeros((len(inputs), len(OUTCOMES)), dtype=np.float32)
        probabilities[:, self._columns] = odds / odds.sum(axis=1, keepdims=True)
        return probabilities


def find_reader(name: str, *shelves: Path) -> Path:
    """Return the folder of a reader: a path unchanged, or a name below the first of ``shelves`` that has it.

    Raises:
        ModelError: there is none.
    """
    places = (Path(name), *(shelf / name for shelf in shelves))
    found = next((each for each in places if (each / MANIFEST_NAME).is_file()), None)
    if found is None:
        raise ModelError(
            f"there is no reader {name!r}, neither as a folder nor in {' or '.join(map(str, dict.fromkeys(shelves)))}; fetch one with: truthlens models pull NAME "
            "--as reader, or name a folder that truthlens train-reader exported"
        )
    return found


def is_reader(folder: Path) -> bool:
    """Return whether the manifest of ``folder`` says that it is a reader's, whatever else is wrong with it."""
    try:
        content = json.loads((folder / MANIFEST_NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("kind") == "reader"


def load_reader_manifest(folder: Path) -> ReaderManifest:
    """Read the manifest of a reader's folder.

    Raises:
        ModelError: it is missing, no manifest of a reader, or damaged.
    """
    path = folder / MANIFEST_NAME
    try:
        return ReaderManifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise ModelError(f"{path} is missing; give the folder of a reader") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ModelError(f"{path}: {where}: {first['msg']}; export the reader again") from error
