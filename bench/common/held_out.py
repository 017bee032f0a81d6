"""Write one side of the bundled model's split as JSON lines, a file a source, to evaluate on.

python bench/common/held_out.py --data FOLDER --out FOLDER [--side test]

``FOLDER`` holds the labelled files that ``truthlens train`` reads. Rows leave as they came, with every field.
"""

from __future__ import annotations

import argparse
import gzip
from collections import defaultdict
from pathlib import Path

from truthlens.training.data.dataset import read_examples, split_of
from truthlens.training.train.recipe import BUNDLED_RECIPE


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--side", choices=("calibration", "test"), default="test")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[str]] = defaultdict(list)
    for file in sorted([*options.data.glob("*.jsonl"), *options.data.glob("*.jsonl.gz")]):
        opener = gzip.open if file.suffix == ".gz" else open
        with opener(file, "rt", encoding="utf-8") as stream:
            lines = [line for line in stream if line.strip()]
        for line, example in zip(lines, read_examples(file), strict=True):
            shares = BUNDLED_RECIPE.shares.get(example.source, BUNDLED_RECIPE.default_shares)
            if split_of(example.group, shares) == options.side:
                rows[example.source].append(line.rstrip("\n"))
    for source, lines in sorted(rows.items()):
        path = options.out / f"{source}.jsonl"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{path}: {len(lines)} rows")


if __name__ == "__main__":
    main()
