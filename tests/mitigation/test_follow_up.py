"""Bodies of the extra calls."""

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.standard_tools import PASSAGE, task
from truthlens.core.records.enums import Endpoint
from truthlens.mitigation.follow_up import follow_up, same_request
from truthlens.prompts.model_requests import stand_alone, stand_alone_text

_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
_REQUEST: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "How fast?"}, _IMAGE]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "600 rpm"},
    ],
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "tool_choice": "required",
    "parallel_tool_calls": True,
    "response_format": {"type": "json_schema", "json_schema": {"name": "a"}},
    "guided_json": {"type": "object"},
    "temperature": 0.3,
    "top_p": 0.9,
    "seed": 7,
    "stop": ["\n\n"],
    "max_tokens": 200,
    "documents": ["600 rpm"],
    "x_vendor": {"kept": [1]},
    "stream": True,
    "stream_options": {"include_usage": True},
    "n": 3,
    "logprobs": True,
    "top_logprobs": 5,
    "prediction": {"type": "content", "content": "x"},
    "store": True,
    "request_id": "abc",
}
_KEPT = (
    "response_format",
    "guided_json",
    "temperature",
    "top_p",
    "seed",
    "stop",
    "max_tokens",
    "x_vendor",
)
_BRIEF = {"role": "system", "content": "Be brief."}


def test_a_follow_up_holds_the_prompt_and_the_clients_instructions() -> None:
    """Question, evidence and answer stand in the prompt: of the conversation only what tells how to answer goes along."""
    body = follow_up(task(request=_REQUEST), prompt="Mend it.")
    assert body["messages"] == [_BRIEF, {"role": "user", "content": "Mend it."}]


def test_instructions_that_hold_the_evidence_are_not_sent_beside_it() -> None:
    """A system message with a passage in it, or a long one, would say twice what the prompt says."""
    for content, kept in (
        (f"Use this.\n\n{PASSAGE}", False),
        ("x" * 4001, False),
        ("Be kind.", True),
        (None, False),
    ):
        message = {"role": "developer", "content": content}
        body = follow_up(task(request={"messages": [message]}), prompt="p")
        assert body["messages"] == [*([message] if kept else []), {"role": "user", "content": "p"}]


def test_a_follow_up_keeps_how_the_client_wants_to_be_answered() -> None:
    """Sampling, format, limits and unknown fields stay; the conversation's, transport's and log-probabilities do not."""
    body = follow_up(task(request=_REQUEST), prompt="p")
    assert {name: body[name] for name in _KEPT} == {name: _REQUEST[name] for name in _KEPT}
    assert set(body) == {*_KEPT, "messages"}
    extra = {"chat_template_kwargs": {"documents": ["600 rpm"], "enable_thinking": False}, "messages": []}
    assert follow_up(task(request=extra), prompt="p")["chat_template_kwargs"] == {"enable_thinking": False}


def test_tools_are_never_called_in_an_extra_call() -> None:
    """Both ways to offer tools are told that none may be called; without tools nothing is said of them."""
    legacy = {"messages": [], "functions": [{"name": "f"}], "function_call": {"name": "f"}}
    assert same_request(legacy, Endpoint.CHAT)["function_call"] == "none"
    for offered in ([], None):
        body = same_request({"messages": [], "tools": offered, "tool_choice": "auto"}, Endpoint.CHAT)
        assert "tool_choice" not in body


def test_a_completions_request_becomes_one_text() -> None:
    """The correction prompt takes the prompt's place; what fills a gap is dropped."""
    request = {
        "prompt": ["Q: fast?\nA:"],
        "suffix": "end",
        "echo": True,
        "best_of": 2,
        "max_tokens": 9,
        "logprobs": 2,
    }
    body = follow_up(task(request=request, endpoint=Endpoint.COMPLETIONS), prompt="Mend it.")
    assert body == {"prompt": "Mend it.\n", "max_tokens": 9}


def test_the_same_request_is_what_the_client_asked() -> None:
    """Another model gets the client's messages, evidence, sampling, format and functions, and nothing else."""
    body = same_request(_REQUEST, Endpoint.CHAT)
    assert body["messages"] == _REQUEST["messages"]
    kept = ("tools", "response_format", "temperature", "top_p", "seed", "stop", "max_tokens", "documents")
    assert body == {
        "messages": _REQUEST["messages"],
        "tool_choice": "none",
        **{name: _REQUEST[name] for name in kept},
    }


_SECRET = "sk-secret"
_OF_THE_CLIENT: dict[str, Any] = {
    "api_key": _SECRET,
    "extra_headers": {"authorization": _SECRET},
    "data_sources": [{"parameters": {"key": _SECRET}}],
    "user": _SECRET,
    "metadata": {"customer": _SECRET},
    "safety_identifier": _SECRET,
    "prompt_cache_key": _SECRET,
    "logit_bias": {"50256": -100},
    "stop_token_ids": [2],
    "allowed_token_ids": [7],
    "bad_words": [_SECRET],
    "guided_json": {"type": "object"},
    "suffix": _SECRET,
    "web_search_options": {"user_location": _SECRET},
    "tools": [
        {"type": "mcp", "server_url": "https://host", "authorization": _SECRET},
        {"type": "function", "function": {"name": "f"}, "authorization": _SECRET},
        _SECRET,
    ],
    "messages": [
        {"role": "user", "content": "Fast?", "name": "u", "customer": _SECRET},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": _SECRET,
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f"}, "extra_content": _SECRET}
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "600 rpm", "headers": _SECRET},
        _SECRET,
    ],
}


def test_nothing_of_the_clients_own_goes_to_another_model() -> None:
    """Keys, names, data sources, server-side tools and what is bound to one tokenizer or server stay behind."""
    said = [
        {"role": "user", "content": "Fast?", "name": "u"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "600 rpm"},
    ]
    tools = [{"type": "function", "function": {"name": "f"}}]
    body = same_request(_OF_THE_CLIENT, Endpoint.CHAT)
    assert body == {"messages": said, "tools": tools, "tool_choice": "none"}
    asked = follow_up(task(request=_OF_THE_CLIENT), prompt="Mend it.", own=False)
    assert asked == {"messages": [{"role": "user", "content": "Mend it."}]}
    text = {**_OF_THE_CLIENT, "prompt": "Q:"}
    assert same_request(text, Endpoint.COMPLETIONS) == {"prompt": "Q:"}
    completed = follow_up(task(request=text, endpoint=Endpoint.COMPLETIONS), prompt="p", own=False)
    assert completed == {"prompt": "p\n"}


def test_tools_that_only_a_server_runs_are_not_offered_to_another_model() -> None:
    """Where no function is left, nothing is said of tools."""
    request = {"messages": [], "tools": [{"type": "mcp", "authorization": _SECRET}], "tool_choice": "auto"}
    assert same_request(request, Endpoint.CHAT) == {"messages": []}


def test_the_model_that_answered_gets_again_what_it_took_once() -> None:
    """Its own backend took the fields; only a label for a stored completion is not repeated."""
    body = follow_up(task(request=_OF_THE_CLIENT), prompt="p")
    left_out = {"metadata", "suffix", "tools", "tool_choice", "data_sources", "web_search_options"}
    again = {**_OF_THE_CLIENT, "messages": [{"role": "user", "content": "p"}]}
    assert body == {name: value for name, value in again.items() if name not in left_out}


def test_requests_of_our_own_are_deterministic() -> None:
    """A stand-alone request asks at temperature 0, for a JSON object where that is wanted."""
    assert stand_alone(system="s", user="u", structured=True, max_tokens=9) == {
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
        "temperature": 0,
        "response_format": {"type": "json_object"},
        "max_tokens": 9,
    }
    assert set(stand_alone(system="s", user="u")) == {"messages", "temperature"}
    assert stand_alone_text(system="s", user="u", max_tokens=9) == {
        "prompt": "s\n\nu\n",
        "temperature": 0,
        "max_tokens": 9,
    }


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*_REQUEST, "prompt", "functions", "continue_final_message"]), _JSON))
def test_the_clients_request_is_never_changed(request: dict[str, Any]) -> None:
    """Whatever a request holds, it is the same afterwards, and the new body can be sent."""
    before = copy.deepcopy(request)
    for endpoint in Endpoint:
        body = follow_up(task(request=request, endpoint=endpoint), prompt="p")
        json.dumps(body)
        json.dumps(same_request(request, endpoint))
        json.dumps(follow_up(task(request=request, endpoint=endpoint), prompt="p", own=False))
    assert request == before


def test_the_history_given_is_not_the_history_sent() -> None:
    """Adding turns leaves the client's own list of messages alone."""
    before = copy.deepcopy(_REQUEST)
    follow_up(task(request=_REQUEST), prompt="p")
    assert before == _REQUEST
