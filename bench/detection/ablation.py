"""Measure what each ingredient of the bundled model gives: short trainings of equal steps, each without one.

python -m bench.detection.ablation --data FOLDER --start models/truthlens-minilm-en-v2 [--steps 100] [--variants all,no-twins]

Every variant goes on from the same weights (``--start``; without it, from the bare base), for the same number of batches
of the same size, from the same seed. Figures: AUROC on the calibration side of the main data and, as a mean, on held-out rows
of the other sources; and on test twins, twin and pairwise ranking, which a model that does not read ranks at .5.
Trainings are kept under ``--runs`` and not run again, so that the benchmark can be interrupted. About seven
minutes a variant on one core.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from bench.common.script import command, machine, write_result
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.lab.data.dataset import Example, Mixture, Recipe
from truthlens.lab.data.evidence_twins import EVIDENCE_TWINS
from truthlens.lab.data.twins import SOURCE as TWINS
from truthlens.lab.data.twins import read_twin_folder, twin_examples
from truthlens.lab.evaluate.ranking import pairwise_ranking, twin_ranking
from truthlens.lab.export.export import load_run
from truthlens.lab.markdown import table
from truthlens.lab.train.blind import blinded
from truthlens.lab.train.model import BUNDLED_BASE
from truthlens.lab.train.predict import predict, response_hazard
from truthlens.lab.train.recipe import BUNDLED_RECIPE, INPUT, MAIN_SOURCE
from truthlens.lab.train.trainer import SUMMARY, TrainSettings, train


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings that differ from the full training, and sources that are left out."""

    settings: dict[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()


VARIANTS: dict[str, Variant] = {
    "start": Variant({"steps": 0}),
    "all": Variant(),
    "no-alignment": Variant({"features": "lexical-v1"}),
    "no-lexical-features": Variant({"features": None}),
    "no-comparison": Variant({"comparison": False}),
    "no-twins": Variant({"twins": None}),
    "no-evidence-twins": Variant(without=(EVIDENCE_TWINS,)),
    "no-generated-answers": Variant({"generated": False}),
    "no-pairs-in-loss": Variant({"contrast": 0.0}),
    "blind-query": Variant({"blind": "query"}),
}


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--twins", type=Path, default=Path("data/twins/test"))
    parser.add_argument("--start", type=Path)
    parser.add_argument("--base", default=BUNDLED_BASE, help="folder of the encoder that is trained")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rows", type=int, default=100, help="at most, of each source")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--runs", type=Path, default=Path("runs/ablation"))
    options = parser.parse_args()
    console = Console(stderr=True)
    twins = twin_examples(read_twin_folder(options.twins))
    rows = []
    for name in options.variants.split(","):
        start = options.start.name if options.start else "base"
        run = options.runs / f"{name}-{start}-{options.rows}-{options.steps}-{options.seed}"
        common = TrainSettings(
            data=options.data, run=run, base=options.base, epochs=20, minutes=1e6, steps=options.steps, threads=options.threads,
            batch_tokens=4_000, learning_rate=8e-5, head_learning_rate=6e-4, seed=options.seed, start=options.start,
        )  # fmt: skip
        settings = replace(common, **VARIANTS[name].settings)
        if not (run / SUMMARY).is_file():
            console.print(f"variant {name}")
            train(settings, recipe=_recipe(options.rows, VARIANTS[name].without), console=console)
        rows.append({"variant": name, **_figures(settings, twins)})
    result = {
        "machine": machine(f"{options.threads} threads"),
        "steps": options.steps,
        "rows_of_each_source": options.rows,
        "start": options.start.name if options.start else "",
        "seed": options.seed,
        "variants": rows,
    }
    write_result(options.out, "ablation", result)
    head = (
        "variant",
        "steps",
        "twin ranking",
        "pairwise ranking",
        "AUROC, main data",
        "mean AUROC, other data",
    )
    keys = ("twins", "pairwise", "auroc", "others")
    print(
        table(
            head, ([row["variant"], str(row["steps"]), *(f"{row[key]:.3f}" for key in keys)] for row in rows)
        )
    )


def _recipe(rows: int, without: Sequence[str]) -> Recipe:
    """Return the bundled recipe with few rows of each source; as in the whole of it, a third of them are twins."""
    mixture = {
        source: Mixture(min(each.rows, rows), each.weight) for source, each in BUNDLED_RECIPE.mixture.items()
    }
    mixture[TWINS] = replace(BUNDLED_RECIPE.mixture[TWINS], rows=rows * 10)
    mixture[EVIDENCE_TWINS] = Mixture(rows * 5)
    mixture.update({source: Mixture(rows=0) for source in without})
    return replace(BUNDLED_RECIPE, mixture=mixture, default_mixture=Mixture(rows))


def _figures(settings: TrainSettings, twins: Sequence[Example]) -> dict[str, object]:
    summary = json.loads((settings.run / SUMMARY).read_bytes())
    figures = summary["mean"] or summary["epochs"][-1]
    model = load_run(settings.run)
    model.compares = settings.comparison
    torch.set_num_threads(settings.threads)
    fmt = INPUT.model_copy(update={"features": settings.features})
    margins = predict(model, load_tokenizer(settings.run), blinded(twins, settings.blind), fmt=fmt)
    scores = [response_hazard(tokens) for tokens in margins]
    others = [row["auroc"] for source, row in figures.items() if source != MAIN_SOURCE and row["auroc"]]
    return {
        "steps": summary["steps"],
        "twins": twin_ranking(twins, scores),
        "pairwise": pairwise_ranking(twins, scores),
        "auroc": figures[MAIN_SOURCE]["auroc"],
        "others": round(statistics.mean(others), 4),
        "figures": figures,
    }


if __name__ == "__main__":
    main()
