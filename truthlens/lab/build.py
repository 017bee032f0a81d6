"""Build a model folder from labelled data: train, export, calibrate, measure, write manifest and card."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from truthlens.core.errors import ModelError
from truthlens.detection.detectors.encoder.loading import load_model
from truthlens.detection.models.fingerprint import sha256_of
from truthlens.detection.models.inputs.manifest import DataSource, InputFormat, Manifest, load_manifest
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.lab.calibrate.calibration import (
    BASE_RATE,
    WHITE_PAPER_THRESHOLD,
    FittedCalibration,
    calibrate,
    calibration_figures,
    calibration_scores,
    deciles_at_even_odds,
    score_answers,
)
from truthlens.lab.data.dataset import Example, Recipe, each_source, split, spread
from truthlens.lab.evaluate.evaluation import measure, report
from truthlens.lab.evaluate.metrics import Ranking, best_f1, brier, ece, interval, resamples, rounded
from truthlens.lab.evaluate.score_table import ScoreTable
from truthlens.lab.evaluate.served_encoder import ServedEncoder, load_served
from truthlens.lab.export.convert import ONNX_NAME
from truthlens.lab.export.export import export, shift_bias
from truthlens.lab.export.model_card import CARD_NAME, card, training_figures
from truthlens.lab.export.model_folder import write_manifest
from truthlens.lab.export.split_graph import split_folder
from truthlens.lab.train.recipe import BUNDLED_RECIPE, INPUT, LICENCES, MAIN_SOURCE, calibrates, kind_of
from truthlens.lab.train.trainer import SUMMARY, TrainSettings, train, training_rows

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
    run, limit, threads = train(settings, recipe=recipe, console=console), settings.limit, settings.threads
    fmt = INPUT.model_copy(update={"features": settings.features})
    console = console or Console(stderr=True)
    sides = split(training_rows(settings), recipe)
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
    manifest = _manifest(out, summary, found, fmt=fmt)
    scores = calibration_scores(readings, manifest, shift=found.shift)
    manifest = manifest.model_copy(update={"score_deciles": deciles_at_even_odds(scores, fitting)})
    write_manifest(out, manifest)
    split_folder(out)
    manifest = load_manifest(out)

    figures = _figures(load_served(out, threads=threads), sides["test"], manifest, limit, console)
    figures |= {
        "calibration": calibration_figures(found.responses, len(fitting)),
        "training": training_figures(summary),
        "export": rounded(
            {
                "int8": exported.quantized,
                "change_p99": exported.change_p99,
                "token_accuracy_loss": exported.accuracy_loss,
                "tokens": exported.tokens,
            }
        ),
    }
    manifest = manifest.model_copy(update={"figures": figures})
    write_manifest(out, manifest)
    (out / CARD_NAME).write_text(card(manifest), encoding="utf-8")
    return out


def _manifest(out: Path, summary: dict[str, Any], found: FittedCalibration, *, fmt: InputFormat) -> Manifest:
    rows = summary["rows"]
    return Manifest(
        name=out.name,
        base=summary["base"],
        architecture="BERT token classifier; head over [state, lexical features, comparison with the evidence]; ONNX opset 17",
        data=tuple(_data(rows)),
        licence="Apache-2.0",
        languages=("en",),
        revision=sha256_of(out / ONNX_NAME)[:12],
        input=fmt,
        temperature=round(found.temperature, 4),
        tau_span=found.tau_span,
        **found.responses.for_manifest(),
        files={name: sha256_of(out / name) for name in (ONNX_NAME, "tokenizer.json")},
    )


def _data(rows: dict[str, int]) -> list[DataSource]:
    named = [source.model_copy(update={"rows": rows[key]}) for key, source in LICENCES.items() if key in rows]
    others = [
        DataSource(name=key, licence="not stated", rows=count)
        for key, count in rows.items()
        if key not in LICENCES
    ]
    return [*named, *others]  # fmt: skip


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
    ranking = Ranking.of(labels, scores)
    found = report(rows, measured, threshold=threshold)
    del found["latency_ms"]
    found["base_rate"] = float(labels.mean())
    found["example"]["auroc_95"] = interval(ranking.auroc(mass) for mass in resamples(groups, rounds=400))
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
