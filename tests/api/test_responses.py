"""Answers are read from every shape of the API, and rewritten without touching anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.api.responses import Response, parse_response, rewrite_response
from truthlens.core.errors import DialectError
from truthlens.core.records.enums import AnswerKind, Endpoint
from truthlens.core.records.exchange import Answer, Exchange

CHAT = Exchange(Endpoint.CHAT, "m", "q", ())
COMPLETIONS = Exchange(Endpoint.COMPLETIONS, "m", "q", ())


def chat_body(*messages: object, **fields: object) -> bytes:
    choices = [
        {"index": n, "message": message, "finish_reason": "stop"} for n, message in enumerate(messages)
    ]
    return json.dumps(
        {"id": "x", "object": "chat.completion", "created": 7, "model": "m", "choices": choices, **fields}
    ).encode()


def read(*messages: object, **fields: object) -> Response:
    return parse_response(chat_body(*messages, **fields), CHAT)


def rewritten(response: Response, texts: dict[int, str], truthlens: dict[str, object] | None = None) -> Any:
    return json.loads(rewrite_response(response, texts, truthlens))


@pytest.mark.parametrize(
    ("message", "kind", "text"),
    [
        ({"role": "assistant", "content": "Red."}, AnswerKind.TEXT, "Red."),
        (
            {"content": [{"type": "text", "text": "It is "}, {"type": "text", "text": "red."}]},
            AnswerKind.TEXT,
            "It is red.",
        ),
        ({"content": "Red.", "refusal": None, "tool_calls": []}, AnswerKind.TEXT, "Red."),
        ({"content": None}, AnswerKind.EMPTY, ""),
        ({"content": ""}, AnswerKind.EMPTY, ""),
        ({"content": " \n"}, AnswerKind.EMPTY, " \n"),
        ({}, AnswerKind.EMPTY, ""),
        (None, AnswerKind.EMPTY, ""),
        ({"content": None, "refusal": "No."}, AnswerKind.REFUSAL, "No."),
        ({"content": [{"type": "refusal", "refusal": "No."}]}, AnswerKind.REFUSAL, "No."),
        ({"content": "Red.", "refusal": "No."}, AnswerKind.OTHER, "Red.\n\nNo."),
        ({"content": None, "audio": {"id": "a", "transcript": "Red."}}, AnswerKind.OTHER, "Red."),
        ({"content": "Red.", "audio": {"id": "a", "transcript": "Red."}}, AnswerKind.TEXT, "Red."),
        (
            {"content": [{"type": "text", "text": {"value": "Red.", "annotations": []}}]},
            AnswerKind.OTHER,
            "Red.",
        ),
        (
            {"content": [{"type": "Text", "text": "Re"}, {"type": None, "text": "d."}]},
            AnswerKind.TEXT,
            "Red.",
        ),
        ({"content": None, "text": "Red."}, AnswerKind.OTHER, "Red."),
        ({"output_text": "Red."}, AnswerKind.OTHER, "Red."),
        ({"content": None, "tool_calls": [{"id": "c"}]}, AnswerKind.TOOL_CALL, ""),
        ({"content": "I look.", "tool_calls": [{"id": "c"}]}, AnswerKind.TOOL_CALL, "I look."),
        ({"content": None, "function_call": {"name": "f"}}, AnswerKind.TOOL_CALL, ""),
        ({"content": None, "reasoning_content": "Hm."}, AnswerKind.REASONING, "Hm."),
        ({"content": "<think>\nHm."}, AnswerKind.REASONING, "<think>\nHm."),
    ],
)
def test_a_choice_is_read_for_what_it_is(message: object, kind: AnswerKind, text: str) -> None:
    """Text, tool call, refusal and nothing are told apart."""
    (answer,) = read(message).answers
    assert (answer.index, answer.kind, answer.text) == (0, kind, text)
    assert (answer.lead, answer.reasoning, answer.unread_tokens) == ("", "", 0)


def test_every_choice_is_an_answer() -> None:
    """N choices give n answers, with model, finish reasons and usage beside them."""
    response = read(
        {"content": "a"}, {"content": None}, {"content": "c"}, usage={"total_tokens": 3, "details": {}}
    )
    assert [answer.kind for answer in response.answers] == [
        AnswerKind.TEXT,
        AnswerKind.EMPTY,
        AnswerKind.TEXT,
    ]
    assert response.model == "m"
    assert response.finish_reasons == ("stop", "stop", "stop")
    assert response.usage == {"total_tokens": 3}


def test_choices_keep_their_own_index() -> None:
    """The backend's index counts, unless two choices share one."""
    body = {"choices": [{"index": 1, "message": {"content": "b"}}, {"index": 0, "message": {"content": "a"}}]}
    assert [answer.index for answer in parse_response(json.dumps(body).encode(), CHAT).answers] == [1, 0]
    body["choices"][0]["index"] = 0
    assert [answer.index for answer in parse_response(json.dumps(body).encode(), CHAT).answers] == [0, 1]


@pytest.mark.parametrize(
    "body",
    [
        '{"choices":[{"message":{"content":"%s","content":"The bank opens at nine."}}]}',
        '{"choices":[{"message":{"content":"%s"},"message":{"content":"The bank opens at nine."}}]}',
        '{"choices":[{"message":{"content":"%s"}}],"choices":[{"message":{"content":"The bank opens at nine."}}]}',
        '{"choices":[{"message":{"cont\\u0065nt":"%s","content":"The bank opens at nine."}}]}',
        '{"choices":[{"message":{"content":[{"type":"text","text":"%s","text":"The bank opens at nine."}]}}]}',
    ],
)
def test_an_answer_that_another_replaces_is_unread(body: str) -> None:
    """There are clients that show the first of two members of one name; the same text twice is one."""
    for first, unread in (("It never opens.", True), ("No", True), ("The bank opens at nine.", False)):
        (answer,) = parse_response((body % first).encode(), CHAT).answers
        assert (answer.text, answer.unread_tokens > 0) == ("The bank opens at nine.", unread)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"\xff", b"{}", b'{"error": {"message": "no"}}', b'{"choices": null}', b'{"choices": 3}', b'{"choices": [3]}',
     b'{"choices": [{"message": 3}]}', b'{"choices": [{"message": {"content": 3}}]}'],
)  # fmt: skip
def test_what_is_no_answer_is_a_dialect_error(body: bytes) -> None:
    """Wrong shapes, error objects and other APIs are refused."""
    with pytest.raises(DialectError):
        parse_response(body, CHAT)


@given(body=st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """Nothing but the dialect error leaves the parser."""
    for exchange in (CHAT, COMPLETIONS):
        try:
            parse_response(body, exchange)
        except DialectError:
            continue


def test_only_the_named_choice_changes() -> None:
    """Key order, unknown fields, odd numbers and the other choices keep every character."""
    body = (
        b'{"zeta": 1.10, "id":"x", "created": 7, "big": 1e400, "choices":[ {"index":0,"message":{"role":"assistant",'
        b'"content":"Old.","extra":[1,2 ]},"logprobs":null}, {"index":1,"message":{"content":"Same \\u00e9"}} ], "usage": {"total_tokens": 12}}'
    )
    response = parse_response(body, CHAT)
    assert rewrite_response(response, {0: 'Nový.\n"x"'}, None) == body.replace(
        b'"Old."', '"Nový.\\n\\"x\\""'.encode()
    )
    assert rewrite_response(response, {}, None) == body


def test_logprobs_of_a_changed_choice_are_dropped_and_noted() -> None:
    """The probabilities of a text that is gone would lie; the other choice keeps its own."""
    body = json.loads(chat_body({"content": "a"}, {"content": "b"}))
    for choice in body["choices"]:
        choice["logprobs"] = {"content": [{"token": "a"}]}
    response = parse_response(json.dumps(body).encode(), CHAT)
    changed = rewritten(response, {1: "new"})
    assert "logprobs" not in changed["choices"][1]
    assert changed["choices"][0]["logprobs"] == {"content": [{"token": "a"}]}
    assert changed["truthlens"] == {"notes": ["logprobs-dropped"]}
    assert rewritten(response, {1: "new"}, {"notes": ["x"], "score": 0.5})["truthlens"] == {
        "notes": ["x", "logprobs-dropped"],
        "score": 0.5,
    }


def test_the_backend_cannot_speak_for_truthlens() -> None:
    """A member of that name is replaced, or removed from a body that is changed."""
    response = read({"content": "a"}, truthlens={"score": 0.0})
    assert rewritten(response, {}, {"score": 0.9})["truthlens"] == {"score": 0.9}
    assert "truthlens" not in rewritten(response, {0: "b"})


@pytest.mark.parametrize(
    ("new", "parts"),
    [
        (
            "Note. One two.",
            [
                {"type": "text", "text": "Note. One "},
                {"type": "image"},
                {"type": "text", "text": "two.", "x": 1},
            ],
        ),
        (
            "One two. Note.",
            [
                {"type": "text", "text": "One "},
                {"type": "image"},
                {"type": "text", "text": "two. Note.", "x": 1},
            ],
        ),
        ("Else.", [{"type": "text", "text": "Else."}, {"type": "image"}]),
    ],
)
def test_an_answer_in_parts_stays_in_parts(new: str, parts: list[object]) -> None:
    """What is put before or after goes into the first or last text part; a new answer replaces them all."""
    content = [{"type": "text", "text": "One "}, {"type": "image"}, {"type": "text", "text": "two.", "x": 1}]
    assert rewritten(read({"content": content}), {0: new})["choices"][0]["message"]["content"] == parts


@pytest.mark.parametrize(
    "message", [{"content": None}, {"content": "x", "tool_calls": [{}]}, {"content": None, "refusal": "No."}]
)
def test_only_text_can_be_changed(message: object) -> None:
    """Tool calls, refusals and empty answers are never given a text."""
    with pytest.raises(ValueError, match=r"choices \[0\] cannot be changed"):
        rewrite_response(read(message), {0: "new"}, None)


def test_a_completion_is_read_and_rewritten() -> None:
    """The completions API keeps its answer in ``text``."""
    body = json.dumps({"choices": [{"text": "Red.", "index": 0, "logprobs": {"tokens": ["Red"]}}]}).encode()
    response = parse_response(body, COMPLETIONS)
    assert response.answers == (Answer(0, AnswerKind.TEXT, "Red."),)
    assert rewritten(response, {0: "Blue."})["choices"] == [{"text": "Blue.", "index": 0}]


def test_an_echoed_prompt_is_no_part_of_the_answer() -> None:
    """The answer starts after the prompt, and the prompt stays in front of a new answer."""
    exchange = Exchange(Endpoint.COMPLETIONS, "m", "q", (), echoed="The sky is")
    body = json.dumps(
        {"choices": [{"text": "The sky is blue."}, {"text": "green."}, {"text": "The sky is"}]}
    ).encode()
    response = parse_response(body, exchange)
    assert [answer.text for answer in response.answers] == [" blue.", "green.", ""]
    assert response.answers[2].kind is AnswerKind.EMPTY
    assert [choice["text"] for choice in rewritten(response, {0: "! blue.", 1: "red."})["choices"]] == [
        "The sky is! blue.",
        "red.",
        "The sky is",
    ]


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices": null, "choices": [{"message": null, "message": {"content": "a", "content": "b"}}]}',
        b'{"choices": [{"x": 1}, {}, 3], "choices": [{"message": {"content": "b"}}]}',
    ],
)
def test_repeated_keys_do_not_break_a_rewrite(body: bytes) -> None:
    """A body with the same key twice is rewritten where the last one says."""
    assert rewritten(parse_response(body, CHAT), {0: "c"})["choices"] == [{"message": {"content": "c"}}]


TEXT = st.text(min_size=1).filter(lambda text: text.strip() != "")


@given(texts=st.lists(TEXT, min_size=1, max_size=3), new=st.text(), ascii_only=st.booleans())
def test_any_text_survives_reading_and_rewriting(texts: list[str], new: str, ascii_only: bool) -> None:
    """Every Unicode text that a body can hold is read as it is and written as it is."""
    body = json.dumps(
        {"choices": [{"message": {"content": text}} for text in texts]}, ensure_ascii=ascii_only
    )
    response = parse_response(body.encode(), CHAT)
    assert [answer.text for answer in response.answers] == texts
    changed = json.loads(rewrite_response(response, {0: new}, None))
    assert [choice["message"]["content"] for choice in changed["choices"]] == [new, *texts[1:]]
