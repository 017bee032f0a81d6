"""Tests of ``truthlens.lab.evaluate.evaluation`` with detectors that say what they are told."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from truthlens.core.records.verdict import Coverage, Span
from truthlens.lab.data.dataset import DataError, read_examples
from truthlens.lab.evaluate.evaluation import Evaluation, Quality, measure, report
from truthlens.lab.evaluate.evaluation import evaluate as evaluate_files

CONTRACT = ["file", "rows", "example", "span", "char", "ece", "coverage", "latency_ms"]
FULL = Coverage(10, 10, 20, 20)
HALF = Coverage(10, 5, 20, 20)


@dataclass(frozen=True)
class Said:
    """What the scripted detector says of one answer."""

    score: float | None
    spans: tuple[Span, ...] = ()
    coverage: Coverage | None = FULL


def _evaluate(files: list[Path], **options: Any) -> Evaluation:
    return evaluate_files(files, **{"model": "m", "threshold": 0.6, "rounds": 20, **options})


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
    result = _evaluate([file], score=_by_answer(SAYS), model="scripted").as_json()
    assert result["model"] == "scripted"
    (found,) = result["files"]
    assert list(found)[:8] == CONTRACT
    assert result["pooled"] == found
    assert (found["file"], found["rows"]) == (str(file), 3)
    assert found["example"] == {
        "precision": 0.5, "recall": 0.5, "f1": 0.5, "auroc": 0.5, "auprc": 0.8333, "threshold": 0.6,
    }  # fmt: skip
    assert found["span"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5}
    assert found["char"] == {"precision": round(2 / 6, 4), "recall": round(2 / 9, 4), "f1": round(4 / 15, 4)}
    assert found["ece"] == pytest.approx((0.1 + 0.7 + 0.8) / 3, abs=1e-4)
    assert found["coverage"] == pytest.approx((1 + 0.5 + 1) / 3, abs=1e-4)
    assert found["latency_ms"]["p99"] >= found["latency_ms"]["p50"] >= 0.0
    assert found["latency_ms"]["per_1000_tokens"] > 0.0
    assert found["any_span"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5}
    assert (found["unsupported"], found["base_rate"], found["marked"]) == (2, 0.6667, 3)


def test_figures_without_labels_are_null(tmp_path: Path) -> None:
    """No marks: no span and character figures; one class alone: no AUROC."""
    file = _file(tmp_path, [_row("aaaaaaaaaa", 0)])
    (found,) = _evaluate([file], score=_by_answer(SAYS)).as_json()["files"]
    nothing = {"precision": None, "recall": None, "f1": None}
    assert found["span"] == found["char"] == nothing
    assert found["example"]["auroc"] is None
    assert found["example"]["auprc"] is None


def test_an_empty_file_has_null_figures(tmp_path: Path) -> None:
    """Nothing to score is no figure of zero."""
    (found,) = _evaluate([_file(tmp_path, [])], score=_by_answer({})).as_json()["files"]
    assert found["rows"] == 0
    assert found["example"] == {
        "precision": None, "recall": None, "f1": None, "auroc": None, "auprc": None, "threshold": 0.6,
    }  # fmt: skip
    assert found["latency_ms"] == {"p50": None, "p99": None, "per_1000_tokens": None}
    assert found["coverage"] is found["ece"] is found["brier"] is found["risk_coverage"] is None
    assert found["base_rate"] is found["best"] is None


def test_an_unscored_answer_counts_as_not_flagged_and_not_covered(tmp_path: Path) -> None:
    """Not looking improves no figure."""
    file = _file(tmp_path, [_row("aaaaaaaaaa", 1), _row("bbbbbbbbbb", 0)])
    says = {**SAYS, "aaaaaaaaaa": Said(None, coverage=None)}
    (found,) = _evaluate([file], score=_by_answer(says)).as_json()["files"]
    assert found["example"]["recall"] == 0.0
    assert found["example"]["auroc"] == 0.0
    assert found["coverage"] == 0.25
    assert found["unscored"] == 1


def test_base_rate_weighs_precision_but_not_recall(tmp_path: Path) -> None:
    """With 10 % unsupported, the one false alarm weighs 0.9 against 0.05 for the one hit."""
    file = _file(tmp_path, MARKED)
    (found,) = _evaluate([file], score=_by_answer(SAYS), base_rate=0.1).as_json()["files"]
    assert found["example"]["recall"] == 0.5
    assert found["example"]["precision"] == pytest.approx(0.05 / 0.95, abs=1e-4)
    assert found["base_rate"] == 0.1
    # Characters carry the weights of their answers: 2 right of 4, each 0.05, beside 2 wrong ones of weight 0.9.
    assert found["char"]["precision"] == pytest.approx(0.05 * 2 / (0.05 * 4 + 0.9 * 2), abs=1e-4)


@pytest.mark.parametrize("base_rate", [0.0, 1.0, -1.0])
def test_impossible_base_rates_are_refused(tmp_path: Path, base_rate: float) -> None:
    """A base rate of all or nothing has no weights."""
    with pytest.raises(ValueError, match="base_rate"):
        _evaluate([_file(tmp_path, MARKED)], score=_by_answer({}), base_rate=base_rate)


def test_no_file_is_an_error() -> None:
    """There is nothing to say of nothing."""
    with pytest.raises(ValueError, match="no file"):
        _evaluate([], score=_by_answer({}))


def test_limit_takes_the_first_rows_of_each_file(tmp_path: Path) -> None:
    """Two files, one row of each."""
    files = [_file(tmp_path, MARKED), _file(tmp_path, MARKED[1:], "b.jsonl")]
    result = _evaluate(files, score=_by_answer(SAYS), limit=1).as_json()
    assert [found["rows"] for found in result["files"]] == [1, 1]
    json.dumps(result)


def test_a_wrong_file_is_an_error_with_its_line(tmp_path: Path) -> None:
    """A damaged row in the last file stops the evaluation before the first answer is scored."""
    files = [_file(tmp_path, MARKED), _file(tmp_path, [{"label": 1}], "b.jsonl")]
    with pytest.raises(DataError, match=r"b\.jsonl, line 1"):
        _evaluate(files, score=_by_answer({}))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl.gz", b"no gzip", "gzip'd JSON lines"),
        ("a.jsonl.gz", gzip.compress(b"{}" * 99, mtime=0)[:-12], "is the file whole"),
        ("a.jsonl", b"\xff\xfe{}", "UTF-8"),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    """Damaged gzip and other encodings are errors of the data, not tracebacks."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        _evaluate([path], score=_by_answer({}))


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    """Files are read twice, which a pipe cannot be."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="no regular file"):
        _evaluate([tmp_path / "pipe"], score=_by_answer({}))


def test_quality_chooses_rows_and_says_how_many_are_left_out(tmp_path: Path) -> None:
    """Only good rows, then the limit; rows without a quality are good."""
    file = _file(tmp_path, [{**MARKED[0], "quality": "truncated"}, *MARKED[1:]])
    found = _evaluate([file], score=_by_answer(SAYS), quality=Quality.GOOD, limit=1)
    assert (found.files[0].figures["rows"], found.files[0].figures["left_out"]) == (1, 1)
    assert found.settings["quality"] == "good"
    assert _evaluate([file], score=_by_answer(SAYS)).files[0].figures["left_out"] == 0


def test_all_files_together_are_measured_as_one(tmp_path: Path) -> None:
    """The pooled figures are those of a file that holds all rows."""
    files = [_file(tmp_path, MARKED[:1]), _file(tmp_path, MARKED[1:], "b.jsonl")]
    pooled = _evaluate(files, score=_by_answer(SAYS)).as_json()["pooled"]
    one = _evaluate([_file(tmp_path, MARKED, "c.jsonl")], score=_by_answer(SAYS)).as_json()["pooled"]
    assert pooled["file"] == "all files"
    assert {**pooled, "file": "", "latency_ms": {}, "sources": {}} == {
        **one, "file": "", "latency_ms": {}, "sources": {}
    }  # fmt: skip


def test_a_manifest_keeps_the_main_figures_alone(tmp_path: Path) -> None:
    """``report`` has the keys of the contract and none of the long ones."""
    examples = read_examples(_file(tmp_path, MARKED))
    found = report(examples, measure(examples, _by_answer(SAYS)), threshold=0.6)
    assert list(found) == CONTRACT[1:]
    assert list(found["latency_ms"]) == ["p50", "p99"]
