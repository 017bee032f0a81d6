"""Tests of ``truthlens.lab.evaluate.report``: the Markdown, its files and its errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.scored_answers import made_tally
from truthlens.lab.data.dataset import DataError
from truthlens.lab.evaluate.comparisons import comparisons
from truthlens.lab.evaluate.evaluation import Evaluation, Tallied
from truthlens.lab.evaluate.reliability import reliability
from truthlens.lab.evaluate.report import ReportError, machine, markdown, prepare, write_report
from truthlens.lab.evaluate.score_table import EvaluationTally
from truthlens.lab.evaluate.summary import breakdown

SETTINGS: dict[str, Any] = {
    "model": "made", "threshold": 0.5, "token_threshold": 0.2, "base_rate": 0.18, "quality": "good", "limit": 60,
    "resamples": 20, "aggregation": "noisy_or", "machine": "a machine", "command": "truthlens eval one.jsonl",
}  # fmt: skip


def _tallied(name: str, tally: EvaluationTally) -> Tallied:
    figures = breakdown(tally, threshold=0.5, token_limit=0.2, base_rate=0.18, rounds=20)
    figures |= comparisons(tally, threshold=0.5, base_rate=0.18, rounds=20)
    return Tallied(name, tally, {**figures, "left_out": 3, "reliability": reliability(tally, base_rate=0.18)})


@pytest.fixture(scope="module")
def found() -> Evaluation:
    """Two files, with marks and without."""
    files = (
        _tallied("data/one.jsonl", made_tally(source="a|b")),
        _tallied("data/two.jsonl", made_tally(seed=1, marked=False)),
    )
    return Evaluation(
        SETTINGS, files, _tallied("all files", EvaluationTally.join([one.tally for one in files]))
    )  # fmt: skip


def test_the_report_says_how_it_was_made(found: Evaluation) -> None:
    """Model, threshold, aggregation, weighting, rows left out, machine and the command to repeat it."""
    text = markdown(found)
    for part in (
        "# Evaluation of made", "score ≥ 0.5", "`noisy_or`", "18.0%", "quality `good`", "the first 60", "a machine",
        "20 resamples", "truthlens eval one.jsonl", "**Optimistic**",
    ):  # fmt: skip
        assert part in text


def test_tables_have_a_row_a_file_and_one_for_all(found: Evaluation) -> None:
    """Every table has as many cells in each row as in its head."""
    text = markdown(found)
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == [
        "Figures", "By task", "By source", "By generator", "Rankings", "By type", "Reliability", "Latency and coverage", "Again",
    ]  # fmt: skip
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        widths = {len(re.split(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1
    answers = text.split("Answers:")[1].split("\n\n")[1]
    assert [line.split(" | ")[0] for line in answers.splitlines()[2:]] == [
        "| one.jsonl", "| two.jsonl", "| **all files**",
    ]  # fmt: skip
    area = found.files[0].figures["example"]["auroc"]
    low, high = found.files[0].figures["intervals"]["example"]["auroc"]
    assert f"{area:.3f} [{low:.3f}, {high:.3f}]" in answers
    assert r"| a\|b |" in text


def test_figures_without_labels_are_dashes_or_left_out(found: Evaluation) -> None:
    """A file without marks has no row among the parts, and no zero."""
    parts = markdown(found).split("Unsupported parts")[1].split("\n\n")[1]
    assert "one.jsonl" in parts
    assert "two.jsonl" not in parts


def test_the_report_stands_beside_its_plots(found: Evaluation, tmp_path: Path) -> None:
    """Every picture that the Markdown shows is there, and the figures are JSON without NaN."""
    folder = tmp_path / "new" / "folder"
    prepare(folder)
    text = write_report(found, folder).read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert len(pictures) == 7
    assert all((folder / name).is_file() for name in pictures)
    figures = json.loads((folder / "figures.json").read_text(encoding="utf-8"))
    assert figures["pooled"]["rows"] == 120
    json.dumps(figures, allow_nan=False)


def test_no_rows_make_no_report(tmp_path: Path) -> None:
    """An empty evaluation is an error, not an empty page."""
    tally = made_tally()
    nothing = _tallied("none.jsonl", tally.take(tally.scores > 2))
    with pytest.raises(DataError, match="no row was measured"):
        write_report(Evaluation(SETTINGS, (nothing,), nothing), tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """The error comes before anything is scored."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ReportError, match="cannot be made"):
        prepare(tmp_path / "file" / "folder")


def test_the_machine_is_in_words() -> None:
    """Threads and Python are named."""
    assert "3 thread(s) a scoring" in machine(3)
    assert "Python" in machine(1)
