"""Tests of ``truthlens.llm.http.logprobs``: the shapes of servers, and what makes no sense."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.calls import TokenLogprob, Usage
from truthlens.core.records.enums import Endpoint
from truthlens.llm.http.logprobs import read_logprobs
from truthlens.llm.http.response_parser import read_answer

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


json_values = st.recursive(
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


@given(json_values)
def test_any_json_gives_logarithms_of_probabilities_or_nothing(value: object) -> None:
    """Never an error."""
    for each in read_logprobs({"logprobs": value}):
        assert all(logprob <= 0.0 for logprob in (each.logprob, *(other for _, other in each.top)))
