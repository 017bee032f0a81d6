"""Measure what each ingredient of the bundled model gives: short training runs, each without one.

python bench/detection/ablation.py --data FOLDER [--rows 300] [--variants all,no-pairs] [--out bench/results]

Every variant sees the same number of rows of every source (``--rows``), for one epoch, from the same seed.
Figures are AUROCs on the calibration side of the main data and on held-out rows of the other sources.
Trainings are kept under ``--runs`` and not run again, so that the benchmark can be interrupted. About ten
minutes a variant on two cores.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
from pathlib import Path

from rich.console import Console

from truthlens.training.train.recipe import MAIN_SOURCE
from truthlens.training.train.trainer import SUMMARY, TrainSettings, train

VARIANTS: dict[str, dict[str, object]] = {
    "all": {},
    "no-lexical-features": {"feature_dropout": 1.0},
    "no-comparison": {"comparison": False},
    "no-generated-answers": {"generated": False},
    "no-pairs-in-loss": {"contrast": 0.0},
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--runs", type=Path, default=Path("runs/ablation"))
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    options = parser.parse_args()
    console = Console(stderr=True)
    rows = []
    for name in options.variants.split(","):
        run = options.runs / f"{name}-{options.rows}-{options.seed}"
        if not (run / SUMMARY).is_file():
            console.print(f"variant {name}")
            settings = TrainSettings(
                data=options.data, run=run, epochs=1, minutes=1e6, limit=options.rows, threads=options.threads,
                seed=options.seed, **VARIANTS[name],
            )  # fmt: skip
            train(settings, console=console)
        summary = json.loads((run / SUMMARY).read_bytes())
        figures = summary["mean"] or summary["epochs"][-1]
        others = [row["auroc"] for source, row in figures.items() if source != MAIN_SOURCE]
        rows.append(
            {
                "variant": name,
                "auroc": figures[MAIN_SOURCE]["auroc"],
                "others": round(statistics.mean(others), 4),
                "figures": figures,
                "steps": summary["steps"],
            }
        )
    result = {
        "machine": f"{platform.processor() or platform.machine()}, {options.threads} threads, Python {platform.python_version()}",
        "rows_of_each_source": options.rows,
        "seed": options.seed,
        "variants": rows,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "ablation.json").write_text(json.dumps(result, indent=2) + "\n")
    print("| variant | steps | AUROC, main data | mean AUROC, other data |\n| --- | --- | --- | --- |")
    for row in rows:
        print(f"| {row['variant']} | {row['steps']} | {row['auroc']:.3f} | {row['others']:.3f} |")


if __name__ == "__main__":
    main()
