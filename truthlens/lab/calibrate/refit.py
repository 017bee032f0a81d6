"""Fit a finished model's response calibrations again, without touching its weights: ``python -m …calibrate.refit``.

For model folders whose manifest was calibrated by an earlier version. Token temperature and span limit stay.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from truthlens.core.errors import ModelError, TruthLensError
from truthlens.detection.detectors.encoder.loading import load_model
from truthlens.detection.models.inputs.manifest import MANIFEST_NAME, Manifest, without_calibration
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.lab.calibrate.calibration import (
    KindOf,
    calibration_figures,
    calibration_scores,
    deciles_at_even_odds,
    fit_responses,
    one_kind,
    score_answers,
)
from truthlens.lab.data.dataset import DataError, Example, each_source, read_folder, split
from truthlens.lab.export.model_card import CARD_NAME, card
from truthlens.lab.export.model_folder import write_manifest
from truthlens.lab.train.recipe import BUNDLED_RECIPE, calibrates, kind_of
from truthlens.policy.files import replace_file


def refit(
    folder: Path, examples: Sequence[Example], *, kinds: KindOf = one_kind, threads: int = 1
) -> Manifest:
    """Fit the response calibrations of the model in ``folder`` to ``examples``, and write its manifest and card.

    Args:
        folder: the model folder, with a manifest of this version or an earlier one.
        examples: labelled answers that the model was not trained on, of either label.
        kinds: the kind of each answer; kinds weigh alike.
        threads: CPU threads of the scoring.

    Returns:
        The manifest as written.

    Raises:
        ModelError: there is no manifest to change, or the model cannot be loaded.
        DataError: the answers are all of one class.
    """
    if not (folder / MANIFEST_NAME).is_file():
        raise ModelError(f"{folder} has no {MANIFEST_NAME}; give the folder of a trained model")
    if len({example.label for example in examples}) < 2:
        raise DataError(
            "the answers are not of both labels, so nothing can be calibrated; add the other kind"
        )
    manifest = without_calibration(folder)
    model = load_model(folder, manifest=manifest, threads=threads)
    readings = score_answers(model, load_tokenizer(folder), examples, fmt=manifest.input)
    p = [reading.probabilities(temperature=manifest.temperature) for reading in readings]
    found = fit_responses(readings, p, examples, tau_span=manifest.tau_span, kind_of=kinds)
    written = manifest.model_copy(
        update={
            "format": 2,
            **found.for_manifest(),
            "figures": manifest.figures | {"calibration": calibration_figures(found, len(examples))},
        }
    )
    scores = calibration_scores(readings, written, shift=0.0)
    written = written.model_copy(update={"score_deciles": deciles_at_even_odds(scores, examples)})
    write_manifest(folder, written)
    if (folder / CARD_NAME).is_file() and "settings" in written.figures.get("training", {}):
        replace_file(folder / CARD_NAME, card(written))
    return written


def main(arguments: Sequence[str]) -> int:
    """Run the command; the result is the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m truthlens.lab.calibrate.refit",
        description="Fit a model's response calibrations to even odds, on labelled answers it was not trained on.",
    )
    parser.add_argument("folder", type=Path, help="model folder")
    parser.add_argument(
        "--data", type=Path, required=True, help="folder of labelled *.jsonl or *.jsonl.gz files"
    )
    parser.add_argument("--limit", type=int, default=400, help="answers of each source (default 400)")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default 1)")
    parser.add_argument(
        "--held-out",
        action="store_true",
        help="only the answers that `truthlens train` holds out of this folder for calibration",
    )
    options = parser.parse_args(arguments)
    try:
        rows = read_folder(options.data)
        if options.held_out:
            rows = split(rows, BUNDLED_RECIPE)["calibration"]
        rows = each_source([row for row in rows if calibrates(row, BUNDLED_RECIPE)], options.limit)
        manifest = refit(options.folder, rows, kinds=kind_of, threads=options.threads)
    except TruthLensError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    figures = manifest.figures["calibration"]["aggregations"][manifest.aggregation.value]
    print(f"{options.folder}: {len(rows)} answers, {manifest.aggregation.value}, AUROC {figures['auroc']:.3f}, "
          f"ECE {figures['ece']:.3f}, recommended threshold {manifest.recommended_threshold:g}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
