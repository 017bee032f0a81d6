"""Measure how near claims of different answers are: sentence vectors, words and characters.

Nearness is no agreement: claims that differ in one number, or in a "not", come out as near, which is what
aligning them needs. Next to the model are two measures of what texts share literally, which see nothing of
what is said in other words. Whether one claim supports the other is for the detectors to say. No torch, and no
download at run time.
"""

from __future__ import annotations

import hashlib
import math
import re
import threading
import unicodedata
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tokenizers import Tokenizer

from truthlens.core.errors import DetectorError, ModelError
from truthlens.detection.detectors.encoder.loading import verify_files
from truthlens.detection.models.inputs.lexical import keys_of
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.detection.models.onnx_runtime import load_session
from truthlens.detection.models.runtime import batches
from truthlens.text.language import readable
from truthlens.text.words import words

MOST_CHARACTERS = 8_192
"""Of a text; what follows is not compared, copies apart."""

_GRAM_SIZES = (2, 3)
_NUMBER_WEIGHT = 3.0  # a number is one thing however few its digits, and claims are about numbers
_STOP_WEIGHT = 0.1  # enough to tell apart what has no other words
_MARKUP = re.compile(r"^\s*(?:#{1,6}|[-*+•>]|\d{1,2}[.)])\s+|\*\*|__|`", re.MULTILINE)
_RAISED = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
# What belongs to a number stays, for 1.5 is no copy of 15, and so does every sign but commas, full stops and
# the like.
_PARTS = re.compile(
    r"(?:(?<!\w)[-+−])?\.?\d+(?:[.,:/]\d+)*(?:\s?[%‰])?|[^\W\d_]+"
    r"|[^\w\s.,;:!…'\"´‘’“”„«»()\[\]{}。、「」『』·–—_-]"
)
_BLANK = re.compile(r"\s+")

MANIFEST_NAME = "manifest.json"
ONNX_NAME = "model.onnx"
TOKENIZER_NAME = "tokenizer.json"
OUTPUT_NAME = "vectors"

_INPUTS = frozenset({"input_ids", "attention_mask"})
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
        session = load_session(file, threads=threads)
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
        missing: list[tuple[str, list[int]]] = []
        for text, found in places.items():
            known = self._recent.get(text)
            if known is None:
                missing.append((text, self._tokenizer.encode(text).ids))
            else:
                result[found] = known
        for batch in batches([len(ids) for _, ids in missing], budget_tokens=_BATCH_TOKENS):
            rows = self._run([missing[index][1] for index in batch])
            for index, row in zip(batch, rows, strict=True):
                text = missing[index][0]
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


def copies(left: Sequence[str], right: Sequence[str]) -> NDArray[np.bool_]:
    """Return whether two texts have the same words in the same order, shape (left, right).

    Case, white space, quotes, list and heading marks, and punctuation that changes no number do not count; a
    question mark does. Texts without a letter, a digit or a symbol are copies of nothing.
    """
    first, second = ([_bare(text) for text in texts] for texts in (left, right))
    return np.array([[a == b and bool(a) for b in second] for a in first], dtype=bool).reshape(
        len(left), len(right)
    )


def shared_words(left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
    """Return the share of their words that two texts have in common, 0..1, shape (left, right).

    Words count by stem and numbers by value, each by its rarity among all texts of the call: twice the weight
    of what is shared, over the weight of both.
    """
    return _shared(left, right, _word_counts)


def shared_characters(left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
    """Return the share of characters, by twos and threes, and of numbers that two texts share, 0..1.

    Shape (left, right). Works for scripts without spaces; rarity counts as in ``shared_words``.
    """
    return _shared(left, right, _gram_counts)


def _shared(
    left: Sequence[str], right: Sequence[str], count: Callable[[str], Mapping[str, float]]
) -> NDArray[np.float32]:
    first, second = ([count(text[:MOST_CHARACTERS]) for text in texts] for texts in (left, right))
    rows = [*first, *second]
    holders = Counter(key for row in rows for key in row)
    rarity = {key: math.log(1.0 + len(rows) / number) for key, number in holders.items()}
    place = {key: number for number, key in enumerate(rarity)}
    weights = np.zeros((len(rows), len(place)))
    for row, counts in zip(weights, rows, strict=True):
        for key, number in counts.items():
            row[place[key]] = number * rarity[key]
    whole = weights.sum(axis=1)
    ours, theirs = weights[: len(first)], weights[len(first) :]
    found = np.zeros((len(first), len(second)), dtype=np.float32)
    for number, row in enumerate(ours):
        used = np.flatnonzero(row)
        common = np.minimum(theirs[:, used], row[used]).sum(axis=1)
        both = whole[number] + whole[len(first) :]
        np.divide(2.0 * common, both, out=found[number], where=both > 0.0, casting="unsafe")
    return np.minimum(found, 1.0)


def _word_counts(text: str) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for word in words(text):
        weight = _STOP_WEIGHT if word.stop and not word.negation else 1.0
        for key in keys_of(word):
            found[key] = max(weight, found.get(key, 0.0))
    return found


def _gram_counts(text: str) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for word in words(text):
        for value in word.numbers:
            found[f"number {value}"] = _NUMBER_WEIGHT
    plain = f" {_plain(text)} "
    for size in _GRAM_SIZES:
        for start in range(len(plain) - size + 1):
            gram = plain[start : start + size]
            if not gram.isspace():
                found[gram] = found.get(gram, 0.0) + 1.0
    return found


def _plain(text: str) -> str:
    kept = "".join(c if c.isalnum() else " " for c in unicodedata.normalize("NFKC", text).casefold())
    return _BLANK.sub(" ", kept).strip()


def _bare(text: str) -> tuple[str, ...]:
    """Return the words, numbers and symbols of a text, without what is not compared."""
    plain = _RAISED.sub(r"^\g<0>", _MARKUP.sub("", text))  # else 10² would fold to 102
    folded = unicodedata.normalize("NFKC", plain).casefold()
    return tuple(_BLANK.sub("", part).replace("−", "-").removeprefix("+") for part in _PARTS.findall(folded))
