"""What a backend's answer says."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.llm_backends import chat
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, Completion, TokenLogprob, Usage
from truthlens.core.records.enums import Endpoint
from truthlens.llm.errors import AttemptError
from truthlens.llm.http.response_parser import read_answer, read_logprobs

CHAT = {
    "content": [
        {
            "token": "YES",
            "logprob": -0.1,
            "bytes": [89],
            "top_logprobs": [
                {"token": "YES", "logprob": -0.1, "bytes": [89]},
                {"token": "NO", "logprob": -2.5, "bytes": None},
            ],
        }
    ],
    "refusal": None,
}
PLAIN = {
    "tokens": [" YES"],
    "token_logprobs": [-0.1],
    "top_logprobs": [{" YES": -0.1, " NO": -2.5}],
    "text_offset": [7],
}


like_logprobs = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["content", "tokens", "token_logprobs", "top_logprobs", "token", "logprob"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def read(body: object, endpoint: Endpoint = Endpoint.CHAT) -> Completion:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_answer(raw, model="m", endpoint=endpoint, prompt_estimate=5, most=Usage(1000, 1000))


def failure(body: object, endpoint: Endpoint = Endpoint.CHAT) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        read(body, endpoint)
    return caught.value


def test_a_chat_answer_is_read_with_its_finish_reason_and_usage() -> None:
    assert read(chat("Yes.", finish_reason="length")) == Completion("Yes.", "m", "length", Usage(11, 7))


def test_a_completion_is_read_with_its_logprobs() -> None:
    choice = {
        "text": "a b",
        "finish_reason": "stop",
        "logprobs": {"tokens": ["a", " b"], "token_logprobs": [-0.5, -1]},
    }
    answer = read({"choices": [choice]}, Endpoint.COMPLETIONS)
    assert answer.logprobs == (TokenLogprob("a", -0.5), TokenLogprob(" b", -1.0))


def test_text_parts_are_joined_and_other_parts_left_out() -> None:
    parts = [
        {"type": "text", "text": "a"},
        {"type": "reasoning", "text": "hm"},
        {"type": "text", "text": "b"},
        "c",
    ]
    assert read(chat(parts)).text == "abc"


def test_missing_usage_is_estimated_from_characters_one_token_for_each_of_cjk() -> None:
    body = chat("剂量 is 12345678")
    del body["usage"]
    assert read(body).usage == Usage(5, 2 + 3, estimated=True)


@pytest.mark.parametrize(
    "usage", [None, [], {"prompt_tokens": -1, "completion_tokens": True}, {"prompt_tokens": "9"}]
)
def test_usage_that_makes_no_sense_is_estimated(usage: object) -> None:
    assert read({**chat("abcd"), "usage": usage}).usage == Usage(5, 1, estimated=True)


def test_a_prompt_count_is_taken_where_only_that_is_said() -> None:
    assert read({**chat("abcd"), "usage": {"prompt_tokens": 40}}).usage == Usage(40, 1, estimated=True)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (chat(None, tool_calls=[{"id": "1"}]), CallFailure.TOOL_CALL),
        (chat("text beside it", tool_calls=[{"id": "1"}]), CallFailure.TOOL_CALL),
        (chat(None, function_call={"name": "f"}), CallFailure.TOOL_CALL),
        (chat(None, refusal="I cannot."), CallFailure.REFUSAL),
        (chat([{"type": "refusal", "refusal": "no"}]), CallFailure.REFUSAL),
        (chat(""), CallFailure.EMPTY),
        (chat(" \n\t"), CallFailure.EMPTY),
        (chat(None), CallFailure.EMPTY),
        (chat(None, reasoning_content="thinking aloud"), CallFailure.EMPTY),
        (chat("<think>only that</think>\n"), CallFailure.EMPTY),
        (chat("<think>never ended"), CallFailure.EMPTY),
        (chat("<think>cut off", finish_reason="length"), CallFailure.TRUNCATED),
    ],
)
def test_an_answer_without_text_says_why_and_what_it_used(
    body: dict[str, Any], expected: CallFailure
) -> None:
    error = failure(body)
    assert error.failure is expected
    assert error.usage == Usage(11, 7)
    assert not error.again


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"<html>secret</html>",
        b"\xff\xfe",
        b"[" * 100_000,
        json.dumps({**chat("x"), "more": [[]] * 300_000}).encode(),
        b'{"choices":[{"message":{"content":1' + b"0" * 5000 + b"}}]}",
        [],
        "text",
        {},
        {"error": {"message": "secret"}},
        {"choices": []},
        {"choices": ["x"]},
        {"choices": [{"delta": {"content": "chunk"}}]},
        {"choices": [{"message": {"content": 3}}]},
        {"choices": [{"message": {"content": [3]}}]},
        {"choices": [{"text": "a completion where a chat was asked"}]},
    ],
)
def test_what_is_no_chat_completion_is_a_bad_response_that_tells_nothing_of_it(body: object) -> None:
    error = failure(body)
    assert error.failure is CallFailure.BAD_RESPONSE
    assert "secret" not in str(error)


def test_a_chat_where_a_completion_was_asked_is_a_bad_response() -> None:
    assert failure(chat("x"), Endpoint.COMPLETIONS).failure is CallFailure.BAD_RESPONSE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a\nb</think>\n\nThe answer.", "The answer."),
        ("\n<think></think><think>x</think>Yes", "Yes"),
        ("reasoning of a template\n</think>\n\nYes", "Yes"),
        ("</think>\nYes", "Yes"),
        ("The tag </think> ends a thought.", "The tag </think> ends a thought."),
        ("Use <think> first.\n</think>\nthen", "Use <think> first.\n</think>\nthen"),
        ("  indented stays", "  indented stays"),
    ],
)
def test_reasoning_before_the_answer_is_dropped_and_nothing_else(text: str, expected: str) -> None:
    assert read(chat(text)).text == expected


def test_logprobs_of_dropped_reasoning_are_dropped_with_it() -> None:
    body = chat("<think>a</think>Yes.")
    tokens = ["<think>", "a", "</think>", "Yes", "."]
    body["choices"][0]["logprobs"] = {"content": [{"token": token, "logprob": -1.0} for token in tokens]}
    assert [entry.token for entry in read(body).logprobs] == ["Yes", "."]


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        [],
        {"content": 3},
        {"content": [{"token": "a"}]},
        {"content": ["a"]},
        {"content": [{"token": 1, "logprob": 0}]},
    ],
)
def test_logprobs_that_make_no_sense_are_left_out(logprobs: object) -> None:
    body = chat("x")
    body["choices"][0]["logprobs"] = logprobs
    assert read(body).logprobs == ()


def test_logprobs_that_are_not_numbers_are_left_out() -> None:
    raw = json.dumps(chat("x"))[:-1] + ', "x": 1}'
    raw = raw.replace('"index": 0', '"index": 0, "logprobs": {"content": [{"token": "x", "logprob": NaN}]}')
    assert read(raw.encode()).logprobs == ()


def test_lone_surrogates_become_replacement_characters() -> None:
    assert read(chat("a\ud800b")).text == "a\ufffdb"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "text", "logprobs", "tokens", "usage", "tool_calls", "type"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values, st.sampled_from(Endpoint))
def test_any_json_gives_text_that_is_not_blank_or_a_call_error(value: object, endpoint: Endpoint) -> None:
    try:
        assert read(
            {"choices": [{"message": value, "text": value, "logprobs": value}]}, endpoint
        ).text.strip()
        read(value, endpoint)
    except CallError:
        pass


def top_of(logprobs: object) -> tuple[tuple[str, float], ...]:
    """Return what is listed in the first place."""
    return read_logprobs({"logprobs": logprobs})[0].top


@pytest.mark.parametrize("endpoint", Endpoint)
def test_both_shapes_are_read_from_both_apis(endpoint: Endpoint) -> None:
    """Some servers put one into the other's answer."""
    for shape, token in ((CHAT, "YES"), (PLAIN, " YES")):
        choice = {"message": {"content": "YES"}, "text": "YES", "logprobs": shape}
        body = json.dumps({"choices": [choice]}).encode()
        found = read_answer(
            body, model="m", endpoint=endpoint, prompt_estimate=1, most=Usage(100, 100)
        ).logprobs
        no = token.replace("YES", "NO")
        assert found == (TokenLogprob(token, -0.1, ((token, -0.1), (no, -2.5))),)


def test_lists_in_an_answer_whose_content_is_null() -> None:
    """Early servers gave chat the lists of completions, beside the member of its own."""
    found = read_logprobs({"logprobs": PLAIN | {"content": None, "refusal": None}})
    assert [each.token for each in found] == [" YES"]


@pytest.mark.parametrize(
    "listed",
    [
        None,
        3,
        "YES",
        [None],
        ["YES"],
        [["YES", -0.1]],
        [{"token": 3, "logprob": -0.1}],
        [{"token": "NO"}],
        [{"logprob": -0.1}],
        [{"token": "NO", "logprob": None}],
        [{"token": "NO", "logprob": True}],
        [{"token": "NO", "logprob": "-0.1"}],
        [{"token": "NO", "logprob": math.nan}],
        [{"token": "NO", "logprob": math.inf}],
        [{"token": "NO", "logprob": 0.5}],
        [{"token": "NO", "logprob": 10**400}],
        {"NO": 2},
        {"NO": []},
    ],
)
def test_listed_tokens_that_make_no_sense_are_left_out(listed: object) -> None:
    """The token that was said stays, and so do the others that are listed."""
    entry = {"token": "YES", "logprob": -0.1, "top_logprobs": listed}
    assert read_logprobs({"logprobs": {"content": [entry]}}) == [TokenLogprob("YES", -0.1)]


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.5, 10**400, None, "0", True])
def test_a_token_that_makes_no_sense_costs_them_all(value: object) -> None:
    """There is no telling which place the others have."""
    entries = [{"token": "a", "logprob": -1.0}, {"token": "b", "logprob": value}]
    assert read_logprobs({"logprobs": {"content": entries}}) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.001, 0.0), (0, 0.0), (-9999.0, -9999.0), (-math.inf, -math.inf), (-(10**400), -math.inf)],
)
def test_values_at_the_ends(value: float, expected: float) -> None:
    """Rounding above certainty is certainty, and impossible is impossible."""
    assert top_of({"content": [{"token": "a", "logprob": 0, "top_logprobs": {"b": value}}]}) == (
        ("b", expected),
    )


def test_lists_are_bounded() -> None:
    """At fifty."""
    listed = [{"token": str(number), "logprob": -9.0} for number in range(100_000)]
    assert len(top_of({"content": [{"token": "a", "logprob": -1.0, "top_logprobs": listed}]})) == 50


def test_listed_tokens_without_a_place_are_left_out() -> None:
    """Lists of different lengths, and places without a list."""
    assert top_of(PLAIN | {"top_logprobs": [{"a": -1.0}, {"b": -1.0}]}) == ()
    assert top_of(PLAIN | {"top_logprobs": [None]}) == ()
    assert top_of(PLAIN | {"top_logprobs": {"a": -1.0}}) == ()


def test_lone_surrogates_in_tokens_become_replacement_characters() -> None:
    """A token may be half of a character."""
    found = read_logprobs(
        {"logprobs": {"content": [{"token": "\ud800", "logprob": -1.0, "top_logprobs": {"\udfff": -1.0}}]}}
    )
    assert found == [TokenLogprob("\ufffd", -1.0, (("\ufffd", -1.0),))]


@given(like_logprobs)
def test_any_json_gives_logarithms_of_probabilities_or_nothing(value: object) -> None:
    """Never an error."""
    for each in read_logprobs({"logprobs": value}):
        assert all(logprob <= 0.0 for logprob in (each.logprob, *(other for _, other in each.top)))
