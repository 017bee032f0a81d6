"""Answers that are replaced take their copies with them; what is bookkeeping stays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.copied_frames import BOOKKEEPING, COPIES, SPOKEN, choice_of, tells
from tests.fakes.gated_streams import text_of
from truthlens.api.members.copies import repeats
from truthlens.api.members.filter import Level, Members
from truthlens.api.responses import parse_response, rewrite_response
from truthlens.api.sse.buffered import parse_stream, rewrite_stream
from truthlens.api.sse.frames import encode
from truthlens.core.records.enums import Endpoint
from truthlens.core.records.exchange import Exchange

OLD = "A domestic wire transfer costs eleven thousand dollars a day."
OTHER = "The bank is closed on Sundays."
NEW = "It costs forty dollars. It opens at nine."
THOUGHT = "The passage speaks of fees, so I look for one."
ENDPOINTS = pytest.mark.parametrize("endpoint", list(Endpoint))


def exchange(endpoint: Endpoint) -> Exchange:
    return Exchange(endpoint, "m", "q", ())


def body_of(top: dict[str, Any], beside: dict[str, Any], within: dict[str, Any], endpoint: Endpoint) -> bytes:
    own: dict[str, Any] = (
        {"text": OLD} if endpoint is Endpoint.COMPLETIONS else {"message": {"content": OLD} | within}
    )
    beside = {key: each for key, each in beside.items() if key not in own}
    other = {"index": 1, **json.loads(json.dumps(own).replace(OLD, OTHER))}
    return json.dumps({"id": "r", "choices": [{"index": 0, **own, **beside}, other], **top}).encode()


@ENDPOINTS
@pytest.mark.parametrize("name", COPIES)
def test_a_replaced_answer_leaves_in_no_other_member_of_its_body(name: str, endpoint: Endpoint) -> None:
    response = parse_response(body_of(*COPIES[name](OLD), endpoint), exchange(endpoint))
    out = rewrite_response(response, {0: NEW}, None)
    assert not tells(out, OLD)
    answers = parse_response(out, exchange(endpoint)).answers
    assert [answer.text for answer in answers] == [NEW, OTHER]


@pytest.mark.parametrize("name", COPIES)
def test_an_answer_that_only_got_a_warning_keeps_its_members(name: str) -> None:
    top, beside, within = COPIES[name](OLD)
    response = parse_response(body_of(top, beside, within, Endpoint.CHAT), exchange(Endpoint.CHAT))
    body = json.loads(rewrite_response(response, {0: f"{OLD}\n\nBeware."}, None))
    assert body.items() >= top.items()
    assert (
        body["choices"][0].items()
        >= {key: each for key, each in beside.items() if key not in ("logprobs", "message")}.items()
    )
    assert body["choices"][0]["message"].items() >= within.items()


@pytest.mark.parametrize("name", BOOKKEEPING)
def test_bookkeeping_stays_beside_a_replaced_answer(name: str) -> None:
    top, beside, _within = BOOKKEEPING[name]
    response = parse_response(body_of(top, beside, {}, Endpoint.CHAT), exchange(Endpoint.CHAT))
    body = json.loads(rewrite_response(response, {0: NEW}, None))
    assert body.items() >= top.items()
    assert body["choices"][0].items() >= beside.items()
    assert "truthlens" not in body


def test_reasoning_stays_beside_a_replaced_answer_unless_it_repeats_it() -> None:
    for thought, stays in ((THOUGHT, True), (f"{THOUGHT} So: {OLD}", False)):
        raw = body_of({}, {}, {"reasoning_content": thought}, Endpoint.CHAT)
        out = json.loads(rewrite_response(parse_response(raw, exchange(Endpoint.CHAT)), {0: NEW}, None))
        assert ("reasoning_content" in out["choices"][0]["message"]) is stays
        assert out.get("truthlens", {}).get("notes") == (None if stays else ["fields-dropped"])
        frames = [
            choice_of("", {}, {"reasoning_content": f"{word} "}, Endpoint.CHAT) for word in thought.split()
        ]
        frames += [
            choice_of(OLD, {}, {}, Endpoint.CHAT),
            choice_of("", {}, {}, Endpoint.CHAT, finish_reason="stop"),
        ]
        stream = b"".join(encode(json.dumps({"choices": [each]})) for each in frames)
        told = rewrite_stream(parse_stream(stream, exchange(Endpoint.CHAT)), {0: NEW}, None)
        assert (b"passage" in told) is stays
        assert not tells(told, OLD)


@ENDPOINTS
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("name", [name for name in COPIES if name not in SPOKEN])
def test_a_replaced_answer_leaves_in_no_frame_of_its_stream(
    name: str, place: int, endpoint: Endpoint
) -> None:
    top, beside, within = COPIES[name](OLD)
    half = OLD[: len(OLD) // 2]
    pieces = [choice_of(half, {}, {}, endpoint), choice_of(OLD[len(half) :], {}, {}, endpoint)]
    pieces.append(choice_of("", {}, {}, endpoint, finish_reason="stop"))
    pieces[place] = choice_of(
        "" if place == 2 else OLD[: len(half)] if place == 0 else OLD[len(half) :],
        beside,
        within,
        endpoint,
        **({"finish_reason": "stop"} if place == 2 else {}),
    )
    tops = [top if number == place else {} for number in range(3)]
    stream = b"".join(
        encode(json.dumps({"choices": [piece], **more})) for piece, more in zip(pieces, tops, strict=True)
    )
    response = parse_stream(stream + b"data: [DONE]\n\n", exchange(endpoint))
    out = rewrite_stream(response, {0: NEW}, None)
    assert not tells(out, OLD)
    assert text_of(out, endpoint=endpoint) == NEW


def test_numbers_keep_their_characters_where_members_are_taken_out() -> None:
    raw = '{"n":1e400,"choices":[{"x":1.50,"token_ids":[1,2,3,4,5],"delta":{"content":"a"}}]}'
    members = Members(Endpoint.CHAT, streamed=True)
    assert members.cleaned(raw, lambda _place: Level.SCORED, top=Level.SCORED) == raw.replace(
        ',"token_ids":[1,2,3,4,5]', ""
    )
    assert members.notes == {"fields-dropped"}


@pytest.mark.parametrize(
    ("text", "other", "copied"),
    [
        ("one two three four five six seven", "zero ONE two, three four five\nsix.", True),
        ("one two three four five six seven", "one two three four five", False),
        ("one two", "and one two more", True),
        ("one two", "two one", False),
        ("国内电汇费用为七十五美元", "他说国内电汇费用为七十", True),
        ("国内电汇费用为七十五美元", "国际汇款免费", False),
        ("", "anything", False),
        ("!?", "!?", False),
    ],
)
def test_a_copy_is_six_words_in_a_row(text: str, other: str, copied: bool) -> None:
    assert repeats(text, other) is copied


@pytest.mark.parametrize("beside", [{}, {"token_ids": [1, 2, 3, 4, 5]}])
def test_addresses_do_not_spell_a_text_whatever_else_is_taken_out_of_their_chunks(
    beside: dict[str, Any],
) -> None:
    members = Members(Endpoint.CHAT, streamed=True)
    members.forbid(OLD)
    said = ""
    for words in ("domestic-wire", "transfer-costs", "eleven-thousand"):
        chunk = json.dumps({"url": f"https://a.example/{words}", "choices": [], **beside})
        said += members.cleaned(chunk, lambda _place: Level.REPLACED, top=Level.REPLACED)
    assert "transfer-costs" in said
    assert "eleven-thousand" not in said
