"""Build a model folder from labelled data: train, export, calibrate, measure, write manifest and card."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from truthlens.core.errors import ModelError
from truthlens.detection.encoder.inputs.manifest import (
    MANIFEST_NAME,
    DataSource,
    InputFormat,
    Manifest,
    ResponseCalibration,
    load_manifest,
)
from truthlens.detection.encoder.inputs.windows import load_tokenizer
from truthlens.detection.models.loading import load_model
from truthlens.training.calibrate.calibration import (
    BASE_RATE,
    WHITE_PAPER_THRESHOLD,
    FittedCalibration,
    calibrate,
    calibration_figures,
    score_answers,
)
from truthlens.training.calibrate.deciles import calibration_scores, deciles_at_even_odds
from truthlens.training.data.dataset import Example, Recipe, each_source, read_folder, split, spread
from truthlens.training.data.twins import read_twin_folder, twin_examples
from truthlens.training.evaluate.evaluation import ScoreTable, measure, report
from truthlens.training.evaluate.metrics import auroc, best_f1, bootstrap, brier, ece, rounded
from truthlens.training.evaluate.served_encoder import ServedEncoder, load_served
from truthlens.training.export.convert import ONNX_NAME
from truthlens.training.export.export import ExportReport, export, shift_bias
from truthlens.training.export.model_card import CARD_NAME, card, training_figures
from truthlens.training.export.split_graph import split_folder
from truthlens.training.train.recipe import (
    BUNDLED_RECIPE,
    INPUT,
    LICENCES,
    MAIN_SOURCE,
    TWINS_FOLDER,
    calibrates,
    kind_of,
)
from truthlens.training.train.trainer import SUMMARY, TrainSettings, train

_FIXTURE_ROWS = 60
_CALIBRATION_ROWS = 400  # of each source


def build(
    settings: TrainSettings, out: Path, *, recipe: Recipe = BUNDLED_RECIPE, console: Console | None = None
) -> Path:
    """Build the model folder ``out``, from training (or its last checkpoint) to the card, and return it.

    Raises:
        DataError: the data folder cannot be used.
        ModelError: the base model is missing, the training is to leave out all features, or the export is not faithful.
    """
    if settings.features is None:
        raise ModelError(
            "a model without features can be trained for comparison, but not be exported; set features"
        )
    run = train(settings, recipe=recipe, console=console)
    return finish(
        run,
        out,
        data=settings.data,
        twins=settings.twins if settings.generated else None,
        recipe=recipe,
        fmt=INPUT.model_copy(update={"features": settings.features}),
        limit=settings.limit,
        threads=settings.threads,
        console=console,
    )


def finish(
    run: Path,
    out: Path,
    *,
    data: Path,
    twins: Path | None = TWINS_FOLDER,
    recipe: Recipe = BUNDLED_RECIPE,
    fmt: InputFormat = INPUT,
    limit: int | None = None,
    threads: int = 1,
    note: str = "",
    console: Console | None = None,
) -> Path:
    """Build the model folder ``out`` from a finished training run, and return it.

    Args:
        run: folder of ``train``.
        out: model folder to write; its name becomes the model's.
        data: the folder that was trained on; its calibration and test sides are used here.
        twins: the folder of twin files that was trained on, likewise; ``None`` for none.
        recipe: the one that was trained with.
        fmt: the input format to serve with.
        limit: rows of each source and side (for a trial run).
        threads: CPU threads of the measuring.
        note: is in the manifest and leads the card.
        console: shows progress and reports.
    """
    console = console or Console(stderr=True)
    rows = read_folder(data)
    if twins is not None:
        rows += twin_examples(read_twin_folder(twins))
    sides = split(rows, recipe)
    held_out = [row for row in sides["calibration"] or sides["test"] if calibrates(row, recipe)]
    main = [row for row in held_out if row.source == MAIN_SOURCE] or held_out
    fitting = each_source(held_out, limit or _CALIBRATION_ROWS)
    exported = export(run, out, fixture=spread(main, _FIXTURE_ROWS), fmt=fmt, console=console)
    summary = json.loads((run / SUMMARY).read_bytes())

    raw = Manifest(name=out.name, base=summary["base"], input=fmt)
    model = load_model(out, manifest=raw, threads=threads)
    console.print(f"calibrating on {len(fitting)} answers")
    readings = score_answers(model, load_tokenizer(out), fitting, fmt=fmt)
    found = calibrate(readings, fitting, main=MAIN_SOURCE, kind_of=kind_of)
    shift_bias(out / ONNX_NAME, found.shift)
    manifest = _manifest(out, summary, found, fmt=fmt, note=note)
    scores = calibration_scores(readings, manifest, shift=found.shift)
    manifest = manifest.model_copy(update={"score_deciles": deciles_at_even_odds(scores, fitting)})
    _write(out, manifest)
    split_folder(out)
    manifest = load_manifest(out)

    figures = _figures(load_served(out, threads=threads), sides["test"], manifest, limit, console)
    figures |= {
        "calibration": calibration_figures(found, len(fitting)),
        "training": training_figures(summary),
        "export": _export_figures(exported),
    }
    manifest = manifest.model_copy(update={"figures": figures})
    _write(out, manifest)
    (out / CARD_NAME).write_text(card(manifest), encoding="utf-8")
    return out


def describe(out: Path, *, ablation: Path) -> None:
    """Put the figures of an ablation (``bench/detection/ablation.py``) into the manifest and card of ``out``.

    Args:
        out: finished model folder.
        ablation: ``ablation.json``.
    """
    manifest = load_manifest(out)
    found = json.loads(ablation.read_bytes())
    found["variants"] = [
        {key: value for key, value in row.items() if key != "figures"} for row in found["variants"]
    ]
    manifest = manifest.model_copy(update={"figures": {**manifest.figures, "ablation": found}})
    _write(out, manifest)
    (out / CARD_NAME).write_text(card(manifest), encoding="utf-8")


def _manifest(
    out: Path, summary: dict[str, Any], found: FittedCalibration, *, fmt: InputFormat, note: str
) -> Manifest:
    rows = summary["rows"]
    return Manifest(
        name=out.name,
        base=summary["base"],
        architecture="BERT token classifier; head over [state, lexical features, comparison with the evidence]; ONNX opset 17",
        note=note,
        data=tuple(_data(rows)),
        licence="Apache-2.0",
        languages=("en",),
        revision=_digest(out / ONNX_NAME)[:12],
        input=fmt,
        temperature=round(found.temperature, 4),
        tau_token=found.tau_token,
        tau_span=found.tau_span,
        aggregation=found.aggregation,
        response={
            name: ResponseCalibration(**asdict(calibration)) for name, calibration in found.response.items()
        },
        recommended_threshold=round(found.threshold, 4),
        files={name: _digest(out / name) for name in (ONNX_NAME, "tokenizer.json")},
    )


def _data(rows: dict[str, int]) -> list[DataSource]:
    named = [source.model_copy(update={"rows": rows[key]}) for key, source in LICENCES.items() if key in rows]
    others = [
        DataSource(name=key, licence="not stated", rows=count)
        for key, count in rows.items()
        if key not in LICENCES
    ]
    return [*named, *others]  # fmt: skip


def _write(out: Path, manifest: Manifest) -> None:
    text = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False)
    (out / MANIFEST_NAME).write_text(text + "\n", encoding="utf-8")


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _figures(
    encoder: ServedEncoder, test: Sequence[Example], manifest: Manifest, limit: int | None, console: Console
) -> dict[str, Any]:
    encoder.warm_up()
    figures: dict[str, Any] = {}
    for source in sorted({row.source for row in test}):
        rows = spread([row for row in test if row.source == source], limit)
        measured = measure(rows, encoder, console=console, title=f"testing on {source}")
        figures[source] = _source_figures(rows, measured, threshold=manifest.recommended_threshold)
    return {"main": MAIN_SOURCE, "test": figures}


def _source_figures(rows: Sequence[Example], measured: ScoreTable, *, threshold: float) -> dict[str, Any]:
    labels = np.array([row.label for row in rows], dtype=bool)
    groups = [row.group for row in rows]
    scores = measured.scores
    interval = bootstrap(groups, lambda picked: auroc(labels[picked], scores[picked]), rounds=400)
    found = report(rows, measured, threshold=threshold)
    del found["latency_ms"]
    found["base_rate"] = float(labels.mean())
    found["example"]["auroc_95"] = interval
    found["example"]["best_f1"] = best_f1(labels, scores)[0]
    if not labels.all() and labels.any():
        weighted = report(rows, measured, threshold=threshold, base_rate=BASE_RATE)
        found["weighted"] = {
            "base_rate": BASE_RATE,
            **{name: weighted["example"][name] for name in ("precision", "recall", "f1")},
            "ece": weighted["ece"],
        }
    found["ece_equal_mass"] = ece(labels, scores, equal_mass=True)
    found["brier"] = brier(labels, scores)
    found["flagged"] = {
        f"{limit:g}": {
            "recall": float((scores[labels] >= limit).mean()) if labels.any() else None,
            "supported_flagged": float((scores[~labels] >= limit).mean()) if not labels.all() else None,
        }
        for limit in dict.fromkeys((threshold, WHITE_PAPER_THRESHOLD))
    }
    result: dict[str, Any] = rounded(found)
    return result


def _export_figures(exported: ExportReport) -> dict[str, Any]:
    found: dict[str, Any] = rounded(
        {
            "int8": exported.quantized,
            "change_p99": exported.change_p99,
            "token_accuracy_loss": exported.accuracy_loss,
            "tokens": exported.tokens,
        }
    )
    return found
