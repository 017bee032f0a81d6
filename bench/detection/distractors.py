"""Measure what irrelevant passages do to detection on long evidence, by way of reading and merging.

python -m bench.detection.distractors --data FOLDER [--rows 120] [--points 0 1 5 20 80] [--kinds random hard] [--threads N]

Held-out answers are put among N passages of other source texts, drawn at random or nearest in words.
Thresholds are those of the best F1 without distractors. Writes distractors.json, .md and .png;
docs/long-evidence.md says what is compared.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bench.common.script import command, machine, write_result
from bench.detection.crowds import DistractorPool, Donors, as_passages, crowd, plant_number
from bench.detection.merge_fit import fit_merge
from truthlens.detection.detectors.encoder.loading import load_model
from truthlens.detection.detectors.encoder.merging import by_chunk, statistics
from truthlens.detection.detectors.encoder.span_edges import evaluated_spans
from truthlens.detection.detectors.encoder.token_scores import read_answer
from truthlens.detection.models.aggregation import spans_of
from truthlens.detection.models.inputs.manifest import InputFormat, Manifest, MergeWeights, load_manifest
from truthlens.detection.models.inputs.windows import Window, Windows, build_windows, load_tokenizer
from truthlens.detection.models.runtime import TokenModel, cpu_quota
from truthlens.lab.data.dataset import Example, read_folder, split
from truthlens.lab.evaluate.metrics import auroc, best_f1, char_prf, prf_of_flags
from truthlens.lab.train.batches import token_labels
from truthlens.lab.train.recipe import BUNDLED_RECIPE, MAIN_SOURCE
from truthlens.process.settings import models_folder

SOURCES = (MAIN_SOURCE, "wice", "summedits", "bump")
SHORT_SOURCES = ("begin", "fever_symmetric")
PLAIN = {
    "evidence": "select", "evidence_windows": None, "ranking": "overlap", "features_over": "all",
    "selected_tokens": None,
}  # fmt: skip
# "weighted" makes every window carry its relevance, so that all merges can be tried on one reading.
READINGS = {
    "select": {},
    "select, context": {"ranking": "context"},
    "select, 192 tokens": {"selected_tokens": 192},
    "select, context, 192 tokens": {"ranking": "context", "selected_tokens": 192},
    "select, context, read features": {"ranking": "context", "features_over": "read"},
    "3 windows": {
        "evidence_windows": 3, "ranking": "context", "features_over": "read", "merge": "weighted",
    },
    "3 groups": {"evidence": "windows", "evidence_windows": 3, "features_over": "read", "merge": "weighted"},
    "all groups": {"evidence": "windows", "merge": "weighted"},
}  # fmt: skip
MERGES = ("min", "mean", "nearest", "weighted", "learned")
PLOTTED = (
    "select", "select, context", "select, 192 tokens", "select, context, 192 tokens", "3 windows / min",
    "3 windows / weighted", "3 groups / weighted", "all groups / min", "all groups / nearest",
)  # fmt: skip


@dataclass(frozen=True)
class Said:
    """What one strategy says of one answer."""

    example: Example
    score: float
    spans: tuple[tuple[int, int], ...]


class Reader:
    """Scores answers by every strategy with the functions that serve; windows that recur are run once."""

    def __init__(self, model: TokenModel, folder: Path, manifest: Manifest) -> None:
        self._model = model
        self._tokenizer = load_tokenizer(folder)
        self._manifest = manifest
        self.learned: dict[str, MergeWeights] = {}

    def read(
        self, example: Example, reading: str, seen: dict[bytes, np.ndarray] | None = None
    ) -> tuple[Windows, list[np.ndarray]]:
        """Return the windows and the raw log-odds of each."""
        fmt = InputFormat.model_validate(
            self._manifest.input.model_dump()
            | PLAIN
            | {"merge": "min", "merge_weights": None}
            | READINGS[reading]
        )
        built = build_windows(
            self._tokenizer, fmt, query=example.query, passages=example.context, answer=example.response
        )
        seen = {} if seen is None else seen
        keys = [_key(window) for window in built.windows]
        fresh = {key: window for key, window in zip(keys, built.windows, strict=True) if key not in seen}
        for key, odds in zip(fresh, self._model.log_odds(list(fresh.values())), strict=True):
            seen[key] = odds.astype(np.float64)
        return built, [seen[key] for key in keys]

    def say_all(self, example: Example) -> Iterator[tuple[str, Said]]:
        """Yield every strategy's result on one answer."""
        seen: dict[bytes, np.ndarray] = {}
        for reading in READINGS:
            built, odds = self.read(example, reading, seen)
            for merge in _merges(reading):
                weights = self.learned.get(reading) if merge == "learned" else None
                if merge == "learned" and weights is None:
                    continue
                merging = {"merge": merge, "merge_weights": weights}
                yield _name(reading, merge), self._said(example, built, odds, merging)

    def _said(
        self, example: Example, built: Windows, odds: Sequence[np.ndarray], merging: dict[str, object]
    ) -> Said:
        text, manifest = example.response, self._manifest
        fmt = manifest.input.model_copy(update=merging)
        reading = read_answer(
            built.windows, odds, offsets=built.offsets, text=text, query=example.query, fmt=fmt
        )  # fmt: skip
        p = reading.probabilities(temperature=manifest.temperature)
        runs = spans_of(p, built.offsets, manifest.tau_span, text)
        score = manifest.scoring.score(manifest.aggregation, p=p, spans=runs)
        spans = evaluated_spans(runs, p, built.offsets, text)
        return Said(example, score, tuple((span.start, span.end) for span in spans))

    def learn(self, examples: Sequence[Example]) -> None:
        """Fit the learned merge of every reading with several windows."""
        for reading in READINGS:
            if len(_merges(reading)) == 1:
                continue
            found, labels = [], []
            for example in examples:
                built, odds = self.read(example, reading)
                gold = token_labels(built.offsets, example)
                for first, stacked, relevance in by_chunk(built.windows, odds):
                    if len(stacked) > 1:
                        found.append(statistics(stacked, relevance))
                        labels.append(gold[first : first + stacked.shape[1]])
            try:
                self.learned[reading] = fit_merge(found, labels, temperature=self._manifest.temperature)
            except ValueError as error:
                print(f"no learned merge for {reading}: {error}")


def _key(window: Window) -> bytes:
    return window.input_ids.tobytes() + (b"" if window.features is None else window.features.tobytes())


def _merges(reading: str) -> tuple[str, ...]:
    return MERGES if READINGS[reading].get("merge") == "weighted" else ("min",)


def _name(reading: str, merge: str) -> str:
    return f"{reading} / {merge}" if len(_merges(reading)) > 1 else reading


class Material:
    """Held-out rows and the passages to lose them among."""

    def __init__(self, data: Path, seed: int) -> None:
        self._seed = seed
        examples = read_folder(data)
        self._sides = split(examples, BUNDLED_RECIPE)
        self._pools = {
            source: DistractorPool(row for row in examples if row.source == source)
            for source in (*SOURCES, *SHORT_SOURCES)
        }
        # All sides: the more sentences, the nearer the topic; nothing is fitted on them.
        self.donors = Donors(row for row in examples if row.source == MAIN_SOURCE)

    def rows(
        self, count: int, *, side: str = "test", sources: Sequence[str] = SOURCES, label: int | None = None
    ) -> list[Example]:
        """Return about ``count`` rows, half of the first source, as many supported as unsupported ones."""
        dice = random.Random(self._seed)
        chosen: list[Example] = []
        for number, source in enumerate(sources):
            share = count / 2 if not number else count / 2 / max(len(sources) - 1, 1)
            wanted = round(share) if len(sources) > 1 else count
            for one in (0, 1) if label is None else (label,):
                rows = [row for row in self._sides[side] if row.source == source and row.label == one]
                most = max(1, wanted // 2) if label is None else wanted
                chosen.extend(dice.sample(rows, min(most, len(rows))))
        return [replace(row, context=as_passages(row.context)) for row in chosen]

    def distractors(
        self, row: Example, kind: str, count: int, without: frozenset[str] = frozenset()
    ) -> list[str]:
        """Return passages of other source texts, ``random`` or ``hard`` ones."""
        pool = self._pools[row.source]
        if kind == "hard":
            return pool.hard(row, count, without=without)
        return pool.random(row, count, seed=self._seed, without=without)

    def among(self, row: Example, others: Sequence[str], *, own_last: bool = False) -> Example:
        """Return ``row`` with ``others`` around its own passages."""
        return crowd(row, others, seed=self._seed, own_last=own_last).example


def curve(reader: Reader, material: Material, options: argparse.Namespace, progress: Progress) -> dict:
    """Return, per kind, number of distractors and strategy, the results of each row."""
    said: dict = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for row in progress.track(material.rows(options.rows), description="curve"):
        for kind in options.kinds:
            others = material.distractors(row, kind, max(options.points))
            for count in options.points:
                if count == 0 and kind != options.kinds[0]:
                    continue
                for name, answer in reader.say_all(material.among(row, others[:count])):
                    said[kind][count][name].append(answer)
    for kind in options.kinds[1:]:
        if 0 in options.points:
            said[kind][0] = said[options.kinds[0]][0]
    return said


def figures(rows: Sequence[Said], threshold: float) -> dict:
    labels = [row.example.label for row in rows]
    scores = np.array([row.score for row in rows])
    flagged = scores >= threshold
    supported = ~np.array(labels, dtype=bool)
    marked = [row for row in rows if row.example.spans is not None]
    return {
        "rows": len(rows),
        "auroc": auroc(labels, scores),
        "f1": prf_of_flags(labels, np.asarray(scores) >= threshold).f1,
        "false_positive_rate": float(flagged[supported].mean()) if supported.any() else None,
        "recall": float(flagged[~supported].mean()) if (~supported).any() else None,
        "char_f1": char_prf([row.example.spans or () for row in marked], [row.spans for row in marked]).f1,
    }


def planted(
    reader: Reader, material: Material, options: argparse.Namespace, thresholds: dict, progress: Progress
) -> dict:
    """Return how often a planted unsupported claim is found, without and with similar distractors."""
    found: dict = defaultdict(lambda: defaultdict(list))
    rows = material.rows(max(options.rows // 3, 2), sources=(MAIN_SOURCE,), label=0)
    for row in progress.track(rows, description="planted claims"):
        for plant, made in (("sentence", material.donors.plant(row)), ("number", plant_number(row))):
            if made is None:
                continue
            others = material.distractors(made.example, "hard", max(options.points), made.groups)
            for count in (0, max(options.points)):
                for name, answer in reader.say_all(material.among(made.example, others[:count])):
                    ((start, end),) = made.example.spans or ()
                    hit = any(a < end and start < b for a, b in answer.spans)
                    found[name][f"{plant}, {count}"].append((hit, answer.score >= thresholds[name]))
    return {
        name: {
            case: {
                "rows": len(cases),
                "span_recall": float(np.mean([hit for hit, _ in cases])),
                "flagged": float(np.mean([flag for _, flag in cases])),
            }
            for case, cases in by_case.items()
        }
        for name, by_case in found.items()
    }


def last_passage(
    reader: Reader, material: Material, options: argparse.Namespace, thresholds: dict, progress: Progress
) -> dict:
    """Return how often a true claim is flagged whose only support is the last of many passages."""
    most = max(options.points)
    flagged: dict = defaultdict(lambda: defaultdict(list))
    rows = material.rows(max(options.rows // 3, 2), sources=SHORT_SOURCES, label=0)
    for row in progress.track(rows, description="support in the last passage"):
        others = material.distractors(row, "hard", max(most - 1, 0))
        for count, context in ((1, row), (most, material.among(row, others, own_last=True))):
            for name, answer in reader.say_all(context):
                flagged[name][f"of {count}"].append(answer.score >= thresholds[name])
    return {
        name: {case: {"rows": len(said), "flagged": float(np.mean(said))} for case, said in cases.items()}
        for name, cases in flagged.items()
    }


def latency(reader: Reader, material: Material, options: argparse.Namespace) -> dict:
    """Return the median milliseconds of one scoring, windows included, and how many windows it took."""
    result: dict = {}
    for reading in READINGS:
        result[reading] = {}
        for count in sorted({0, min(20, max(options.points)), max(options.points)}):
            times, windows = [], []
            for row in material.rows(min(options.rows, 10), sources=(MAIN_SOURCE,)):
                example = material.among(row, material.distractors(row, "random", count))
                started = time.perf_counter()
                built, _ = reader.read(example, reading)
                times.append((time.perf_counter() - started) * 1000)
                windows.append(len(built.windows))
            result[reading][count] = {"p50_ms": float(np.median(times)), "windows": float(np.mean(windows))}
    return result


def table(result: dict) -> str:
    """Return the results as Markdown."""
    points = result["points"]
    lines = [
        f"{result['machine']}, model {result['model']}, {result['threads']} threads, {result['rows']} rows a point.",
        "",
    ]
    for kind, by_count in result["curve"].items():
        lines += [
            f"**{kind.capitalize()} distractors**: {' / '.join(map(str, points))} of them.",
            "",
            "| strategy | AUROC | example F1 | false-positive rate | character F1 |",
            "| --- | --- | --- | --- | --- |",
        ]
        for name in result["thresholds"]:
            cells = [
                " / ".join(_short(by_count[str(count)][name]["all"][figure]) for count in points)
                for figure in ("auroc", "f1", "false_positive_rate", "char_f1")
            ]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        lines.append("")
    planted_cases = list(next(iter(result["planted"].values()), {}))
    last_cases = list(next(iter(result["last_passage"].values()), {}))
    lines += [
        "**Planted claims found (span recall; plant, distractors), true claims flagged (support in the last passage)**",
        "",
        "| strategy | " + " | ".join([*planted_cases, *last_cases]) + " |",
        "| --- |" + " --- |" * len(planted_cases + last_cases),
    ]
    for name in result["thresholds"]:
        cells = [_short(result["planted"][name][case]["span_recall"]) for case in planted_cases]
        cells += [_short(result["last_passage"][name][case]["flagged"]) for case in last_cases]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "| reading | distractors: median ms (windows) |", "| --- | --- |"]
    for reading, by_count in result["latency"].items():
        cells = [f"{n}: {one['p50_ms']:.0f} ({one['windows']:.1f})" for n, one in by_count.items()]
        lines.append(f"| {reading} | {', '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".removeprefix("0")


def plot(result: dict, file: Path) -> None:
    """Plot the curves: a row for each kind of distractors, a column for each figure."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    kinds, points = list(result["curve"]), result["points"]
    panels, axes = plt.subplots(
        len(kinds), 3, figsize=(14, 4.2 * len(kinds)), squeeze=False, constrained_layout=True
    )
    columns = (("auroc", "AUROC"), ("f1", "example F1"), ("false_positive_rate", "false-positive rate"))
    for line, kind in zip(axes, kinds, strict=True):
        for axis, (figure, title) in zip(line, columns, strict=True):
            for number, name in enumerate(name for name in PLOTTED if name in result["thresholds"]):
                values = [result["curve"][kind][str(count)][name]["all"][figure] for count in points]
                axis.plot(
                    range(len(points)),
                    [np.nan if value is None else value for value in values],
                    marker="osD^v<>P*X"[number % 10],
                    label=name,
                )
            axis.set_xticks(range(len(points)), [str(count) for count in points])
            axis.set_xlabel(f"{kind} distractor passages")
            axis.set_title(title)
            axis.grid(alpha=0.3)
    panels.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    panels.savefig(file, dpi=120)
    plt.close(panels)


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the labelled data")
    parser.add_argument("--model", default="truthlens-minilm-en-v2")
    parser.add_argument("--models", type=Path, help="folder of model folders, instead of the repository's")
    parser.add_argument("--rows", type=int, default=120)
    parser.add_argument("--points", type=int, nargs="+", default=[0, 1, 5, 20, 80])
    parser.add_argument("--kinds", nargs="+", choices=["random", "hard"], default=["random", "hard"])
    parser.add_argument("--threads", type=int, default=cpu_quota())
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    options.points = sorted({0, *options.points})
    folder = models_folder(options.models) / options.model
    manifest = load_manifest(folder)
    reader = Reader(load_model(folder, manifest=manifest, threads=options.threads), folder, manifest)
    material = Material(options.data, options.seed)

    fitting = material.rows(max(options.rows // 3, 4), side="calibration", sources=(MAIN_SOURCE,))
    halves = ((fitting[::2], "random"), (fitting[1::2], "hard"))
    reader.learn(
        [
            material.among(row, material.distractors(row, kind, 20))
            for rows, kind in halves
            for row in rows
        ]
    )  # fmt: skip
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        said = curve(reader, material, options, progress)
        plain = said[options.kinds[0]][0]
        thresholds = {
            name: best_f1([row.example.label for row in rows], [row.score for row in rows], above=0.0)[1]
            for name, rows in plain.items()
        }
        checks = {
            "planted": planted(reader, material, options, thresholds, progress),
            "last_passage": last_passage(reader, material, options, thresholds, progress),
        }
    result = {
        "machine": machine(),
        "model": f"{manifest.name} {manifest.revision}",
        "threads": options.threads,
        "rows": len(next(iter(plain.values()))),
        "seed": options.seed,
        "points": options.points,
        "thresholds": thresholds,
        "merge_weights": reader.learned,
        "curve": {
            kind: {str(count): _by_source(by_name, thresholds) for count, by_name in by_count.items()}
            for kind, by_count in said.items()
        },
        **checks,
        "latency": latency(reader, material, options),
    }
    write_result(options.out, "distractors", result)
    (options.out / "distractors.md").write_text(table(result))
    plot(result, options.out / "distractors.png")
    print(table(result))


def _by_source(by_name: dict[str, list[Said]], thresholds: dict[str, float]) -> dict:
    return {
        name: {"all": figures(rows, thresholds[name])}
        | {
            source: figures([row for row in rows if row.example.source == source], thresholds[name])
            for source in SOURCES
            if any(row.example.source == source for row in rows)
        }
        for name, rows in by_name.items()
    }


if __name__ == "__main__":
    main()
