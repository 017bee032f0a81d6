"""Make a reader of any sequence classifier that tells inference: exported, rounded, and compared with the original.

What the folder of the checkpoint says is read by ``reader_source``.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import nn

from truthlens.core.errors import ModelError
from truthlens.detection.detectors.reader.inputs import ReaderEvidence, ReaderFormat, ReaderInput
from truthlens.detection.detectors.reader.model import (
    MANIFEST_NAME,
    ONNX_NAME,
    OUTCOMES,
    PAIR_INPUTS,
    TOKENIZER_NAME,
    Reader,
    ReaderManifest,
)
from truthlens.detection.detectors.reader.template import SENTENCE_PAIR
from truthlens.detection.models.fingerprint import sha256_of
from truthlens.detection.models.torch_runtime import load_classifier
from truthlens.lab.export.convert import LARGEST_FILE, StockClassifier, sum_residuals, trace
from truthlens.lab.export.model_folder import write_manifest
from truthlens.lab.export.parity_inputs import samples
from truthlens.lab.export.reader_source import (
    card_of,
    check_weights,
    labels_of,
    source_config,
    source_format,
    source_tokenizer,
)
from truthlens.lab.export.rounding import round_products, round_tables

_TOLERANCE = 1e-4
_ROUNDING_P99 = 0.02


@dataclass(frozen=True, slots=True)
class ReaderWishes:
    """What only the operator can say of a checkpoint.

    ``labels`` are the classes in order, where ``id2label`` does not tell; ``template`` where evidence and claim stand in what it reads;
    ``evidence_tokens`` how much evidence is read with a claim.
    """

    labels: tuple[str, ...] | None = None
    template: str = SENTENCE_PAIR
    evidence_tokens: int = 96


@dataclass(frozen=True, slots=True)
class Conversion:
    """How far the folder's probabilities are from those of the checkpoint in PyTorch, over ``pairs`` pairs of our own.

    ``export`` is the largest difference of the float graph, ``rounding_p99`` the 99th percentile of the difference of the int8 one,
    which is kept where ``rounded``.
    """

    manifest: ReaderManifest
    pairs: int
    export: float
    rounding_p99: float
    rounded: bool
    megabytes: float


def convert_reader(
    folder: Path, output: Path, wishes: ReaderWishes, *, base: str, commit: str = "", threads: int = 1
) -> Conversion:
    """Write the reader ``output``, a new folder, from the Hugging Face folder ``folder``.

    Args:
        folder: ``config.json``, safetensors and tokenizer of a sequence classifier of one of ``LAYOUTS``.
        output: the folder to make; its name becomes the reader's.
        wishes: what the folder does not say.
        base: where it comes from, for the manifest.
        commit: of ``base`` on a hub.
        threads: of the comparison.

    Raises:
        ModelError: it is no such folder, its classes cannot be told, or the graph does not compute what the checkpoint does. Nothing
            is written then.
    """
    config = source_config(folder, base)
    labels = labels_of(config, wishes.labels, where=base)
    check_weights(folder, base)
    tokenizer = source_tokenizer(folder, base)
    fmt = source_format(config, tokenizer, wishes.template, wishes.evidence_tokens, base)
    model = load_classifier(folder, precision="float32", attention="eager", kind="Sequence")
    weights = sum(parameter.numel() for parameter in model.parameters()) * 4
    if weights > LARGEST_FILE:
        raise ModelError(
            f"{base} is too large: {weights / 1e9:.1f} GB in float32, at most {LARGEST_FILE / 1e9:.1f}; take a smaller checkpoint, or serve"
            " it with vLLM and ask it as a judge"
        )
    graph = StockClassifier(model, segments=(config.get("type_vocab_size") or 0) > 1).eval()
    names = PAIR_INPUTS if graph.segments else PAIR_INPUTS[:2]
    probes = _probes(tokenizer, fmt)
    expected = _probabilities(graph, probes, len(labels), threads=threads)
    licence, languages = card_of(folder)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "made"
        place.mkdir()
        tokenizer.save(str(place / TOKENIZER_NAME), pretty=False)
        manifest = ReaderManifest(
            name=output.name, base=base, commit=commit, licence=licence, languages=languages, labels=labels, input=fmt, files={}
        )  # fmt: skip
        trace(graph, place / ONNX_NAME, names=names, per_token=False)
        del model, graph
        exact = onnx.load(str(place / ONNX_NAME))
        sum_residuals(exact)

        columns = [OUTCOMES.index(label) for label in labels]

        def measured(made: onnx.ModelProto) -> NDArray[np.floating[Any]]:
            onnx.save(made, str(place / ONNX_NAME))
            _write_manifest(place, manifest)
            found = Reader.load(place, threads=threads).read(probes)
            change: NDArray[np.floating[Any]] = np.abs(found[:, columns] - expected).max(axis=1)
            return change

        export = float(measured(exact).max())
        if not export <= _TOLERANCE:
            raise ModelError(
                f"{base}: the exported graph differs from the checkpoint by {export:.2g} in probability, expected at most {_TOLERANCE}; "
                "nothing was written: use the versions of torch and transformers that the project names"
            )
        change = float(np.quantile(measured(round_products(round_tables(exact))), 0.99))
        rounded = change <= _ROUNDING_P99
        if not rounded:
            measured(exact)
        figures = {
            "pairs": len(probes),
            "export_max": export,
            "int8_p99": round(change, 5),
            "weights": "int8" if rounded else "float32",
        }
        written = _write_manifest(place, manifest.model_copy(update={"figures": figures}))
        megabytes = round((place / ONNX_NAME).stat().st_size / 1e6, 1)
        output.parent.mkdir(parents=True, exist_ok=True)
        partial = output.with_name(f".partial-{output.name}")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(place, partial)
        partial.rename(output)
    return Conversion(written, len(probes), export, change, rounded, megabytes)


def _probes(tokenizer: Tokenizer, fmt: ReaderFormat) -> list[ReaderInput]:
    """Return pairs of our own: each claim of each fixture against the evidence of each, so that some are true and most are not."""
    texts = samples()
    claims = [sentence for text in texts for sentence in text.answer.split(". ")]
    claims += [sentence for text in texts for sentence in text.passages[0].split(". ")[:3]]
    found = []
    for text in texts[:4]:
        evidence = ReaderEvidence(tokenizer, fmt, text.passages)
        found += [evidence.input_for(claim, query=text.query) for claim in claims]
    return found


def _probabilities(
    graph: nn.Module, probes: Sequence[ReaderInput], classes: int, *, threads: int
) -> NDArray[np.float32]:
    rows = []
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for probe in probes:
            ids = torch.from_numpy(probe.ids)[None]
            segments = torch.from_numpy(probe.segments)[None]
            with torch.inference_mode():
                rows.append(torch.softmax(graph(ids, torch.ones_like(ids), segments), dim=-1)[0].numpy())
    finally:
        torch.set_num_threads(before)
    found = np.array(rows, dtype=np.float32)
    if found.shape[1:] != (classes,):
        raise ModelError(
            f"the checkpoint gives {found.shape[-1]} logits a pair, and config.json names {classes} classes; mend id2label in a copy of it"
        )
    if not np.isfinite(found).all():
        raise ModelError("the checkpoint gives figures that are no numbers; fetch it again")
    return found


def _write_manifest(place: Path, manifest: ReaderManifest) -> ReaderManifest:
    """Write ``manifest`` with the digests of all files of ``place``."""
    files = {file.name: sha256_of(file) for file in sorted(place.iterdir()) if file.name != MANIFEST_NAME}
    written = manifest.model_copy(update={"files": files})
    write_manifest(place, written)
    return written
