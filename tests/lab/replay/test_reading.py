"""A capture is read whole, or the message says which line of which file cannot be."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from truthlens.lab.replay.reading import CaptureError, read_captures

HEADER = '{"truthlens_capture": 1, "version": "0.1.0", "scoring_version": 8}\n'
EXCHANGE: dict[str, Any] = {
    "id": "a",
    "request": {"method": "POST", "path": "/v1/chat/completions", "body": "{}"},
    "response": None,
    "outcome": {"decision": "default"},
    "of a later version": 1,
}
LINE = json.dumps(EXCHANGE) + "\n"


def _written(folder: Path, text: str | bytes, name: str = "c.jsonl") -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def test_several_runs_and_files_are_read_in_order(tmp_path: Path) -> None:
    """Each run has its header; a rotated file may be packed."""
    first = _written(tmp_path, HEADER + LINE + HEADER.replace("8", "7") + LINE)
    second = _written(tmp_path, gzip.compress((HEADER + LINE).encode()), "c.jsonl.1.gz")
    captured = read_captures([second, first])
    assert len(captured.exchanges) == 3
    assert captured.scoring_versions == {7, 8}
    assert captured.unfinished == ()
    assert len(read_captures([second, first], limit=1).exchanges) == 2


@pytest.mark.parametrize("end", [LINE[:20], LINE[:-1] + LINE[:5]])
def test_an_unfinished_last_line_is_left_out_and_said(tmp_path: Path, end: str) -> None:
    file = _written(tmp_path, HEADER + LINE + end)
    captured = read_captures([file])
    assert (len(captured.exchanges), captured.unfinished) == (1, (str(file),))


def test_a_last_line_that_ends_within_a_character_is_unfinished(tmp_path: Path) -> None:
    file = _written(tmp_path, (HEADER + LINE).encode() + b'{"id": "\xc3')
    assert read_captures([file]).unfinished == (str(file),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no captured exchange in it"),
        (HEADER, "there is no captured exchange in it"),
        (LINE, "line 1: it is no capture of TruthLens"),
        ("# text\n", "line 1: it is no capture of TruthLens"),
        ("[1]\n", "line 1: it is no capture of TruthLens"),
        (HEADER + "{secret\n" + LINE, "line 2: it is no JSON"),
        (HEADER + '{"id": 7}\n', "line 2: id: Input should be a valid string"),
        (HEADER + "7\n", "line 2: the line: Input should be a valid dictionary"),
        (
            HEADER + LINE.replace('"body": "{}"', '"body": {"secret": 1}'),
            "line 2: request.body: Input should be",
        ),
        (
            HEADER.replace("1,", "2,", 1) + LINE,
            "line 1: format 2, made by TruthLens '0.1.0'; this one reads format 1",
        ),
        ((HEADER + LINE).encode() + b"\xff\n", "line 3: it is not UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(tmp_path: Path, text: str | bytes, message: str) -> None:
    """It quotes no text of the file."""
    with pytest.raises(CaptureError) as told:
        read_captures([_written(tmp_path, text)])
    assert message in str(told.value)
    assert "secret" not in str(told.value)
