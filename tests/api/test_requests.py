"""Requests of both APIs become exchanges, and the model can be set without touching the rest."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.api.requests import exchange_of, parse_request, read_request, set_model
from truthlens.core.errors import DialectError
from truthlens.core.records.enums import Endpoint
from truthlens.core.records.exchange import Exchange, Message
from truthlens.core.records.settings import EvidenceRules

USER = [{"role": "user", "content": "<context>Tea is free.</context>\nIs tea free?"}]


def chat(**fields: object) -> Exchange:
    body = {"model": "m", "messages": [{"role": "user", "content": "Why?"}], **fields}
    return parse_request(json.dumps(body).encode(), Endpoint.CHAT, EvidenceRules())


def completion(**fields: object) -> Exchange:
    return parse_request(json.dumps({"model": "m", **fields}).encode(), Endpoint.COMPLETIONS, EvidenceRules())


@pytest.mark.parametrize(
    ("fields", "endpoint"),
    [
        ({"messages": [{"role": "user", "content": "Why?"}]}, Endpoint.CHAT),
        ({"messages": [{"role": "user", "content": "Why?"}], "prompt": "Why?"}, Endpoint.CHAT),
        ({"prompt": "Why?"}, Endpoint.COMPLETIONS),
        ({"messages": None, "prompt": "Why?"}, Endpoint.COMPLETIONS),
    ],
)
def test_where_the_path_does_not_say_it_the_body_names_the_endpoint(
    fields: dict[str, object], endpoint: Endpoint
) -> None:
    """A server with one path for both goes by what is there."""
    request = read_request(json.dumps(fields).encode(), None)
    assert (request.endpoint, request.messages[-1].text) == (endpoint, "Why?")


@pytest.mark.parametrize("body", [b'{"input": "x"}', b'{"inputs": "x"}', b'{"messages": 3, "prompt": "x"}'])
def test_a_body_of_neither_api_is_no_exchange(body: bytes) -> None:
    """Whatever else is posted there is a dialect that cannot be checked."""
    with pytest.raises(DialectError):
        read_request(body, None)


def test_a_chat_request_is_read_whole() -> None:
    """Model, messages, query, stream and passages arrive."""
    exchange = chat(
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "<context>It is red.</context>"},
                                         {"type": "image_url", "image_url": {"url": "x"}},
                                         {"type": "text", "text": "Which colour?"}]},
        ],
        stream=True,
    )  # fmt: skip
    assert exchange.endpoint is Endpoint.CHAT
    assert exchange.model == "m"
    assert exchange.query == "Which colour?"
    assert [passage.text for passage in exchange.passages] == ["It is red."]
    assert exchange.messages[0] == Message("system", "Be brief.")
    assert exchange.stream
    assert not exchange.structured


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {}}},
        {"guided_json": {"type": "object"}},
        {"guided_regex": "a+"},
        {"guided_choice": ["a", "b"]},
        {"guided_grammar": "root ::= x"},
        {"structured_outputs": {"json": {}}},
    ],
)
def test_formats_for_programs_are_structured(fields: dict[str, object]) -> None:
    """Every way to ask for a format is recognised."""
    assert chat(**fields).structured


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"response_format": {"type": "text"}},
        {"response_format": None},
        {"guided_json": None},
        {"tool_choice": "required"},
    ],
)
def test_plain_answers_are_not_structured(fields: dict[str, object]) -> None:
    """Text, absent formats and tool choices leave an answer for people."""
    assert not chat(**fields).structured


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"messages": None}, "messages is null"),
        ({"messages": []}, "at least one"),
        ({"messages": "x"}, "messages is a string"),
        ({"messages": [3]}, r"messages\[0\] is a number"),
    ],
)
def test_a_wrong_shape_says_where(fields: dict[str, object], problem: str) -> None:
    """The error names the field and what was found there."""
    with pytest.raises(DialectError, match=problem):
        chat(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"model": 3},
        {"documents": 1},
        {"documents": [3]},
        {"chat_template_kwargs": {"documents": 1}},
        {"messages": [{"role": "user", "content": {"a": 1}}, *USER]},
        {"messages": [{"content": "x"}, *USER]},
        {"messages": [{"role": 7, "content": "x"}, *USER]},
    ],
)
def test_an_odd_member_is_left_out_and_noted(fields: dict[str, object]) -> None:
    """What backends may well not look at does not keep the rest from being read."""
    exchange = chat(**{"messages": USER, **fields})
    assert exchange.query == "Is tea free?"
    assert [passage.text for passage in exchange.passages] == ["Tea is free."]
    assert exchange.notes == ("request-member-ignored",)


def test_a_single_document_need_not_be_in_a_list() -> None:
    """An object in the place of a list is the one document."""
    exchange = chat(documents={"title": "Prices", "text": "Tea is free."})
    assert [(passage.title, passage.text) for passage in exchange.passages] == [("Prices", "Tea is free.")]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
def test_json_is_read_in_every_encoding_that_python_reads(encoding: str) -> None:
    """The encoding is found out as ``json.loads`` does, and a new model name is written in the same one."""
    body = json.dumps({"model": "auto", "messages": USER, "x": "é字"}, ensure_ascii=False).encode(encoding)
    assert read_request(body, Endpoint.CHAT).user_text == USER[0]["content"]
    changed = set_model(body, "ünser")
    assert json.loads(changed) == {"model": "ünser", "messages": USER, "x": "é字"}
    assert json.detect_encoding(changed) == json.detect_encoding(body)


def test_texts_outside_of_user_messages_are_told_apart() -> None:
    """The user's text is that of every role which is no other's; all other texts but settings are the context."""
    request = read_request(
        json.dumps(
            {
                "model": "m",
                "messages": [
                    {"role": "system", "content": "in system"},
                    {"role": "human", "content": "from a human"},
                    {"role": "User", "content": "from a User"},
                    {"role": "user", "content": [{"type": "odd", "body": "in an odd part"}]},
                    {"role": "user", "content": {"x": ["in an odd content"]}},
                    {"role": "assistant", "content": None, "reasoning_content": "in reasoning"},
                    {"role": "user", "content": "plain"},
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "in a url"}}]},
                    {"role": "user", "content": [{"type": "odd", "x": "data:image/png;base64,AAAA"}]},
                ],
                "documents": ["in a document"],
                "chat_template": "in a template",
                "tools": [{"description": "in a tool"}],
            }
        ).encode(),
        Endpoint.CHAT,
    )
    lines = request.user_text.split("\n")
    assert {"from a human", "from a User", "plain"} <= set(lines)
    assert set(request.context) - set(lines) == {
        "in system",
        "in an odd part",
        "in an odd content",
        "in reasoning",
        "in a document",
        "in a template",
    }


@pytest.mark.parametrize(
    "body",
    [
        '{"messages": %s, "messages": [{"role": "user", "content": "Hi"}]}',
        '{"messages": %s, "messages": [{"role": "user", "content": "Hi"}], "messages": [{"role": "user", "content": "Hi"}]}',
        '{"messages": %s, "m\\u0065ssages": [{"role": "user", "content": "Hi"}]}',
        '{"messages": [{"role": "user", "content": "where?", "content": "Hi"}]}',
        '{"messages": [{"role": "user", "content": [{"type": "text", "text": "where?", "text": "Hi"}]}]}',
    ],
)
def test_what_repeated_members_replace_is_context(body: str) -> None:
    """The last of one name is read; a backend that takes another one reads what a rule sees, too."""
    asked = json.dumps([{"role": "user", "content": "where?"}])
    request = read_request((body % asked if "%s" in body else body).encode(), Endpoint.CHAT)
    assert request.user_text == "Hi"
    assert "where?" in request.context


def test_repeated_members_that_say_nothing_are_no_context() -> None:
    """Settings and labels hold no question, repeated or not."""
    body = b'{"model": "a", "model": "b", "messages": [{"role": "tool", "role": "user", "content": "Hi"}]}'
    assert read_request(body, Endpoint.CHAT).context == ()


def test_a_request_without_a_model_is_read() -> None:
    """VLLM fills in its own model."""
    assert (
        parse_request(
            b'{"messages": [{"role": "user", "content": "x"}]}', Endpoint.CHAT, EvidenceRules()
        ).model
        == ""
    )


@pytest.mark.parametrize(
    "prompt",
    ["Context: It is red.\nQuestion: Which colour?", ["Context: It is red.\nQuestion: Which colour?"]],
)
def test_a_prompt_is_read_like_a_user_message(prompt: object) -> None:
    """A string and a list of one string mean the same."""
    exchange = completion(prompt=prompt)
    assert exchange.query == "Which colour?"
    assert [passage.text for passage in exchange.passages] == ["It is red."]


@pytest.mark.parametrize("prompt", [None, 3, ["a", "b"], [1, 2], [[1, 2]], []])
def test_several_prompts_or_token_ids_are_no_dialect(prompt: object) -> None:
    """Where an answer cannot be attributed to one text, nothing is pretended."""
    with pytest.raises(DialectError, match="expected one string"):
        completion(prompt=prompt)


def test_echo_is_remembered() -> None:
    """The text that the backend repeats is known, for both APIs."""
    assert completion(prompt="Say it", echo=True).echoed == "Say it"
    assert completion(prompt="Say it", echo=False).echoed == ""
    assert chat(echo=True).echoed == ""
    assert chat(messages=[{"role": "assistant", "content": "It is"}], echo=True).echoed == "It is"


def test_documents_of_the_request_and_of_its_template_are_taken() -> None:
    """Both places of vLLM's API are read."""
    exchange = chat(documents=["one"], chat_template_kwargs={"documents": [{"title": "T", "text": "two"}]})
    assert [(passage.title, passage.text) for passage in exchange.passages] == [("", "one"), ("T", "two")]


def test_a_limit_on_the_evidence_is_noted() -> None:
    """A pattern that runs out of time leaves a note on the exchange."""
    rules = EvidenceRules(user_patterns=(r"((?:a|aa)+)$",))
    body = json.dumps({"messages": [{"role": "user", "content": "a" * 5000 + "!"}]}).encode()
    assert parse_request(body, Endpoint.CHAT, rules).notes == ("evidence-pattern-timeout",)


def test_the_model_is_replaced_and_nothing_else() -> None:
    """Numbers that Python cannot hold, escapes, spacing and repeated keys stay."""
    body = b'{ "x": 1e400, "model" :"auto","y": 1.10, "z": 123456789012345678901234567890, "u": "\\u00e9", "x": -0 }'
    assert set_model(body, "gpt-\u4e94") == body.replace(b'"auto"', '"gpt-\u4e94"'.encode())


def test_a_missing_model_is_added() -> None:
    """A body without the field gets it."""
    assert json.loads(set_model(b'{"messages": []}', "m")) == {"messages": [], "model": "m"}
    assert json.loads(set_model(b"{}", "m")) == {"model": "m"}


def test_only_the_top_level_model_is_set() -> None:
    """A field of that name further down is the client's business."""
    assert json.loads(set_model(b'{"a": {"model": 1}, "model": null}', "m")) == {
        "a": {"model": 1},
        "model": "m",
    }


@given(body=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """Nothing but the dialect error leaves the parser."""
    for endpoint in Endpoint:
        try:
            parse_request(body, endpoint, EvidenceRules())
        except DialectError:
            continue


def test_lone_surrogates_do_not_reach_the_stages() -> None:
    """An escape that is no character becomes the replacement character."""
    exchange = parse_request(
        b'{"messages": [{"role": "user", "content": "<context>a\\ud800b</context> q\\udc00?"}]}',
        Endpoint.CHAT,
        EvidenceRules(),
    )
    assert exchange.passages[0].text == "a\ufffdb"
    assert exchange.query == "q\ufffd?"


def test_a_word_in_two_parts_of_a_message_is_read_as_one() -> None:
    """Templates may join parts without a sign between, so the choice of a plan sees both readings."""
    for parts in (
        [{"type": "text", "text": "What do"}, {"type": "text", "text": "se is safe?"}],
        ["What do", "se is safe?"],
    ):
        request = read_request(
            json.dumps({"messages": [{"role": "user", "content": parts}]}).encode(), Endpoint.CHAT
        )
        assert "What dose is safe?" in request.context
        assert exchange_of(request, EvidenceRules()).query == "What do\n\nse is safe?"


def test_content_parts_nested_deep_hold_no_document() -> None:
    """Deeper than any API nests them they cost neither time nor stack, and the rest of the request is read."""
    part: dict[str, object] = {"text": "The ferry leaves at eight."}
    for _ in range(400):
        part = {"content": part}
    messages = [
        {"role": "user", "content": [{"type": "document", **part}]},
        {"role": "user", "content": "When?"},
    ]
    exchange = parse_request(json.dumps({"messages": messages}).encode(), Endpoint.CHAT, EvidenceRules())
    assert (exchange.passages, exchange.query) == ((), "When?")
