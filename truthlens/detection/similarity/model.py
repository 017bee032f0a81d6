"""Measure how near claims of different answers are: sentence vectors, words and characters.

Nearness is no agreement: claims that differ in one number, or in a "not", come out as near, which is what
aligning them needs. Whether one supports the other is for the detectors to say. No torch, and no download at
run time.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tokenizers import Tokenizer

from truthlens.core.errors import DetectorError, ModelError
from truthlens.detection.encoder.inputs.windows import load_tokenizer
from truthlens.detection.models.loading import verify_files
from truthlens.detection.similarity.lexical import MOST_CHARACTERS, copies, shared_characters, shared_words
from truthlens.text.language import readable

MANIFEST_NAME = "manifest.json"
ONNX_NAME = "model.onnx"
TOKENIZER_NAME = "tokenizer.json"
OUTPUT_NAME = "vectors"

_INPUTS = frozenset({"input_ids", "attention_mask"})
_ERRORS_ONLY = 3
_BATCH_TOKENS = 256  # of 1,024 each takes a third longer: their activations do not fit a core's cache
_REMEMBERED = 1024


class SimilarityManifest(BaseModel):
    """What the folder of a similarity model says about itself.

    ``kind`` tells it from a detector's. ``files`` maps names to SHA-256 digests (hex); loading refuses what
    differs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    kind: Literal["similarity"] = "similarity"
    name: str
    base: str
    licence: str
    dimension: int = Field(ge=1)
    max_tokens: int = Field(ge=8)
    languages: tuple[str, ...]
    figures: dict[str, Any] = Field(default_factory=dict)
    files: dict[str, Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]]


class Similarity:
    """Compares short texts by meaning; safe to use from several threads.

    Args:
        session: the graph: token ids and mask in, unit vectors out.
        tokenizer: the model's own; it is set to cut texts at the manifest's ``max_tokens``.
        manifest: of the model's folder.
    """

    def __init__(
        self, session: ort.InferenceSession, tokenizer: Tokenizer, manifest: SimilarityManifest
    ) -> None:
        self.manifest = manifest
        self._session = session
        self._tokenizer = tokenizer
        self._tokenizer.enable_truncation(max_length=manifest.max_tokens)
        self._recent = _Recent(_REMEMBERED)

    @classmethod
    def load(cls, folder: Path, *, threads: int = 1) -> Similarity:
        """Load the model of ``folder``; it is not yet warm.

        Args:
            folder: holds ``manifest.json``, ``model.onnx`` and ``tokenizer.json``.
            threads: threads inside one inference.

        Raises:
            ModelError: the folder cannot be used; the message says why and what to do.
        """
        manifest = load_similarity_manifest(folder)
        _verify(folder, manifest)
        file = folder / ONNX_NAME
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            session = ort.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime raises its own kinds, none of them in one public tree
            raise ModelError(
                f"{file}: not a loadable ONNX model ({type(error).__name__}); build the folder again"
            ) from error
        inputs = {node.name for node in session.get_inputs()}
        outputs = {node.name: node.shape for node in session.get_outputs()}
        if (
            inputs != _INPUTS
            or list(outputs) != [OUTPUT_NAME]
            or outputs[OUTPUT_NAME][-1] != manifest.dimension
        ):
            raise ModelError(
                f"{file}: the graph takes {', '.join(sorted(inputs))} and gives {outputs}; expected input_ids and "
                f"attention_mask, and {OUTPUT_NAME} of width {manifest.dimension}: build the folder again"
            )
        return cls(session, load_tokenizer(folder), manifest)

    def similar(self, left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
        """Return how near each text of ``left`` is to each of ``right``, 0..1, shape (left, right).

        Where the model reads both texts, the mean of their vectors' cosine (below zero: 0), of the words and
        of the characters that they share; else their shared characters and numbers alone. Sentences of
        answers to one question are all about one subject, which is why the vectors alone do worse
        (docs/similarity.md). Copies, but for case, punctuation and markup, are 1.0. Rarity counts over the
        texts of the call, so that a figure depends a little on the texts around it.

        Raises:
            DetectorError: the model failed.
        """
        if not left or not right:
            return np.zeros((len(left), len(right)), dtype=np.float32)
        result = shared_characters(left, right)
        ours, theirs = (
            [place for place, text in enumerate(texts) if self.reads(text)] for texts in (left, right)
        )
        if ours and theirs:
            vectors = self.embed([*(left[place] for place in ours), *(right[place] for place in theirs)])
            cosine = np.clip(vectors[: len(ours)] @ vectors[len(ours) :].T, 0.0, 1.0)
            read = np.ix_(ours, theirs)
            result[read] = (cosine + shared_words(left, right)[read] + result[read]) / 3.0
        result[copies(left, right)] = 1.0
        return result

    def reads(self, text: str) -> bool:
        """Return whether the model reads ``text``: it is in a script of its languages.

        If not, meaning is not compared.
        """
        return readable(text[:MOST_CHARACTERS], self.manifest.languages)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of length 1, shape (texts, dimension); each depends only on its own text.

        Raises:
            DetectorError: the model failed.
        """
        result = np.empty((len(texts), self.manifest.dimension), dtype=np.float32)
        places: dict[str, list[int]] = {}
        for place, text in enumerate(texts):
            # Half a surrogate pair, which JSON may hold, is no text to the tokenizer.
            whole = text[:MOST_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
            places.setdefault(whole, []).append(place)
        missing: dict[str, list[int]] = {}
        for text, found in places.items():
            known = self._recent.get(text)
            if known is None:
                missing[text] = self._tokenizer.encode(text).ids
            else:
                result[found] = known
        for batch in _batches(missing):
            rows = self._run([missing[text] for text in batch])
            for text, row in zip(batch, rows, strict=True):
                result[places[text]] = row
                self._recent.put(text, row)
        return result

    def warm_up(self) -> None:
        """Run the model once, on a short and a long text.

        Raises:
            DetectorError: the model failed.
        """
        self._run([self._tokenizer.encode(text).ids for text in ("a", "a " * self.manifest.max_tokens)])

    def _run(self, ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        shape = (len(ids), max(map(len, ids)))
        tokens, mask = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        for row, own in enumerate(ids):
            tokens[row, : len(own)] = own
            mask[row, : len(own)] = 1
        try:
            (vectors,) = self._session.run([OUTPUT_NAME], {"input_ids": tokens, "attention_mask": mask})
        except Exception as error:  # onnxruntime raises its own kinds, none of them in one public tree
            raise DetectorError(f"{self.manifest.name} failed on a batch ({type(error).__name__})") from error
        return np.asarray(vectors, dtype=np.float32)


class _Recent:
    """The vectors of the last texts; a panel compares each answer with every other.

    Keeps no text, only its digest.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._rows: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str) -> NDArray[np.float32] | None:
        key = _key(text)
        with self._lock:
            row = self._rows.get(key)
            if row is not None:
                self._rows.move_to_end(key)
            return row

    def put(self, text: str, row: NDArray[np.float32]) -> None:
        key = _key(text)
        with self._lock:
            # A copy, because a row is a view that would keep its whole batch.
            self._rows[key] = row.copy()
            self._rows.move_to_end(key)
            while len(self._rows) > self._size:
                self._rows.popitem(last=False)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest()


def _batches(ids: dict[str, list[int]]) -> Iterator[list[str]]:
    """Yield the texts in batches of about one length: little padding, and no batch of many tokens."""
    batch: list[str] = []
    for text in sorted(ids, key=lambda text: len(ids[text])):
        if batch and (len(batch) + 1) * len(ids[text]) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


def load_similarity_manifest(folder: Path) -> SimilarityManifest:
    """Load the manifest of a similarity model's folder.

    Raises:
        ModelError: there is none, or it is of another kind or damaged.
    """
    path = folder / MANIFEST_NAME
    if not path.is_file():
        raise ModelError(f"{path} is missing; give the folder of a similarity model")
    try:
        return SimilarityManifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ModelError(
            f"{path}: {where}: {first['msg']}; give the folder of a similarity model, or build it again"
        ) from error


def _verify(folder: Path, manifest: SimilarityManifest) -> None:
    for name in (ONNX_NAME, TOKENIZER_NAME):
        if name not in manifest.files:
            raise ModelError(
                f"{folder / name} is missing or not listed in {MANIFEST_NAME}; fetch the model again"
            )
    verify_files(folder, manifest.files)
