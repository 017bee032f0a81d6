"""Check the promised miss rate: calibrate on half of the source texts, often, and measure on the rest.

python -m bench.detection.miss_rate FILE... [--model NAME] [--split test] [--rounds 500] [--limit N]

Files are scored once; the rounds only draw halves, so they cost little.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import numpy as np
from rich.console import Console

from bench.common.script import command, write_result
from truthlens.cli.plan_target import find_target, offline_settings
from truthlens.lab.calibrate.conformal import UnattainableError, control_miss_rate
from truthlens.lab.calibrate.threshold import LabelledScores, score_labelled
from truthlens.lab.data.dataset import read_examples, split
from truthlens.lab.train.recipe import BUNDLED_RECIPE

RATES = (0.02, 0.05, 0.1, 0.2)


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--model")
    parser.add_argument("--split", choices=("all", "calibration", "test"), default="test")
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    target = find_target(offline_settings(None, None), "default", model=options.model)
    target.announce()
    found = []
    with target.scorer() as scorer:
        for file in options.files:
            examples = read_examples(file)
            if options.split != "all":
                examples = split(examples, BUNDLED_RECIPE)[options.split]
            scored = score_labelled(
                examples[: options.limit], scorer.verdict_on, console=Console(stderr=True), title=file.name
            )
            found += [{"file": file.name, **halves(scored, rate, rounds=options.rounds)} for rate in RATES]
    for row in found:
        print(json.dumps(row))
    result = {"model": target.identity.name, "split": options.split, "rows": found}
    write_result(options.out, "miss_rate", result)


def halves(scored: LabelledScores, rate: float, *, rounds: int) -> dict[str, object]:
    """Return miss rate (mean over source texts) and flagged supported share on the other halves."""
    dice = np.random.default_rng(0)
    groups = np.array(scored.groups)
    names = np.unique(groups)
    missed, flagged, refused = [], [], 0
    for _ in range(rounds):
        mine = np.isin(groups, dice.permutation(names)[: len(names) // 2])
        own, others = mine & scored.labels, ~mine & scored.labels
        try:
            threshold = control_miss_rate(
                scored.scores[own], groups[own].tolist(), max_miss_rate=rate
            ).threshold
        except UnattainableError:
            refused += 1
            continue
        lost = scored.scores < threshold
        texts = np.unique(groups[others])
        if len(texts):
            missed.append(float(np.mean([lost[others & (groups == name)].mean() for name in texts])))
        if (rest := ~mine & ~scored.labels).any():
            flagged.append(float((~lost[rest]).mean()))
    return {
        "max_miss_rate": rate,
        "unsupported": int(scored.labels.sum()),
        "texts": len(np.unique(groups[scored.labels])),
        "missed_mean": round(statistics.fmean(missed), 4) if missed else None,
        "missed_sd": round(statistics.pstdev(missed), 4) if missed else None,
        "supported_flagged": round(statistics.fmean(flagged), 4) if flagged else None,
        "refused": refused,
    }


if __name__ == "__main__":
    main()
