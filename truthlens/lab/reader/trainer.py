"""Train the reader, on a CPU or a GPU, for as long as there is time: checkpoints, resumes, and logs its curves.

The same command goes on from the last checkpoint. The learning rate stays at its peak; the weights that are measured and
exported are a running average, and ``decay_steps`` ends a run with a falling rate.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from truthlens.detection.detectors.reader.inputs import ReaderEvidence, ReaderFormat, format_of
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.lab.data.dataset import Example, SplitName, read_folder, split
from truthlens.lab.data.twins import PLAIN_SOURCE, read_twin_folder, twin_examples
from truthlens.lab.data.twins import SOURCE as TWINS
from truthlens.lab.evaluate.ranking import twin_figures
from truthlens.lab.reader.batches import ClaimBatch, ClaimSource, loss_of, pad
from truthlens.lab.reader.claims import SUPPORTED, LabelledClaim
from truthlens.lab.reader.model import (
    AVERAGE,
    ReaderModel,
    build_reader,
    freeze_in_int8,
    load_trained,
    read_trained,
    save_trained,
    trained_state,
    unsupported_log_odds,
)
from truthlens.lab.reader.recipe import LONG_RUN, SPLITS, ReaderRecipe, Stage
from truthlens.lab.train.precision import autocast, int8_is_faster
from truthlens.text.claims.claims import claims

CHECKPOINT, LOG = "checkpoint.pt", "log.jsonl"
_CLIP = 1.0
_LOGGED_STEPS = 20
_WATCHED_TWINS = 500
# After so many steps the draws get a new seed, so that a resumed run draws anew and not the same rows again.
_SEED_STEPS = 200


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """What to train, on what, and for how long.

    ``data`` is the folder of labelled JSON lines, ``twins`` of twin files with a folder ``plain`` in it, ``base`` a Hugging Face folder, ``run`` the folder
    of checkpoints and log, ``start`` an ``average.safetensors`` to go on from. It ends after ``minutes`` of wall time or at step
    ``steps``, whichever comes first; the last ``decay_steps`` of ``steps`` let the learning rate fall to zero. ``limit``
    bounds the rows of each source (for a trial run).
    """

    data: Path
    twins: Path
    base: Path
    run: Path
    start: Path | None = None
    minutes: float = 60.0
    steps: int | None = None
    decay_steps: int = 0
    threads: int = 1
    seed: int = 1
    device: str = "cpu"
    checkpoint_minutes: float = 10.0
    figure_minutes: float = 30.0
    limit: int | None = None


def train_reader(settings: ReaderSettings, *, recipe: ReaderRecipe = LONG_RUN) -> Path:
    """Train, and return the run folder: ``checkpoint.pt``, ``average.safetensors`` (the weights to export) and ``log.jsonl``.

    Raises:
        DataError: the data folder cannot be used.
        ModelError: the base model cannot be used, or the run folder is of another recipe.
    """
    torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    settings.run.mkdir(parents=True, exist_ok=True)
    training = _Training(settings, recipe)
    with training.ending_at_sigterm():
        training.run()
    return settings.run


def held_out_twins(folder: Path) -> list[Example]:
    """Return the twins of ``folder`` that no training sees, 500 answers at most: what the figures of a run are measured on."""
    return _held_out(split(twin_examples(read_twin_folder(folder)), SPLITS))


def _held_out(sides: Mapping[SplitName, Sequence[Example]]) -> list[Example]:
    kept = (row for row in (*sides["calibration"], *sides["test"]) if row.source == TWINS)
    return list(islice(kept, _WATCHED_TWINS))


def _twins(folder: Path) -> list[Example]:
    plain = twin_examples(read_twin_folder(folder / "plain"), source=PLAIN_SOURCE)
    return [*twin_examples(read_twin_folder(folder)), *plain]


def stage_at(recipe: ReaderRecipe, pairs: int) -> Stage:
    """Return the stage of a training that has seen ``pairs`` claims."""
    return next((stage for stage in recipe.stages if pairs < stage.pairs), recipe.stages[-1])


class _Training:
    """Model, optimizer, data and counters of one run."""

    def __init__(self, settings: ReaderSettings, recipe: ReaderRecipe) -> None:
        self._settings, self._recipe = settings, recipe
        self._tokenizer = load_tokenizer(settings.base)
        self._fmt = format_of(self._tokenizer)
        rows = [row for row in read_folder(settings.data) if row.quality == "good"]
        sides = split([*rows, *_twins(settings.twins)], SPLITS)
        self._watched = _held_out(sides)
        self._source = ClaimSource(
            _limited(sides["train"], settings.limit), self._tokenizer, self._fmt, recipe
        )
        self._step = self._pairs = 0
        self._stopped = False
        self._cpu_s = 0.0
        self._build()

    @contextmanager
    def ending_at_sigterm(self) -> Iterator[None]:
        """End after the step under way when the process is told to end, so that nothing learnt is lost."""

        def stop(*_: object) -> None:
            self._stopped = True

        before = signal.signal(signal.SIGTERM, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _build(self) -> None:
        settings, recipe = self._settings, self._recipe
        self._model = build_reader(
            settings.base, layers=recipe.layers, frozen_layers=recipe.frozen_layers, rank=recipe.rank
        )
        if recipe.rank is not None and int8_is_faster(settings.device):
            freeze_in_int8(self._model)
        self._model.to(settings.device)
        if settings.start is not None:
            trained_before, self._pairs = read_trained(settings.start)
            load_trained(self._model, trained_before)
        trained = {name: p for name, p in self._model.named_parameters() if p.requires_grad}
        head = [p for name, p in trained.items() if name.startswith("head.")]
        body = [p for name, p in trained.items() if not name.startswith("head.")]
        self._optimizer = torch.optim.AdamW(
            [
                {"params": body, "peak": recipe.learning_rate},
                {"params": head, "peak": recipe.head_learning_rate},
            ],
            lr=recipe.learning_rate,
            weight_decay=recipe.weight_decay,
            betas=(0.9, 0.98),
        )
        self._average = trained_state(self._model)
        path = settings.run / CHECKPOINT
        if not path.is_file():
            return
        saved = torch.load(path, map_location=settings.device, weights_only=True)
        load_trained(self._model, saved["model"])
        self._optimizer.load_state_dict(saved["optimizer"])
        self._step, self._pairs, self._cpu_s = saved["step"], saved["pairs"], saved["cpu_s"]
        self._average = saved["average"]

    def run(self) -> None:
        """Train until time or steps are over; save and measure now and then, and at the end."""
        settings = self._settings
        begun = saved = measured = time.monotonic()
        cpu = time.process_time()
        losses: list[float] = []
        batches: Iterator[ClaimBatch] = iter(())
        drawn_for: tuple[str, int] | None = None
        while (
            not self._stopped
            and time.monotonic() - begun < settings.minutes * 60
            and (settings.steps is None or self._step < settings.steps)
        ):
            stage = stage_at(self._recipe, self._pairs)
            if drawn_for != (stage.name, self._step // _SEED_STEPS):
                drawn_for = (stage.name, self._step // _SEED_STEPS)
                batches = self._source.batches(stage, seed=settings.seed * 1_000_003 + self._pairs)
            batch = next(batches).to(settings.device)
            losses.append(self._learn(batch))
            self._step += 1
            self._pairs += len(batch.labels)
            if self._step % _LOGGED_STEPS == 0:
                self._cpu_s += time.process_time() - cpu
                cpu = time.process_time()
                self._log(stage=stage.name, loss=round(sum(losses) / len(losses), 4))
                losses.clear()
            if time.monotonic() - saved >= settings.checkpoint_minutes * 60:
                self._save()
                saved = time.monotonic()
            if time.monotonic() - measured >= settings.figure_minutes * 60:
                self._measure()
                measured = time.monotonic()
        self._save()
        if not self._stopped:
            self._measure()

    def _learn(self, batch: ClaimBatch) -> float:
        settings, recipe = self._settings, self._recipe
        rate = min(1.0, (self._step + 1) / recipe.warmup_steps)
        if settings.steps is not None and settings.decay_steps:
            rate *= min(1.0, (settings.steps - self._step) / settings.decay_steps)
        for group in self._optimizer.param_groups:
            group["lr"] = group["peak"] * rate
        self._model.train()
        with autocast(settings.device):
            logits = self._model(batch.input_ids, batch.attention_mask, batch.claim_mask)
        loss = loss_of(logits.float(), batch, contrast=recipe.contrast)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_([p for p in self._model.parameters() if p.requires_grad], _CLIP)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        keep = min(0.5 ** (1 / recipe.average_half_life), (1 + self._step) / (10 + self._step))
        with torch.no_grad():
            for name, value in self._model.named_parameters():
                if value.requires_grad:
                    self._average[name].lerp_(value, 1 - keep)
        return float(loss.item())

    def _save(self) -> None:
        settings = self._settings
        saved = {
            "model": trained_state(self._model),
            "optimizer": self._optimizer.state_dict(),
            "average": self._average,
            "step": self._step,
            "pairs": self._pairs,
            "cpu_s": self._cpu_s,
        }
        partial = settings.run / f"{CHECKPOINT}.partial"
        torch.save(saved, partial)
        partial.replace(settings.run / CHECKPOINT)
        save_trained(settings.run / AVERAGE, self._average, pairs=self._pairs)

    def _measure(self) -> None:
        """Measure the average of the weights on held-out twins."""
        own = trained_state(self._model)
        self._model.load_state_dict(self._average, strict=False)
        scores = answer_scores(
            self._model, self._tokenizer, self._watched, fmt=self._fmt, device=self._settings.device
        )
        self._model.load_state_dict(own, strict=False)
        self._log(figures=twin_figures(self._watched, scores))

    def _log(self, **figures: Any) -> None:
        """Append a line of figures to the log of the run."""
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()),
            "step": self._step,
            "pairs": self._pairs,
            "cpu_minutes": round(self._cpu_s / 60, 2),
            **figures,
        }
        path = self._settings.run / LOG
        if not path.is_file():
            told = {
                key: str(value) if isinstance(value, Path) else value
                for key, value in asdict(self._settings).items()
            }
            line = {"settings": told, **line}
        with path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")


def answer_scores(
    model: ReaderModel,
    tokenizer: Tokenizer,
    rows: Sequence[Example],
    *,
    fmt: ReaderFormat,
    device: str = "cpu",
    batch: int = 32,
) -> list[float]:
    """Return, per answer, the highest log-odds of its claims that they are unsupported."""
    model.eval()
    pad_id = tokenizer.token_to_id(fmt.pad) or 0
    encoded = []
    for place, row in enumerate(rows):
        evidence = ReaderEvidence(tokenizer, fmt, row.context)
        listed = [each.text for each in claims(row.response) if each.factual] or [row.response]
        for text in listed:
            claim = LabelledClaim(text, row.context, row.query, SUPPORTED, row)
            encoded.append((place, claim, evidence.input_for(text, query=row.query)))
    encoded.sort(key=lambda each: len(each[2].ids))
    scores = [float("-inf")] * len(rows)
    for first in range(0, len(encoded), batch):
        part = encoded[first : first + batch]
        padded = pad([[(claim, read) for _, claim, read in part]], pad_id=pad_id).to(device)
        with torch.inference_mode(), autocast(device):
            logits = model(padded.input_ids, padded.attention_mask, padded.claim_mask)
        for (place, _, _), score in zip(part, unsupported_log_odds(logits.float()).tolist(), strict=True):
            scores[place] = max(scores[place], score)
    return scores


def _limited(rows: Sequence[Example], limit: int | None) -> list[Example]:
    if limit is None:
        return list(rows)
    seen: dict[str, int] = {}
    kept = []
    for row in rows:
        seen[row.source] = seen.get(row.source, 0) + 1
        if seen[row.source] <= limit:
            kept.append(row)
    return kept
