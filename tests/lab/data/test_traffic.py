"""Tests of ``truthlens.lab.data.traffic``: unlabelled rows, and the texts of the gateway's own log."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import structlog

from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.lab.data.dataset import DataError
from truthlens.lab.data.traffic import TrafficAnswer, read_traffic
from truthlens.telemetry.logs import configure, log_texts


def _file(folder: Path, *rows: Any) -> Path:
    path = folder / "traffic.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", encoding="utf-8")
    return path


def test_rows_need_no_label(tmp_path: Path) -> None:
    """Context is a text or a list, the query may be missing; further keys, labels too, are let be."""
    rows = (
        {"context": "c", "response": "r"},
        {"context": ["a", "b"], "query": "q", "response": "", "label": 1},
    )
    expected = [TrafficAnswer("", ("c",), "r"), TrafficAnswer("q", ("a", "b"), "")]
    path = _file(tmp_path, *rows)
    assert read_traffic(path) == expected
    packed = tmp_path / "traffic.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_traffic(packed) == expected


def test_the_gateways_own_log_is_traffic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it writes with log_text gives an answer a choice; its other lines give none."""
    exchange = Exchange(Endpoint.CHAT, "m", "When?", (Passage("At nine.", Provenance.DOCUMENTS),))
    answers = [Answer(n, AnswerKind.TEXT, text) for n, text in enumerate(("Nine.", "Ten."))]
    try:
        configure()
        log_texts(exchange, answers, request_id="1")
        structlog.get_logger("truthlens.api").info("exchange", score=0.5)
    finally:
        structlog.reset_defaults()
    path = tmp_path / "log.jsonl"
    path.write_text(capsys.readouterr().err, encoding="utf-8")
    assert read_traffic(path) == [TrafficAnswer("When?", ("At nine.",), text) for text in ("Nine.", "Ten.")]


@pytest.mark.parametrize(
    "line",
    ["no json", "[1]", '{"context": ["c"]}', '{"context": [1], "response": "r"}', '{"response": "secret"}'],
)
def test_a_wrong_line_is_named_and_not_quoted(tmp_path: Path, line: str) -> None:
    path = tmp_path / "traffic.jsonl"
    path.write_text('{"context": "c", "response": "r"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2") as caught:
        read_traffic(path)
    assert "log_text" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_damaged_files_are_one_error(tmp_path: Path) -> None:
    """Half of a gzip file, and text that is no UTF-8."""
    half = tmp_path / "half.gz"
    half.write_bytes(gzip.compress(b'{"context": "c", "response": "r"}\n' * 100)[:40])
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes(b'{"context": "c", "response": "\xe9"}')
    for path in (half, latin):
        with pytest.raises(DataError, match="cannot be read"):
            read_traffic(path)
