"""What one scoring costs: the encoder alone, and encoder, numbers, contradictions and citations together, side by side.

python -m bench.detection.detectors [--data data/twins/train] [--rows 200] [--repeats 5] [--output bench/results]

One process, one thread, the same rows of twins for both, in turns. Figures are CPU time of the process, the least of
``--repeats`` a row, so that other work on the machine counts little. Writes detectors.json and detectors.md.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.common.script import machine, write_result
from truthlens.core.cancellation import never
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.detection.detectors.citations.detector import CitationDetector
from truthlens.detection.detectors.citations.report import Options as CitationOptions
from truthlens.detection.detectors.contradictions.detector import ContradictionDetector
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.detectors.numbers.detector import NumberDetector
from truthlens.detection.detectors.numbers.options import Options as NumberOptions
from truthlens.detection.fusion import fuse
from truthlens.detection.interfaces import Detector
from truthlens.lab.data.dataset import Example
from truthlens.lab.data.twins import read_twin_folder, twin_examples
from truthlens.lab.markdown import table
from truthlens.process.settings import models_folder

MODEL = "truthlens-minilm-en-v2"
ALONE, ALL = "encoder", "encoder + numbers + contradictions + citations"
AIM = 1.3
"""The most that all default detectors may cost, as a multiple of the encoder alone."""


def chosen(data: Path, rows: int) -> list[Example]:
    """Return as many rows of the twins in ``data``, the same ones every time."""
    found = twin_examples(read_twin_folder(data))
    return random.Random(20).sample(found, min(rows, len(found)))


def scoring(detectors: Sequence[Detector], row: Example) -> Callable[[], object]:
    """Return what scores a row with detectors and fuses what they say."""
    exchange = Exchange(
        Endpoint.CHAT, "", row.query, tuple(Passage(each, Provenance.DOCUMENTS) for each in row.context)
    )
    answer = Answer(0, AnswerKind.TEXT, row.response)

    def score() -> object:
        found = [each.detect_all(exchange, [answer], aggregation=None, stop=never)[0] for each in detectors]
        return fuse(found, threshold=0.6)

    return score


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of the process for some work."""
    started = time.process_time()
    work()
    return time.process_time() - started


def measured(
    arms: dict[str, Sequence[Detector]], rows: Sequence[Example], repeats: int
) -> dict[str, list[float]]:
    """Return the milliseconds of each arm per row; within a row the arms take turns."""
    found: dict[str, list[float]] = {name: [] for name in arms}
    for row in rows:
        work = {name: scoring(detectors, row) for name, detectors in arms.items()}
        least = dict.fromkeys(arms, float("inf"))
        for turn in range(repeats):
            for name in list(arms) if turn % 2 else list(arms)[::-1]:
                least[name] = min(least[name], seconds(work[name]))
        for name in arms:
            found[name].append(least[name] * 1000)
    return found


def summary(milliseconds: Sequence[float]) -> dict[str, float]:
    """Return median, 99th percentile and mean."""
    ordered = sorted(milliseconds)
    return {
        "p50_ms": statistics.median(ordered),
        "p99_ms": ordered[int(len(ordered) * 0.99)],
        "mean_ms": statistics.fmean(ordered),
    }


def markdown(result: dict[str, Any]) -> str:
    """Return the result as a table."""
    arms = {**result["arms"], f"ratio (aim {AIM})": result["ratio"]}
    keys = ("p50_ms", "p99_ms", "mean_ms")
    rows = ([name, *(f"{found[key]:.2f}" for key in keys)] for name, found in arms.items())
    head = f"{result['machine']}, one thread, CPU time, {result['rows']} rows"
    return f"{head}\n\n{table(('detectors', 'p50 ms', 'p99 ms', 'mean ms'), rows)}".rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data/twins/train"))
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "results")
    arguments = parser.parse_args()
    encoder = load_encoder(models_folder() / arguments.model, threads=1)
    encoder.warm_up()
    numbers, citations = NumberDetector(NumberOptions()), CitationDetector(CitationOptions())
    contradictions = ContradictionDetector()
    arms: dict[str, Sequence[Detector]] = {
        ALONE: [encoder],
        ALL: [encoder, numbers, contradictions, citations],
        "numbers": [numbers],
        "contradictions": [contradictions],
        "citations": [citations],
    }
    rows = chosen(arguments.data, arguments.rows)
    times = measured(arms, rows, arguments.repeats)
    found = {name: summary(each) for name, each in times.items()}
    result: dict[str, Any] = {
        "machine": machine(),
        "model": encoder.model,
        "rows": len(rows),
        "arms": found,
        "ratio": {key: found[ALL][key] / found[ALONE][key] for key in found[ALL]},
    }
    text = markdown(result)
    write_result(arguments.output, "detectors", result, text)
    print(text)


if __name__ == "__main__":
    main()
