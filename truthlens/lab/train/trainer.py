"""Train the token classifier on labelled answers, on a CPU, within a wall-clock budget.

Checkpoints and resumes. It neither exports nor calibrates; see ``export`` and ``calibrate``.
"""

from __future__ import annotations

import ctypes
import json
import math
import platform
import shutil
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from truthlens.core.errors import ModelError
from truthlens.detection.models.inputs.lexical import FEATURE_COUNT
from truthlens.detection.models.inputs.manifest import FeatureSet
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.lab.data.dataset import Example, Mixture, Recipe, draw, read_folder, split
from truthlens.lab.data.evidence_twins import EVIDENCE_TWINS, evidence_twins
from truthlens.lab.data.minimal_pairs import EVIDENCE, PAIRS, locate_errors, minimal_pairs, other_evidence
from truthlens.lab.data.synthetic_errors import SOURCE, synthesize
from truthlens.lab.data.table_records import TABLES, records
from truthlens.lab.data.twins import SOURCE as TWINS
from truthlens.lab.data.twins import read_twin_folder, twin_examples
from truthlens.lab.evaluate.metrics import auroc, best_f1
from truthlens.lab.evaluate.ranking import twin_ranking
from truthlens.lab.train.batches import IGNORED, Batch, TrainingItem, encode_examples, iterate, make_batches
from truthlens.lab.train.blind import Blind, blinded, check_sight
from truthlens.lab.train.model import BUNDLED_BASE, TokenClassifier, build_model, find_base
from truthlens.lab.train.precision import autocast
from truthlens.lab.train.predict import predict, response_hazard
from truthlens.lab.train.recipe import BUNDLED_RECIPE, INPUT, MAIN_SOURCE, TWINS_FOLDER, train_format
from truthlens.lab.train.warm_start import load_exported

CHECKPOINT = "checkpoint.pt"
WEIGHTS = "model.pt"
LAST_WEIGHTS = "last.pt"
SUMMARY = "train.json"
_CLIP = 1.0
_MEAN_FROM = 0.5
_MEAN_EVERY = 20
_WATCHED = 60
_POSITIVE_WEIGHT = 2.0
_EXAMPLE_SHARE = 0.5
_CONTRAST_SHARE = 0.25
_TOP_TOKENS = 3


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """What to train, on what, and for how long.

    ``data`` is the folder of labelled JSON lines, ``run`` the folder that checkpoints and weights go to. The
    learning rate falls to zero after ``epochs`` or ``minutes``, whichever comes first. ``limit`` bounds the
    rows of every source (for a trial run). ``start`` is an exported model folder to go on from, instead of the
    bare base. ``twins`` is a folder of twin files (``lab/data/twins``), of which some groups are held out.
    ``blind`` takes the evidence away from all rows: what such a model ranks, no model needs to read for.
    ``steps`` bounds the batches instead of the time, for trainings that are compared. ``feature_dropout`` is the share of
    answers that are learnt without lexical features, so that the encoder does not lean on them alone.
    Ablations leave out generated answers, the head's comparison with the evidence, features, and (``contrast``) pairs in
    the loss.
    """

    data: Path
    run: Path
    base: str = BUNDLED_BASE
    epochs: int = 2
    minutes: float = 120.0
    steps: int | None = None
    batch_tokens: int = 6_000
    learning_rate: float = 1.5e-4
    head_learning_rate: float = 1e-3
    warmup: float = 0.06
    limit: int | None = None
    threads: int = 2
    seed: int = 1
    checkpoint_minutes: float = 4.0
    generated: bool = True
    comparison: bool = True
    features: FeatureSet | None = INPUT.features
    feature_dropout: float = 0.1
    contrast: float = 0.25
    resume: bool = True
    start: Path | None = None
    twins: Path | None = TWINS_FOLDER
    blind: Blind = ""


@dataclass(slots=True)
class _State:
    model: TokenClassifier
    optimizer: torch.optim.Optimizer
    epoch: int = 0
    batch: int = 0
    step: int = 0
    elapsed_s: float = 0.0
    figures: list[dict[str, Any]] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    mean: dict[str, torch.Tensor] = field(default_factory=dict)
    """Mean of the weights over the second half of the training, every few steps."""
    in_mean: int = 0


_COUNTED = ("epoch", "batch", "step", "elapsed_s", "figures", "mean", "in_mean")
"""Of a state what a checkpoint keeps as it is."""


def train(
    settings: TrainSettings, *, recipe: Recipe = BUNDLED_RECIPE, console: Console | None = None
) -> Path:
    """Train, and return the run folder with ``model.pt``, tokenizer, configuration and ``train.json``.

    ``model.pt`` holds the mean of the weights over the second half of the training, ``last.pt`` the last
    ones.

    Raises:
        DataError: the data folder cannot be used.
        ModelError: the base model cannot be found, or the run folder is of a training that saw something else.
    """
    console = console or Console()
    torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    _keep_freed_memory()
    # First, so that a mistake in the data is told whatever is installed.
    rows = training_rows(settings)
    base = find_base(settings.base)
    tokenizer = load_tokenizer(base.folder)
    if settings.limit is not None:
        mixture = {
            source: Mixture(min(m.rows, settings.limit), m.weight) for source, m in recipe.mixture.items()
        }
        recipe = replace(recipe, mixture=mixture, default_mixture=Mixture(settings.limit))
    sides = split(rows, recipe)
    sides["train"] = locate_errors(sides["train"])
    watched = blinded(
        _watched(sides["calibration"], sides["test"], most=min(settings.limit or _WATCHED, _WATCHED)),
        settings.blind,
    )
    settings.run.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(settings.run / "tokenizer.json"))
    shutil.copyfile(base.folder / "config.json", settings.run / "config.json")

    state = _start(settings, base.folder)
    while state.epoch < settings.epochs:
        drawn = _epoch_rows(sides["train"], recipe, settings, epoch=state.epoch)
        console.print(f"epoch {state.epoch + 1}: encoding {len(drawn)} answers")
        items = encode_examples(
            tokenizer,
            blinded(drawn, settings.blind),
            format_of=lambda row: train_format(row).model_copy(update={"features": settings.features}),
            weight_of=lambda row: recipe.mixture.get(row.source, recipe.default_mixture).weight,
        )
        done = _run_epoch(state, items, settings, pad_id=tokenizer.token_to_id("[PAD]") or 0, console=console)
        figures = _figures(state.model, tokenizer, watched, features=settings.features)
        console.print(f"epoch {state.epoch + 1} figures: {json.dumps(figures)}")
        state.figures.append(figures)
        state.rows.update(example.source for example in drawn)
        state.epoch, state.batch = state.epoch + 1, 0
        _save(state, settings)
        if not done:
            break
    # The mean knows fewer answers by heart than the last weights, and ranks unseen ones better.
    torch.save(state.model.state_dict(), settings.run / LAST_WEIGHTS)
    torch.save(state.mean or state.model.state_dict(), settings.run / WEIGHTS)
    mean = None
    if state.mean:
        state.model.load_state_dict(state.mean)
        mean = _figures(state.model, tokenizer, watched, features=settings.features)
        console.print(f"mean of {state.in_mean} weights: {json.dumps(mean)}")
    summary: dict[str, Any] = {
        "settings": {key: str(value) if isinstance(value, Path) else value for key, value in asdict(settings).items()},
        "base": base.name,
        "base_licence": base.licence,
        "start": settings.start.name if settings.start else None,
        "rows": dict(sorted(state.rows.items())),
        "steps": state.step,
        "minutes": round(state.elapsed_s / 60, 1),
        "epochs": state.figures,
        "mean": mean,
    }  # fmt: skip
    for place in ("data", "twins", "start"):
        del summary["settings"][place]
    (settings.run / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n")
    return settings.run


def training_rows(settings: TrainSettings) -> list[Example]:
    """Return the rows of the data folder and, unless generated ones are left out, of the twins.

    Raises:
        DataError: a folder cannot be used.
    """
    rows = read_folder(settings.data)
    if settings.twins is not None and settings.generated:
        rows += twin_examples(read_twin_folder(settings.twins))
    return rows


def _keep_freed_memory() -> None:
    """Make glibc keep freed blocks.

    Activations are as large each step, and mapping them anew costs more than computing them (measured: a
    quarter of the throughput is left).
    """
    if platform.system() != "Linux":
        return
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        trim_threshold, top_pad, mmap_max = -1, -2, -4
        libc.mallopt(mmap_max, 0)
        libc.mallopt(trim_threshold, 2**31 - 1)
        libc.mallopt(top_pad, 256 * 1024 * 1024)


def _start(settings: TrainSettings, folder: Path) -> _State:
    model = build_model(folder, features=FEATURE_COUNT)
    model.compares = settings.comparison
    if settings.start is not None:
        load_exported(model, settings.start)
    head = [parameter for name, parameter in model.named_parameters() if not name.startswith("encoder.")]
    optimizer = torch.optim.AdamW(
        [
            {"params": list(model.encoder.parameters()), "peak": settings.learning_rate},
            {"params": head, "peak": settings.head_learning_rate},
        ],
        lr=settings.learning_rate,
        weight_decay=0.01,
        fused=True,
    )
    state = _State(model, optimizer)
    path = settings.run / CHECKPOINT
    if settings.resume and path.is_file():
        saved = torch.load(path, weights_only=True)
        check_sight(saved.get("blind", ""), settings.blind, path)
        if saved.get("features") != settings.features:
            raise ModelError(
                f"{path} is of a training with features {saved.get('features')}, and this one has {settings.features}; give "
                "another --run, or start over with --fresh"
            )
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        for name in _COUNTED:
            setattr(state, name, saved[name])
        state.rows = Counter(saved["rows"])
    return state


def _save(state: _State, settings: TrainSettings) -> None:
    path = settings.run / CHECKPOINT
    partial = path.with_suffix(".partial")
    saved = {name: getattr(state, name) for name in _COUNTED} | {
        "model": state.model.state_dict(),
        "optimizer": state.optimizer.state_dict(),
        "rows": dict(state.rows),
        "blind": settings.blind,
        "features": settings.features,
    }
    torch.save(saved, partial)
    partial.replace(path)


def _mean_weights(
    mean: dict[str, torch.Tensor], weights: dict[str, torch.Tensor], *, count: int
) -> dict[str, torch.Tensor]:
    """Return the mean of ``count`` sets of weights, of which ``mean`` is that of all but the last."""
    if count == 1:
        return {name: value.clone() for name, value in weights.items()}
    return {
        name: mean[name] + (value - mean[name]) / count if value.is_floating_point() else value.clone()
        for name, value in weights.items()
    }


_RICH_SOURCES = frozenset({MAIN_SOURCE, "summedits", "wice", "bump"})
_NOT_PAIRED = frozenset({"xsum_hallucination"})
_FEW = Recipe(default_mixture=Mixture(rows=500))
_EVEN = Recipe(default_mixture=Mixture(rows=2_500), mixture={TWINS: Mixture(rows=0)})


def _epoch_rows(
    train_side: list[Example], recipe: Recipe, settings: TrainSettings, *, epoch: int
) -> list[Example]:
    seed = settings.seed * 1000 + epoch
    rich = [row for row in train_side if row.source in _RICH_SOURCES] or train_side
    # Captions and news of one line make odd pairs, so that few of them take part.
    few = draw(
        [row for row in train_side if row.source not in _RICH_SOURCES and row.source not in _NOT_PAIRED],
        _FEW,
        seed=seed,
    )
    main = [row for row in train_side if row.source == MAIN_SOURCE] or rich

    def rows(source: str) -> int:
        return recipe.mixture.get(source, recipe.default_mixture).rows

    if not settings.generated:
        return draw(train_side, recipe, seed=seed)
    made = [
        *synthesize(rich, count=rows(SOURCE), seed=seed),
        *minimal_pairs([*rich, *main, *few], count=rows(PAIRS) // 2, seed=seed),
        *other_evidence(main, count=rows(EVIDENCE), seed=seed),
        *records(count=rows(TABLES), seed=seed),
        *evidence_twins(draw(train_side, _EVEN, seed=seed), count=rows(EVIDENCE_TWINS), seed=seed),
    ]
    return draw([*train_side, *made], recipe, seed=seed)


def _run_epoch(
    state: _State, items: list[TrainingItem], settings: TrainSettings, *, pad_id: int, console: Console
) -> bool:
    """Run an epoch; return whether it was completed before the time ended."""
    batches = make_batches(items, budget_tokens=settings.batch_tokens, seed=settings.seed + state.epoch)
    state.model.train()
    last = saved = time.monotonic()
    running: list[float] = []
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=len(batches), completed=state.batch)
        for batch in iterate(items, batches[state.batch :], pad_id=pad_id):
            done = (state.epoch + state.batch / len(batches)) / settings.epochs
            share = max(done, state.elapsed_s / 60 / settings.minutes)
            if settings.steps is not None:
                share = max(share, state.step / settings.steps if settings.steps else 1.0)
            if share >= 1.0:
                return False
            running.append(_step(state, batch, settings, rate=_schedule(share, settings.warmup)))
            if share >= _MEAN_FROM and state.step % _MEAN_EVERY == 0:
                state.in_mean += 1
                state.mean = _mean_weights(state.mean, state.model.state_dict(), count=state.in_mean)
            now = time.monotonic()
            state.elapsed_s += now - last
            last = now
            state.batch += 1
            state.step += 1
            progress.update(task, advance=1, description=f"training, loss {_mean(running[-50:]):.4f}")
            if state.step % 25 == 0 and not console.is_terminal:
                console.print(
                    f"epoch {state.epoch + 1} step {state.batch}/{len(batches)} loss {_mean(running[-25:]):.4f} minutes {state.elapsed_s / 60:.1f}"
                )
            if now - saved >= settings.checkpoint_minutes * 60:
                _save(state, settings)
                saved = now
    return True


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _schedule(share: float, warmup: float) -> float:
    return share / warmup if share < warmup else (1.0 - share) / (1.0 - warmup)


def _step(state: _State, batch: Batch, settings: TrainSettings, *, rate: float) -> float:
    for group in state.optimizer.param_groups:
        group["lr"] = group["peak"] * max(rate, 1e-3)
    keep = (torch.rand(len(batch.items), 1, 1) >= settings.feature_dropout).float()
    with autocast("cpu"):
        logits = state.model(
            batch.input_ids, batch.attention_mask, batch.token_type_ids, batch.features * keep
        )
    loss = batch_loss(logits.float(), batch, state.model.response, contrast=settings.contrast)
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(state.model.parameters(), _CLIP)
    state.optimizer.step()
    state.optimizer.zero_grad()
    value = loss.item()
    if not math.isfinite(value):
        raise FloatingPointError(f"the loss became {value} at step {state.step}; lower the learning rate")
    return value


def batch_loss(
    logits: Tensor, batch: Batch, response: Tensor, *, contrast: float = _CONTRAST_SHARE
) -> Tensor:
    """Return the token cross-entropy where spans are marked, plus the answer's, plus that of pairs.

    The answer is scored twice: by its three worst tokens, and by the summed hazard of all, which is what the
    Noisy-OR of serving ranks by. In a pair, the unsupported answer is to score above the supported one.

    Args:
        logits: shape (batch, tokens, 2).
        batch: the labels.
        response: slope and intercept of the hazard's log, shape (2,).
        contrast: share of the pairs in the loss.
    """
    known = batch.token_labels != IGNORED
    weights = batch.weight[:, None] * torch.where(batch.token_labels == 1, _POSITIVE_WEIGHT, 1.0) * known
    losses = functional.cross_entropy(
        logits.flatten(0, 1), batch.token_labels.flatten(), ignore_index=IGNORED, reduction="none"
    ).view_as(batch.token_labels)
    total = (losses * weights).sum() / weights.sum().clamp(min=1.0)
    margin = (logits[..., 1] - logits[..., 0]).masked_fill(~batch.answer_mask, -1e4)
    count = batch.answer_mask.sum(dim=1).clamp(min=1)
    top = margin.topk(min(_TOP_TOKENS, margin.shape[1]), dim=1).values
    finite = torch.arange(top.shape[1])[None] < count[:, None]
    worst = (top * finite).sum(dim=1) / finite.sum(dim=1)
    hazard = response[0] * functional.softplus(margin).sum(dim=1).clamp(min=1e-6).log() + response[1]
    for score in (worst, hazard):
        example = functional.binary_cross_entropy_with_logits(score, batch.label, reduction="none")
        whole = (example * batch.weight).sum() / batch.weight.sum().clamp(min=1e-6)
        total = total + _EXAMPLE_SHARE / 2 * whole
        if len(batch.contrasts):
            gap = score[batch.contrasts[:, 0]] - score[batch.contrasts[:, 1]]
            total = total + contrast / 2 * functional.softplus(-gap).mean()
    return total


def _watched(calibration: list[Example], test: list[Example], *, most: int) -> list[Example]:
    """Return the rows whose figures are shown after each epoch: a few of each source, of the main one four times as many."""
    seen: Counter[str] = Counter()
    rows = []
    for row in [*calibration, *test]:
        if seen[row.source] < (4 * most if row.source == MAIN_SOURCE else most):
            seen[row.source] += 1
            rows.append(row)
    return rows


def _figures(
    model: TokenClassifier, tokenizer: Tokenizer, rows: list[Example], *, features: FeatureSet | None
) -> dict[str, Any]:
    fmt = INPUT.model_copy(update={"features": features})
    scores = [response_hazard(tokens) for tokens in predict(model, tokenizer, rows, fmt=fmt)]
    figures: dict[str, Any] = {}
    for source in sorted({row.source for row in rows}):
        places = [place for place, row in enumerate(rows) if row.source == source]
        labels = [rows[place].label for place in places]
        values = [scores[place] for place in places]
        area = auroc(labels, values)
        figures[source] = {
            "rows": len(places),
            "auroc": None if area is None else round(area, 4),
            "best_f1": round(best_f1(labels, values)[0], 4),
        }
        ranked = twin_ranking([rows[place] for place in places], values)
        if ranked is not None:
            figures[source]["twins"] = round(ranked, 4)
    return figures
