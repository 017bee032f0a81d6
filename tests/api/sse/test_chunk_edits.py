"""Chunks with another text, and chunks of ours: what is not changed keeps its bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types import Completion
from openai.types.chat import ChatCompletionChunk

from tests.fakes.chunk_streams import (
    CHAT,
    COMPLETIONS,
    TEXTS,
    chat_frame,
    chunk_streams,
    content,
    frame_of,
    read,
    text_in,
)
from truthlens.api.sse.chunk_edits import (
    content_chunk,
    done_frame,
    edit_content,
    edit_texts,
    final_chunk,
    strip,
)
from truthlens.api.sse.chunks import ChunkKind, Delta, Transcript, parse_chunk
from truthlens.api.sse.frames import Frame, encode
from truthlens.core.errors import DialectError
from truthlens.core.records.enums import Endpoint

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "text", "refusal", "thinking"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "index",
                    "delta",
                    "content",
                    "text",
                    "type",
                    "role",
                    "finish_reason",
                    "logprobs",
                    "tool_calls",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=600)
@given(choices=JSON, usage=JSON, error=JSON, index=st.integers(-1, 2), new=st.none() | st.text(max_size=3))
def test_any_json_can_be_read_and_edited(
    choices: object, usage: object, error: object, index: int, new: str | None
) -> None:
    """Shapes that the API does not have raise nothing but the refusal to edit; an edit does what it says."""
    frame = frame_of(encode(json.dumps({"choices": choices, "usage": usage, "error": error})))
    for endpoint in Endpoint:
        before = parse_chunk(frame, endpoint)
        try:
            raw = edit_content(frame, index, new, endpoint=endpoint)
        except ValueError:
            assert new is not None
            continue
        after = parse_chunk(frame_of(raw), endpoint)
        if after.kind is ChunkKind.OPAQUE and before.kind is not ChunkKind.OPAQUE:
            # Without its own text, what the choice has in the place of another API decides.
            assert "another API" in after.problem
            continue
        assert text_in(after, index) == (new or "")
        assert [delta for delta in after.deltas if delta.index != index] == [
            delta for delta in before.deltas if delta.index != index
        ]


@settings(max_examples=300)
@given(stream=chunk_streams(), new=st.none() | TEXTS, data=st.data())
def test_an_edit_changes_one_text_and_no_other_byte(
    stream: tuple[list[str], list[bytes], Endpoint], new: str | None, data: st.DataObject
) -> None:
    """The choice has the new text and no log probabilities; all else means and reads the same."""
    _texts, frames, endpoint = stream
    frame = frame_of(data.draw(st.sampled_from(frames)))
    chunk = parse_chunk(frame, endpoint)
    index = data.draw(st.sampled_from([delta.index for delta in chunk.deltas] or [0]))
    old = text_in(chunk, index)
    try:
        raw = edit_content(frame, index, new, endpoint=endpoint)
    except ValueError:
        assert not old
        assert new is not None
        return
    if old == new or (new is None and raw == frame.raw):
        assert raw == frame.raw
        assert old == (new or "")
        return
    back = frame_of(raw)
    assert back.newline == frame.newline
    assert text_in(parse_chunk(back, endpoint), index) == (new or "")
    assert frame.data is not None
    assert back.data is not None
    was, now = json.loads(frame.data), json.loads(back.data)
    for body in (was, now):
        choice = next(choice for choice in body["choices"] if choice["index"] == index)
        holder = choice if endpoint is COMPLETIONS else choice["delta"]
        holder.pop("content", None)
        choice.pop("text", None)
        if choice.get("logprobs") is not None or body is now:
            choice.pop("logprobs", None)
    if endpoint is COMPLETIONS:
        was["choices"] = [{k: v for k, v in choice.items() if k != "logprobs"} for choice in was["choices"]]
        now["choices"] = [{k: v for k, v in choice.items() if k != "logprobs"} for choice in now["choices"]]
    assert now == was
    assert '"kept": 1.1' in back.data


RAW = (
    b": note\r\nid: 4\r\n"
    b'data:{ "id" : "\\u0063", "x":1.10,"choices":[ {"index":1 , "delta":{"content" :"old","r":1e400}, '
    b'"logprobs":{"content":[]},"finish_reason":null},{"index":0,"delta":{"content":"other"},"logprobs":{}} ],'
    b'"service_tier": null}\r\n\r\n'
)


def test_an_edited_frame_keeps_its_spacing_and_what_python_cannot_hold() -> None:
    """Comments, ids, line ends, escapes, odd numbers and the other choice stay byte for byte."""
    frame = frame_of(RAW)
    gone = b'"logprobs":{"content":[]},'
    expected = (
        RAW.replace(b'"old"', '"néw"'.encode()).replace(b" \r\n" + gone, b" ").replace(b" " + gone, b"")
    )
    edited = edit_content(frame, 1, "néw", endpoint=CHAT)
    assert edited.replace(b" ", b"") == expected.replace(b" ", b"")
    assert edited.startswith(RAW[: RAW.index(b'"old"')])
    assert edited.endswith(RAW[RAW.index(b'"finish_reason"') :])
    assert edit_content(frame, 1, None, endpoint=CHAT) == edited.replace('"content" :"néw",'.encode(), b"")
    assert edit_content(frame, 1, "old", endpoint=CHAT) == RAW
    assert edit_content(frame, 1, "", endpoint=CHAT) == edited.replace("néw".encode(), b"")


def test_chunks_in_several_data_lines_are_edited() -> None:
    """Lines stay lines; those inside a value that was replaced go."""
    raw = b'data: {"choices": [\ndata:{"delta": {"content": "old"},\n: note\ndata: "logprobs": null}]}\n\n'
    assert edit_content(frame_of(raw), 0, "new", endpoint=CHAT) == raw.replace(b"old", b"new")
    raw = b'data: {"choices": [{"delta": {"content": [\ndata: {"text": "old"},\ndata: {"text": "x"}]}}]}\n\n'
    edited = frame_of(edit_content(frame_of(raw), 0, "new", endpoint=CHAT))
    assert text_in(parse_chunk(edited, CHAT), 0) == "new"


def test_content_in_parts_takes_the_new_text_in_its_first() -> None:
    """Parts that are no text stay."""
    parts = [
        {"type": "thinking", "thinking": []},
        {"type": "text", "text": "a", "k": 1},
        "b",
        {"type": "image"},
    ]
    frame = chat_frame(content(parts))

    def edited(new: str | None) -> object:
        body = json.loads(frame_of(edit_content(frame, 0, new, endpoint=CHAT)).data or "")
        return body["choices"][0]["delta"]["content"]

    assert edited("new") == [parts[0], {"type": "text", "text": "new", "k": 1}, parts[3]]
    assert edited(None) == [parts[0], parts[3]]


def test_a_choice_that_a_frame_repeats_says_the_new_text_once() -> None:
    """The first takes it, the others are emptied."""
    frame = chat_frame(content("a", 1), content("z", 0), content("b", 1))
    body = json.loads(frame_of(edit_content(frame, 1, "new", endpoint=CHAT)).data or "")
    assert [choice["delta"]["content"] for choice in body["choices"]] == ["new", "z", ""]
    assert edit_content(frame, 1, "ab", endpoint=CHAT) == frame.raw
    assert read(frame).choices[1].text == "ab"


def test_repeated_keys_are_all_replaced() -> None:
    """Whichever a reader takes, it takes the new text; an earlier member may be of any shape."""
    choices = b'[{"delta": {"content": "a", "content": "b"}}]'
    raw = b'data: {"choices": 1, "choices": %b, "choices": %b}\n\n' % (choices, choices)
    edited = raw.replace(b'"a"', b'"c"').replace(b'"b"', b'"c"')
    assert edit_content(frame_of(raw), 0, "c", endpoint=CHAT) == edited


@pytest.mark.parametrize(
    "frame",
    [
        chat_frame(content(None)),
        chat_frame({"delta": {}}),
        chat_frame(content("x", 1)),
        chat_frame(),
        frame_of(b": ping\n\n"),
        frame_of(b"data: [DONE]\n\n"),
        frame_of(b"data: {\n\n"),
    ],
)
def test_a_frame_without_text_takes_none(frame: Frame) -> None:
    """There is nothing to replace; taking text out leaves the same bytes."""
    with pytest.raises(ValueError, match="no text of choice 0"):
        edit_content(frame, 0, "new", endpoint=CHAT)
    assert edit_content(frame, 0, None, endpoint=CHAT) == frame.raw


def test_json_that_nests_too_deeply_is_refused_as_such() -> None:
    """At every depth a frame is edited, opaque, or refused with an error of ours."""
    told = set()
    for depth in range(500, 1100):
        deep = "[" * depth + "]" * depth
        frame = frame_of(encode(f'{{"choices": [{{"delta": {{"content": "old", "x": {deep}}}}}]}}'))
        if parse_chunk(frame, CHAT).kind is ChunkKind.OPAQUE:
            told.add("opaque")
            continue
        try:
            assert b'"new"' in edit_content(frame, 0, "new", endpoint=CHAT)
            told.add("edited")
        except DialectError:
            told.add("refused")
        except ValueError:
            # One call deeper than this test's own reading.
            told.add("opaque")
    assert {"edited", "opaque"} <= told


@pytest.mark.parametrize("seen", [True, False])
def test_chunks_of_ours_are_valid_by_the_schema(seen: bool) -> None:
    """The official client's types accept them, as a part of the stream they join."""
    transcript = read(*([chat_frame({}), chat_frame(content("a"))] if seen else []))
    added = ChatCompletionChunk.model_validate_json(
        content_chunk(transcript, 2, "é\ud83d", role="assistant"), strict=True
    )
    assert (added.id, added.model, added.created) == (("c-1", "m", 7) if seen else ("truthlens", "", 0))
    assert added.object == "chat.completion.chunk"
    assert (added.choices[0].index, added.choices[0].delta.content) == (2, "é\ufffd")
    assert added.choices[0].delta.role == "assistant"
    end = ChatCompletionChunk.model_validate_json(
        content_chunk(transcript, 0, "", finish_reason="stop"), strict=True
    )
    assert end.choices[0].finish_reason == "stop"
    assert end.choices[0].delta.content is None
    final = ChatCompletionChunk.model_validate_json(
        final_chunk(transcript, {"status": "checked"}), strict=True
    )
    assert final.choices == []
    assert final.model_extra == {"truthlens": {"status": "checked"}}
    again = parse_chunk(frame_of(encode(content_chunk(transcript, 2, "x"))), CHAT)
    assert again.deltas == (Delta(2, "x"),)


def test_completions_chunks_of_ours_are_valid_by_the_schema() -> None:
    """Text in the place where that API has it; the finish reason is null until the end, as on the wire."""
    transcript = Transcript(COMPLETIONS)
    raw = content_chunk(transcript, 1, "a", finish_reason="stop")
    added = Completion.model_validate_json(raw, strict=True)
    assert (added.object, added.choices[0].index, added.choices[0].text) == ("text_completion", 1, "a")
    assert parse_chunk(frame_of(encode(raw)), COMPLETIONS).deltas == (Delta(1, "a", finish_reason="stop"),)
    assert Completion.model_validate_json(final_chunk(transcript, {}), strict=True).choices == []


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_the_marker_of_the_end_reads_back(newline: bytes) -> None:
    """It is a frame by itself with the line end of the stream."""
    frame = frame_of(done_frame(newline=newline))
    assert parse_chunk(frame, CHAT).kind is ChunkKind.DONE
    assert (frame.newline, frame.whole) == (newline, True)


def test_several_choices_of_a_frame_are_edited_at_once() -> None:
    """Each is changed, emptied or left by itself."""
    frame = chat_frame(content("a", 0), content("b", 1, logprobs={}), content("c", 2))
    raw = edit_texts(frame, {0: "new", 1: None, 2: "c"}, endpoint=CHAT)
    body = json.loads(frame_of(raw).data or "")
    deltas = [choice["delta"] for choice in body["choices"]]
    assert deltas == [{"content": "new"}, {}, {"content": "c"}]
    assert "logprobs" not in body["choices"][1]
    assert edit_texts(frame, {}, endpoint=CHAT) == frame.raw
    assert edit_texts(frame, {2: "c", 5: None}, endpoint=CHAT) == frame.raw
    with pytest.raises(ValueError, match="no text of choice 5"):
        edit_texts(frame, {0: "new", 5: "x"}, endpoint=CHAT)


def test_members_and_log_probabilities_are_stripped() -> None:
    """What is named goes, however its name is written; every other byte stays."""
    raw = (
        b': logprobs\r\ndata: {"a":1.10, "\\u0074ruthlens": {"x": 1}, "choices":[{"index":0,"logprobs":{}},'
        b'{"logprobs": {"c": []}, "z": 1}, 5],"truthlens":2}\r\n\r\n'
    )
    bare = raw.replace(b', "\\u0074ruthlens": {"x": 1}', b"").replace(b',"truthlens":2', b"")
    assert strip(frame_of(raw), members=("truthlens",)).raw == bare
    assert strip(frame_of(raw), logprobs=(1,)).raw == raw.replace(b'"logprobs": {"c": []}, ', b" ")
    both = strip(frame_of(raw), members=("truthlens",), logprobs=(0,))
    assert both == frame_of(bare.replace(b',"logprobs":{}', b""))


@pytest.mark.parametrize(
    "raw",
    [
        b": truthlens logprobs\n\n",
        b"data: truthlens logprobs\n\n",
        b"data: [DONE]\n\n",
        b'data: {"choices": [{"delta": {"content": "truthlens"}, "logprobs": null}]}\n\n',
        b'data: {"choices": {"logprobs": 1}, "logprobs": 2}\n\n',
        b'data: {"choices": [{"index": 1, "logprobs": {}}]}\n\n',
    ],
)
def test_a_frame_with_nothing_to_strip_is_given_back(raw: bytes) -> None:
    """It is the frame itself."""
    frame = frame_of(raw)
    assert strip(frame, members=("truthlens",), logprobs=(0,)) is frame
