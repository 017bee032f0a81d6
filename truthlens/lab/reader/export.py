"""Write a trained reader as a model folder: ONNX with smoothed int8 products, compared with the float weights."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx.external_data_helper import set_external_data

from truthlens.core.errors import ModelError
from truthlens.detection.detectors.reader.inputs import ReaderEvidence, ReaderInput, format_of
from truthlens.detection.detectors.reader.model import (
    INPUTS,
    MANIFEST_NAME,
    ONNX_NAME,
    TABLE_NAME,
    TOKENIZER_NAME,
    Reader,
    ReaderManifest,
)
from truthlens.detection.models.fingerprint import sha256_of
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.lab.data.dataset import Example
from truthlens.lab.export.convert import sum_residuals, trace
from truthlens.lab.export.rounding import channel_reaches, round_products, round_tables, smooth_products
from truthlens.lab.reader.batches import pad
from truthlens.lab.reader.claims import SUPPORTED, LabelledClaim
from truthlens.lab.reader.model import ReaderModel, read_trained, restore_reader

_SMOOTHED_EVERY = 6
"""Every so many rows are read to see how far activations reach."""


@dataclass(frozen=True, slots=True)
class ReaderParity:
    """How far the folder's probabilities are from the float weights', over ``claims`` claims."""

    claims: int
    change_mean: float
    change_p99: float
    change_max: float
    megabytes: float


def export_reader(
    weights: Path,
    output: Path,
    *,
    base: Path,
    rows: Sequence[Example],
    layers: int | None = None,
    licence: str = "Apache-2.0",
    change_p99: float = 0.05,
) -> ReaderParity:
    """Write the model folder ``output`` from the trained weights of a reader.

    Args:
        weights: ``average.safetensors`` of ``train_reader``.
        output: the folder to write; its name becomes the model's.
        base: the Hugging Face folder that was trained from.
        rows: answers over whose claims the rounded model is compared with the float one.
        layers: as in the recipe of the run.
        licence: of the weights.
        change_p99: most that the 99th percentile of a probability's change may be.

    Raises:
        ModelError: rounding changes too much; nothing is written.
    """
    trained, pairs = read_trained(weights)
    model = restore_reader(base, trained, layers=layers).eval()
    tokenizer = load_tokenizer(base)
    fmt = format_of(tokenizer)
    probes = [
        (claim, ReaderEvidence(tokenizer, fmt, row.context).input_for(row.response, query=row.query))
        for row in rows
        if (claim := LabelledClaim(row.response, row.context, row.query, SUPPORTED, row))
    ]
    expected = _float_probabilities(model, probes, pad_id=tokenizer.token_to_id(fmt.pad) or 0)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        write_graph(model, place / ONNX_NAME, [read for _, read in probes[::_SMOOTHED_EVERY]])
        tokenizer.save(str(place / TOKENIZER_NAME), pretty=False)
        manifest = ReaderManifest(
            name=output.name,
            base=base.name,
            licence=licence,
            languages=("en",),
            input=fmt,
            files={name: sha256_of(place / name) for name in (ONNX_NAME, TABLE_NAME, TOKENIZER_NAME)},
        )
        (place / MANIFEST_NAME).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
        found = Reader.load(place).read([read for _, read in probes])
        change = np.abs(found - expected).max(axis=1)
        parity = ReaderParity(
            len(probes),
            round(float(change.mean()), 5),
            round(float(np.quantile(change, 0.99)), 5),
            round(float(change.max()), 5),
            round(sum((place / name).stat().st_size for name in (ONNX_NAME, TABLE_NAME)) / 1e6, 1),
        )
        if parity.change_p99 > change_p99:
            raise ModelError(
                f"rounding changes the 99th percentile of probabilities by {parity.change_p99} (allowed {change_p99}); "
                "nothing was written"
            )
        manifest = manifest.model_copy(update={"figures": {"claims_seen": pairs, "int8": asdict(parity)}})
        (place / MANIFEST_NAME).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
        output.mkdir(parents=True, exist_ok=True)
        # The manifest last: cut short before it, the digests no longer fit and loading says so.
        for name in (ONNX_NAME, TABLE_NAME, TOKENIZER_NAME, MANIFEST_NAME):
            partial = output / f".partial-{name}"
            partial.write_bytes((place / name).read_bytes())
            partial.replace(output / name)
    return parity


def write_graph(model: ReaderModel, file: Path, inputs: Sequence[ReaderInput]) -> None:
    """Write ``model`` as ONNX with embeddings and products in int8; the embeddings go into a file of their own.

    Activations are rounded token by token, after those channels that reach far over ``inputs`` are scaled down.
    """
    trace(model.eval(), file, names=INPUTS, per_token=False)
    graph = onnx.load(str(file))
    sum_residuals(graph)
    reaches = channel_reaches(graph, map(_feed, inputs), scratch=file)
    rounded = round_products(round_tables(smooth_products(graph, reaches)))
    table = max(rounded.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    set_external_data(table, location=TABLE_NAME)
    onnx.save(rounded, str(file))


def _feed(read: ReaderInput) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    claim = np.zeros((1, len(read.ids)), dtype=np.int64)
    claim[0, read.claim] = 1
    return dict(zip(INPUTS, (read.ids[None], np.ones_like(claim), claim), strict=True))


def _float_probabilities(
    model: ReaderModel, probes: Sequence[tuple[LabelledClaim, ReaderInput]], *, pad_id: int
) -> np.ndarray[Any, np.dtype[np.float32]]:
    found = []
    for first in range(0, len(probes), 16):
        batch = pad([list(probes[first : first + 16])], pad_id=pad_id)
        with torch.inference_mode():
            logits = model(batch.input_ids, batch.attention_mask, batch.claim_mask)
        found.append(torch.softmax(logits, dim=-1))
    return np.asarray(torch.cat(found).numpy(), dtype=np.float32)
