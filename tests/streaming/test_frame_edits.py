"""The bytes of frames whose choices were changed, taken out or stopped."""

from __future__ import annotations

import json

import pytest

from tests.fakes.gated_streams import finish, frame, frames_of, read_back, said
from truthlens.api.sse.chunk_edits import edit_content
from truthlens.api.sse.chunks import Transcript, parse_chunk
from truthlens.api.sse.frames import encode
from truthlens.core.errors import DialectError
from truthlens.core.records.enums import Endpoint
from truthlens.streaming.frame_edits import Changes, rewrite
from truthlens.streaming.types import StreamEntry


def rewritten(raw: bytes, changes: Changes) -> bytes:
    (found,) = frames_of(raw)
    transcript = Transcript(Endpoint.CHAT)
    entry = StreamEntry(found, parse_chunk(found, Endpoint.CHAT))
    transcript.add(entry.chunk)
    return rewrite(entry, changes, transcript)


def bodies(raw: bytes) -> list[dict[str, object]]:
    return [json.loads(found.data or "") for found in frames_of(raw)]


def test_changes_without_a_change_are_false() -> None:
    assert not Changes()
    assert Changes({0: ""})
    assert Changes(dropped={0})
    assert Changes(stopped={0})


def test_a_dropped_choice_is_taken_out_and_every_other_byte_stays() -> None:
    raw = b': c\r\ndata: {"choices":[{"delta":{"content":"a"},"n":1.50}, {"delta":{"content":"b"},"n":1e400}]}\r\n\r\n'
    assert rewritten(raw, Changes(dropped={0})) == raw.replace(b'{"delta":{"content":"a"},"n":1.50}, ', b" ")
    assert rewritten(raw, Changes(dropped={1})) == raw.replace(b', {"delta":{"content":"b"},"n":1e400}', b"")
    assert rewritten(raw, Changes(dropped={0, 1})) == b""


def test_a_frame_whose_choices_are_all_dropped_keeps_its_usage() -> None:
    (body,) = bodies(rewritten(frame(said("a"), usage={"total_tokens": 3}), Changes(dropped={0})))
    assert (body["choices"], body["usage"]) == ([], {"total_tokens": 3})


def test_an_error_keeps_its_message_where_its_text_goes() -> None:
    raw = frame(said("secret"), error={"message": "m"})
    (body,) = bodies(rewritten(raw, Changes(dropped={0})))
    assert body["error"] == {"message": "m"}
    assert b"secret" not in rewritten(raw, Changes({0: ""}))


def test_stopped_choices_finish_behind_the_frame_in_its_line_ends_with_one_reason() -> None:
    raw = frame(said("a", finish_reason="stop"), said("b", 1), finish(2), newline=b"\r\n")
    out = rewritten(raw, Changes({0: "x"}, stopped={1, 0}))
    assert b"\n" not in out.replace(b"\r\n", b"")
    assert [
        (choice["index"], choice["finish_reason"])  # type: ignore[index]
        for body in bodies(out)
        for choice in body["choices"]  # type: ignore[attr-defined]
    ] == [(0, None), (1, None), (2, "stop"), (0, "content_filter"), (1, "content_filter")]
    assert read_back(out).choices[0].text == "x"


def test_a_choice_repeated_in_a_frame_has_its_text_once() -> None:
    raw = frame(said("a"), said("b"), said("c", 1))
    assert read_back(rewritten(raw, Changes({0: "new"}))).choices[0].text == "new"


@pytest.mark.parametrize(
    ("changes", "texts", "reasons"),
    [
        (Changes({0: "new"}), {0: "new", 1: "b"}, {0: None, 1: "stop"}),
        (Changes({0: "new"}, dropped={1}), {0: "new"}, {0: None}),
        (Changes({1: ""}, stopped={1}), {0: "aa", 1: ""}, {0: None, 1: "content_filter"}),
    ],
)
def test_a_chunk_that_nests_too_deeply_to_be_edited_is_made_anew(
    changes: Changes, texts: dict[int, str], reasons: dict[int, str | None]
) -> None:
    raw = deepest_that_is_read()
    out = rewritten(raw, changes)
    assert b"[[[" not in out
    client = read_back(out)
    assert {index: choice.text for index, choice in client.choices.items()} == texts
    assert {index: choice.finish_reason for index, choice in client.choices.items()} == reasons


def deepest_that_is_read() -> bytes:
    """A frame that can be read and not be edited: it nests up to the limit of the reader."""
    for depth in range(1200, 0, -1):
        choices = [said("a"), said("b", 1, finish_reason="stop"), said("a")]
        raw = encode(
            json.dumps({"choices": choices}).removesuffix("}")
            + ', "deep": '
            + "[" * depth
            + "]" * depth
            + "}"
        )
        (found,) = frames_of(raw)
        if not parse_chunk(found, Endpoint.CHAT).deltas:
            continue
        with pytest.raises((DialectError, ValueError)):
            edit_content(found, 0, "new", endpoint=Endpoint.CHAT)
        return raw
    raise AssertionError("no depth can be read")
