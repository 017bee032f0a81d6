"""Why a request was refused, by what the servers in use say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.llm.http.causes import Cause, cause_of

VLLM = (
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 in the messages, 500 in"
    " the completion). Please reduce the length of the messages or completion."
)


@pytest.mark.parametrize(
    ("status", "body", "code", "window"),
    [
        (400, {"object": "error", "message": VLLM, "type": "BadRequestError", "code": 400}, "context-length", 4096),
        (400, {"error": {"message": "no", "code": "context_length_exceeded"}}, "context-length", None),
        (400, {"error": {"message": "no", "type": "exceed_context_size_error", "n_ctx": 2048}}, "context-length", 2048),
        (
            400,
            {"message": "The decoder prompt (length 5123) is longer than the maximum model length of 4096."},
            "context-length",
            4096,
        ),
        (
            422,
            {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"},
            "context-length",
            4096,
        ),
        (
            400,
            {"message": "The input (9000 tokens) is longer than the model's context length (8192 tokens)."},
            "context-length",
            8192,
        ),
        (400, {"error": {"message": "prompt is too long: 205000 tokens > 200000 maximum"}}, "context-length", None),
        (413, {"detail": "no"}, "context-length", None),
        (400, {"error": {"message": "filtered", "code": "content_filter"}}, "content-filter", None),
        (404, {"message": "The model `x` does not exist."}, "unknown-model", None),
        (400, {"error": {"message": "Unrecognized request argument supplied: foo"}}, "parameter", None),
        (401, {"error": {"message": "wrong", "code": "invalid_api_key"}}, "key", None),
        (400, {"error": {"message": "Something else is the matter."}}, "", None),
    ],
)  # fmt: skip
def test_the_cause_is_read_from_codes_and_wording(
    status: int, body: object, code: str, window: int | None
) -> None:
    cause = cause_of(status, json.dumps(body).encode())
    assert (cause.why, cause.window) == (code, window)
    assert cause.code == (f"http-{status}:{code}" if code else f"http-{status}")


@pytest.mark.parametrize("window", [-1, 0, 3, 10**30, True, "4096", 1.5, None])
def test_a_window_that_cannot_be_is_not_taken(window: object) -> None:
    body = {"error": {"code": "context_length_exceeded", "n_ctx": window}}
    assert cause_of(400, json.dumps(body).encode()).window in (None, 4096 if window == "4096" else None)


@pytest.mark.parametrize(
    "body", [b"", b"<html>Bad Request</html>", b"\xff\xfe", b"[" * 100_000, b"null", b'"text"']
)
def test_any_body_is_a_refusal(body: bytes) -> None:
    assert cause_of(400, body) == Cause(400)


@given(st.text(max_size=200))
def test_nothing_of_the_text_is_in_the_code(text: str) -> None:
    """The code is of a closed list, whatever the server writes."""
    known = {"", "context-length", "content-filter", "unknown-model", "parameter", "key", "quota"}
    assert cause_of(400, json.dumps({"error": {"message": text, "code": text}}).encode()).why in known
