"""Tests of ``truthlens.hub.evaluate`` with detectors that say what they are told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from truthlens.core.records import Coverage, Span
from truthlens.hub.data import DataError
from truthlens.hub.evaluate import evaluate

FULL = Coverage(10, 10, 20, 20)
HALF = Coverage(10, 5, 20, 20)


@dataclass(frozen=True)
class Said:
    """What the scripted detector says of one answer."""

    score: float | None
    spans: tuple[Span, ...] = ()
    coverage: Coverage | None = FULL


def _row(response: str, label: int, spans: list[tuple[int, int]] | None = None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "query": "q",
        "context": ["c"],
        "response": response,
        "label": label,
        "source": "made",
    }
    if spans is not None:
        row["spans"] = [{"start": start, "end": end} for start, end in spans]
    return row


def _file(folder: Path, rows: list[dict[str, Any]], name: str = "a.jsonl") -> Path:
    path = folder / name
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def _by_answer(table: dict[str, Said]) -> Any:
    def score(query: str, passages: Sequence[str], answer: str) -> Said:
        assert (query, list(passages)) == ("q", ["c"])
        return table[answer]

    return score


MARKED = [_row("aaaaaaaaaa", 1, [(0, 4)]), _row("bbbbbbbbbb", 0, []), _row("cccccccccc", 1, [(5, 10)])]
SAYS = {
    "aaaaaaaaaa": Said(0.9, (Span(2, 6, 0.9),)),
    "bbbbbbbbbb": Said(0.7, (Span(0, 2, 0.7),), HALF),
    "cccccccccc": Said(0.2),
}


def test_figures_of_a_marked_file(tmp_path: Path) -> None:
    """Example, span and character figures by hand: one of two flagged is right, one of two gold is found."""
    file = _file(tmp_path, MARKED)
    result = evaluate([file], score=_by_answer(SAYS), model="scripted", threshold=0.6)
    assert result["model"] == "scripted"
    (found,) = result["files"]
    assert list(found) == ["file", "rows", "example", "span", "char", "ece", "coverage", "latency_ms"]
    assert (found["file"], found["rows"]) == (str(file), 3)
    assert found["example"] == {
        "precision": 0.5, "recall": 0.5, "f1": 0.5, "auroc": 0.5, "auprc": 0.8333, "threshold": 0.6,
    }  # fmt: skip
    assert found["span"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5}
    assert found["char"] == {"precision": round(2 / 6, 4), "recall": round(2 / 9, 4), "f1": round(4 / 15, 4)}
    assert found["ece"] == pytest.approx((0.1 + 0.7 + 0.8) / 3, abs=1e-4)
    assert found["coverage"] == pytest.approx((1 + 0.5 + 1) / 3, abs=1e-4)
    assert found["latency_ms"]["p99"] >= found["latency_ms"]["p50"] >= 0.0


def test_figures_without_labels_are_null(tmp_path: Path) -> None:
    """No marks: no span and character figures; one class alone: no AUROC."""
    file = _file(tmp_path, [_row("aaaaaaaaaa", 0)])
    (found,) = evaluate([file], score=_by_answer(SAYS), model="m", threshold=0.5)["files"]
    nothing = {"precision": None, "recall": None, "f1": None}
    assert found["span"] == found["char"] == nothing
    assert found["example"]["auroc"] is None
    assert found["example"]["auprc"] is None


def test_an_empty_file_has_null_figures(tmp_path: Path) -> None:
    """Nothing to score is no figure of zero."""
    (found,) = evaluate([_file(tmp_path, [])], score=_by_answer({}), model="m", threshold=0.5)["files"]
    assert found["rows"] == 0
    assert found["example"] == {
        "precision": None, "recall": None, "f1": None, "auroc": None, "auprc": None, "threshold": 0.5,
    }  # fmt: skip
    assert found["latency_ms"] == {"p50": None, "p99": None}
    assert found["coverage"] is None


def test_an_unscored_answer_counts_as_not_flagged_and_not_covered(tmp_path: Path) -> None:
    """Not looking improves no figure."""
    file = _file(tmp_path, [_row("aaaaaaaaaa", 1), _row("bbbbbbbbbb", 0)])
    says = {**SAYS, "aaaaaaaaaa": Said(None, coverage=None)}
    (found,) = evaluate([file], score=_by_answer(says), model="m", threshold=0.6)["files"]
    assert found["example"]["recall"] == 0.0
    assert found["example"]["auroc"] == 0.0
    assert found["coverage"] == 0.25


def test_base_rate_weighs_precision_but_not_recall(tmp_path: Path) -> None:
    """With 10 % unsupported, the one false alarm weighs 0.9 against 0.05 for the one hit."""
    file = _file(tmp_path, MARKED)
    (found,) = evaluate([file], score=_by_answer(SAYS), model="m", threshold=0.6, base_rate=0.1)["files"]
    assert found["example"]["recall"] == 0.5
    assert found["example"]["precision"] == pytest.approx(0.05 / 0.95, abs=1e-4)


@pytest.mark.parametrize("base_rate", [0.0, 1.0, -1.0])
def test_impossible_base_rates_are_refused(tmp_path: Path, base_rate: float) -> None:
    """A base rate of all or nothing has no weights."""
    with pytest.raises(ValueError, match="base_rate"):
        evaluate([], score=_by_answer({}), model="m", threshold=0.5, base_rate=base_rate)


def test_limit_takes_the_first_rows_of_each_file(tmp_path: Path) -> None:
    """Two files, one row of each."""
    files = [_file(tmp_path, MARKED), _file(tmp_path, MARKED[1:], "b.jsonl")]
    result = evaluate(files, score=_by_answer(SAYS), model="m", threshold=0.6, limit=1)
    assert [found["rows"] for found in result["files"]] == [1, 1]
    json.dumps(result)


def test_a_wrong_file_is_an_error_with_its_line(tmp_path: Path) -> None:
    """A damaged row stops the evaluation."""
    with pytest.raises(DataError, match="line 1"):
        evaluate([_file(tmp_path, [{"label": 1}])], score=_by_answer({}), model="m", threshold=0.5)
