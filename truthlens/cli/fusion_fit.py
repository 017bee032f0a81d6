"""``calibrate --fusion``: the weights of the verdict, fitted for a plan's detectors and written for its policy."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer
from rich.progress import track

from truthlens.cli.calibration_target import CalibrationJob, data_file, made, name_of, out, progress_out, save
from truthlens.cli.plan_lines import weights_in_words
from truthlens.lab.calibrate.fusion import FusionFit, claims_of, fit_fusion
from truthlens.lab.data.dataset import DataError, Example, read_examples, split, spread
from truthlens.lab.data.twins import read_twin_folder, twin_examples
from truthlens.lab.reader.recipe import SPLITS
from truthlens.policy.plans.fusion_record import FusionFigures, FusionRecord, FusionWeights
from truthlens.policy.plans.record_files import SHIPPED
from truthlens.policy.plans.records import DataFile, weights_of

TWINS = Path("data/twins/train")
"""Of the checkout; only the groups that no model was trained on are used."""
DEFAULT_LIMIT = 1_500


def fit_weights(file: Path | None, job: CalibrationJob, *, others: Sequence[object]) -> None:
    """Fit and show the weights of one plan's verdict, and set ``fusion`` where they are better than the shipped ones.

    Args:
        file: labelled answers; left out, the held-out groups of the shipped twins. ``limit`` of them.
        job: the plan, and where the record goes; by default beside the policy that is to name it.
        others: values of options that are for thresholds; none may be given.

    Raises:
        typer.Exit: with status 1, where the weights are no better and would be written.
    """
    if any(value is not None for value in others):
        raise typer.BadParameter("--fusion fits weights and no threshold; leave the other goals out")
    if job.write and (job.config is None or job.model is not None):
        raise typer.BadParameter(
            "--write needs --config POLICY, and sets the weights for the plan's own model: leave --model out"
        )
    target = job.target(use_fusion=False)
    examples, data = _examples(file, job.limit)
    asked = job.asked(target)
    target.announce()
    with target.scorer(asked) as scorer:
        shown = track(examples, description=data.name, console=progress_out)
        fit = fit_fusion(claims_of(shown, scorer))
    record = FusionRecord(
        weights=FusionWeights(**weights_of(fit.coefficients)),
        before=FusionFigures(**asdict(fit.before)),
        after=FusionFigures(**asdict(fit.after)),
        claims=fit.claims,
        unsupported=fit.unsupported,
        answers=len(examples),
        data=data,
        **made(target),
    )
    if job.write and fit.after.log_loss >= fit.before.log_loss:
        for line in _lines(record, fit):
            out.print(line)
        out.print(
            "refused    they tell claims no better than the shipped ones: nothing was written", style="red"
        )
        raise typer.Exit(1)
    output = job.beside_policy("fusion")
    if output is not None:
        save(output, record.to_json())
    data_shown = record.model_dump(mode="json") | {"record": output and str(output)}
    value = name_of(output, target) if output is not None else SHIPPED
    job.finish(target, value, data_shown, _lines(record, fit), key="fusion", output=output)


def _examples(file: Path | None, limit: int | None) -> tuple[list[Example], DataFile]:
    """Return the answers to fit on, and their source by name and digest."""
    if file is not None:
        return spread(read_examples(file), limit), data_file(file)
    if not TWINS.is_dir():
        raise DataError(
            f"there is no folder {TWINS} here; run this in a checkout of TruthLens, or give labelled answers (FILE)"
        )
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(TWINS.glob("*.yaml")))).hexdigest()
    sides = split(twin_examples(read_twin_folder(TWINS)), SPLITS)
    held = [*sides["calibration"], *sides["test"]]
    return spread(held, limit or DEFAULT_LIMIT), DataFile(name=str(TWINS), sha256=digest)


def _lines(record: FusionRecord, fit: FusionFit) -> list[str]:
    return [
        f"claims     {record.unsupported} unsupported and {record.claims - record.unsupported} supported, of {record.answers} answers",
        f"weights    {weights_in_words(fit.coefficients)}",
        *(
            f"{name:<10} AUROC {figures.auroc:.4f}, log loss {figures.log_loss:.4f}, found at 5 % false alarms {figures.found:.4f}"
            for name, figures in (("shipped", record.before), ("fitted", record.after))
        ),
        "           (the fitted ones on texts that they were not fitted on, half by half)",
    ]
