"""Write one side of the bundled model's split as JSON lines, a file a source, to evaluate on.

python -m bench.common.held_out --data FOLDER --out FOLDER [--side test]

``FOLDER`` holds the labelled files that ``truthlens train`` reads. Rows leave as they came, with every field.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from bench.common.script import command
from truthlens.lab.data.dataset import data_files, numbered_lines, read_examples, split_of
from truthlens.lab.train.recipe import BUNDLED_RECIPE


def main() -> None:
    parser = command(__doc__, results=False)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--side", choices=("calibration", "test"), default="test")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[str]] = defaultdict(list)
    for file in data_files(options.data):
        lines = [line for _, line in numbered_lines(file)]
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
