"""Measure what each mode does to real answers, by people's marks and not by our detector.

python -m bench.mitigation.run --data FOLDER [--rows 492] [--modes standard premium] [--out bench/results]

Held-out prompts of RAGTruth were each answered by four models; people marked the unsupported spans. Detection
is the bundled model. The models that a mode calls are scripted from these answers and from an honest,
imperfect editor and judge (``simulation/editor``, ``simulation/panel``). Every finished exchange is kept in
OUT/mitigation/, one file a configuration, so that a run can be broken off and taken up again; files of other
code are begun anew.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.common.script import command, machine
from bench.mitigation.configurations import Configuration, configurations
from bench.mitigation.data import Case, held_out
from bench.mitigation.plot import draw
from bench.mitigation.report import figures, table
from bench.mitigation.scoring import Detector
from bench.mitigation.simulation.backend import Speed
from bench.mitigation.simulation.clock import simulate
from bench.mitigation.simulation.exchange import exchange
from truthlens.process.settings import models_folder

MODEL = "truthlens-minilm-en-v2"
SIMILARITY = "truthlens-similarity-en-v1"


class Checkpoint:
    """The finished exchanges of one configuration, a JSON line each; ``version`` names code and settings."""

    def __init__(self, folder: Path, configuration: Configuration, version: str) -> None:
        name = "".join(c if c.isalnum() or c in "-_.=@+" else "-" for c in configuration.name)
        self._path = folder / f"{name}.jsonl"
        self.rows: dict[str, dict[str, Any]] = {}
        head = json.dumps({"version": version, "configuration": repr(configuration)})
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        if lines and lines[0] == head:
            for line in lines[1:]:
                try:
                    row = json.loads(line)
                except ValueError:
                    break  # the line that was being written when the run was broken off
                self.rows[row["id"]] = row
        kept = [head, *(json.dumps(row) for row in self.rows.values())]
        self._path.write_text("\n".join(kept) + "\n", encoding="utf-8")

    def add(self, row: dict[str, Any]) -> None:
        """Keep a finished exchange."""
        self.rows[row["id"]] = row
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")


def run(
    cases: Sequence[Case], chosen: Sequence[Configuration], detector: Detector, folder: Path, *, version: str
) -> list[Checkpoint]:
    """Run all cases under all configurations, prompt by prompt."""
    folder.mkdir(parents=True, exist_ok=True)
    checkpoints = [Checkpoint(folder, configuration, version) for configuration in chosen]
    started = time.perf_counter()
    for done, (_, group) in enumerate(groupby(cases, key=lambda case: case.prompt.group), start=1):
        for case in list(group):
            for configuration, checkpoint in zip(chosen, checkpoints, strict=True):
                if case.id not in checkpoint.rows:
                    checkpoint.add(simulate(exchange(case, configuration, detector)))
        if done % 10 == 0:
            print(f"{done} prompts, {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    return checkpoints


def version_of_code() -> str:
    """Return the digest of all code that decides an exchange."""
    root = Path(__file__).parents[2]
    files = [
        *root.glob("truthlens/mitigation/**/*"),
        *root.glob("truthlens/detection/**/*"),
        *root.glob("truthlens/text/**/*"),
        *root.glob("truthlens/core/*"),
        *root.glob("bench/mitigation/**/*"),
    ]
    digest = hashlib.sha256()
    for file in sorted(file for file in files if file.suffix in (".py", ".j2")):
        if file.name not in ("run.py", "plot.py", "report.py", "configurations.py", "auto.py"):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the labelled data")
    parser.add_argument(
        "--rows", type=int, help="exchanges, in fours: one prompt has four answers (default: all)"
    )
    parser.add_argument("--modes", nargs="+", help="only configurations whose names begin with one of these")
    parser.add_argument("--models", type=Path, help="folder of model folders, instead of the repository's")
    parser.add_argument(
        "--weighting", choices=("raw", "weighted"), default="raw", help="of the printed table"
    )
    options = parser.parse_args()
    shelf = models_folder(options.models)
    cases = held_out(options.data, options.rows)
    detector = Detector(shelf / MODEL, shelf / SIMILARITY, kept=options.out / "mitigation")
    chosen = [
        each
        for each in configurations(detector.recommended)
        if not options.modes or any(each.name.startswith(mode) for mode in options.modes)
    ]
    version = version_of_code()
    checkpoints = run(cases, chosen, detector, options.out / "mitigation", version=version)
    detector.close()
    wanted = [case.id for case in cases]
    found = {
        each.name: figures([checkpoint.rows[id_] for id_ in wanted])
        for each, checkpoint in zip(chosen, checkpoints, strict=True)
    }
    settings = {
        "rows": len(cases),
        "code": version,
        "recommended_threshold": detector.recommended,
        "speed": asdict(Speed()),
        "machine": machine(),
    }
    whole = {"settings": settings, "configurations": found}
    (options.out / "mitigation.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    shown = {each.name: found[each.name] for each in chosen if each.shown}
    draw(shown or found, options.out / "mitigation-frontier.png", weighting=options.weighting)
    print(table(found, weighting=options.weighting))


if __name__ == "__main__":
    main()
