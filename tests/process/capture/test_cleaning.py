"""What is taken out of captured texts, and what stays as it is to the byte."""

from __future__ import annotations

import json
from typing import Any

import pytest

from truthlens.core.review_settings import Redaction, ReviewSettings
from truthlens.process.capture.cleaning import Cleaner

PHONE = "+41 44 668 18 00"
MARKS = "█" * len(PHONE)


def _cleaner(**more: Any) -> Cleaner:
    return Cleaner(ReviewSettings(redact=(Redaction.PHONE,), **more), ["model-key"])


def _stream(*pieces: str, index: int = 0) -> str:
    frames = [
        f"data: {json.dumps({'id': 'c1', 'choices': [{'index': index, 'delta': {'content': piece}}]})}\n\n"
        for piece in pieces
    ]
    return "".join(frames) + "data: [DONE]\n\n"


def test_personal_data_and_known_keys_are_marked_one_for_one() -> None:
    """So that positions of spans stay right."""
    clean = _cleaner(redact_patterns=("secret plan",))
    text = f"Call {PHONE} about the secret plan with model-key."
    assert clean.text(text) == f"Call {MARKS} about the {'█' * 11} with {'█' * 9}."
    assert clean.changed


def test_credentials_of_a_request_are_hidden_whatever_the_policy_redacts() -> None:
    """The request is still one that the pipeline reads."""
    body = json.dumps({"model": "m", "user": "anna", "api_key": "k", "extra_headers": {"x": "y"}, "n": 1})
    clean = Cleaner(ReviewSettings(), ())
    assert json.loads(clean.request(body)) == {
        "model": "m",
        "user": "████",
        "api_key": "█",
        "extra_headers": {"x": "█"},
        "n": 1,
    }
    assert not clean.changed


@pytest.mark.parametrize(
    "body", ['{ "a" : "no number",\n "b":[1.0, "\\u00e4"]}', "not json", '["a list"]', '{"a": "\\ud800"}']
)
def test_a_body_without_any_of_it_stays_as_it_is(body: str) -> None:
    """Odd spacing and escapes as well: evidence and scores must not move."""
    clean = _cleaner()
    assert clean.request(body) == body
    assert clean.response(body, streams=False) == body
    assert not clean.changed


def test_what_is_split_over_the_chunks_of_a_stream_is_found() -> None:
    """Each chunk keeps its length, the others stay to the byte."""
    pieces = ["Call ", "+41 4", "4 668", " 18 0", "0.", " Bye."]
    cleaned = _cleaner().response(": hello\n\n" + _stream(*pieces), streams=True)
    frames = cleaned.split("\n\n")
    texts = [json.loads(frame[6:])["choices"][0]["delta"]["content"] for frame in frames[1:-2]]
    assert "".join(texts) == f"Call {MARKS}. Bye."
    assert [len(text) for text in texts] == [len(piece) for piece in pieces]
    assert (frames[0], frames[-2]) == (": hello", "data: [DONE]")
    assert frames[1] + "\n\n" == _stream("Call ").partition("data: [DONE]")[0]


def test_choices_of_a_stream_are_not_mixed_up() -> None:
    """Half a number in each of two choices is none."""
    frames = _stream("+41 44 ", index=0)[:-14] + _stream("668 18 00", index=1)
    assert _cleaner().response(frames, streams=True) == frames


def test_text_of_a_stream_that_is_no_json_is_cleaned() -> None:
    cleaned = _cleaner().response(f"data: call {PHONE}\n\n", streams=True)
    assert cleaned == f"data: call {MARKS}\n\n"


def test_no_header_with_a_credential_is_kept_even_where_the_policy_reads_it() -> None:
    headers = {"authorization": "Bearer x", "cookie": "y", "x-tenant": "acme", "x-other": "z"}
    kept = _cleaner().headers(headers, {"authorization", "cookie", "x-tenant", "absent"})
    assert kept == {"x-tenant": "acme"}
