"""Exchanges that are written down become requests and responses, or the message says which line is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from truthlens.lab.data.dataset import DataError
from truthlens.lab.replay.planned import planned


def _file(folder: Path, *lines: str) -> Path:
    file = folder / "rows.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_chat_and_labelled_rows_are_read(tmp_path: Path) -> None:
    """A response may be its JSON, or the answer's text."""
    chat = {"request": {"model": "m", "messages": []}, "response": "Yes.", "headers": {"X-Plan": "a"}}
    whole = {**chat, "response": {"choices": []}, "path": "/v1/completions"}
    labelled = {"context": ["Tea is free."], "query": "Is it?", "response": "Yes.", "label": 0}
    one = {**labelled, "context": "Tea is free."}
    first, second, third, fourth = planned([_file(tmp_path, *map(json.dumps, (chat, whole, labelled, one)))])
    assert first.head.headers == {"content-type": "application/json", "x-plan": "a"}
    assert json.loads(first.response)["choices"][0]["message"]["content"] == "Yes."
    assert (second.head.path, json.loads(second.response)) == ("/v1/completions", {"choices": []})
    assert json.loads(third.request) == {
        "messages": [{"role": "user", "content": "Is it?"}],
        "documents": ["Tea is free."],
    }
    assert fourth.request == third.request
    assert len(list(planned([tmp_path / "rows.jsonl"], limit=2))) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{secret", "line 2: it is no JSON"),
        ('{"context": [], "query": "secret"}', "line 2: response: Field required"),
        ('{"request": "secret", "response": "x"}', "line 2: request: Input should be a valid dictionary"),
        ('["secret"]', "line 2: the line: Input should be a valid dictionary"),
    ],
)
def test_a_line_that_is_no_exchange_says_where(tmp_path: Path, line: str, message: str) -> None:
    """It quotes no text of the file."""
    file = _file(tmp_path, '{"context": [], "response": "x"}', line)
    with pytest.raises(DataError) as told:
        list(planned([file]))
    assert message in str(told.value)
    assert "secret" not in str(told.value)
