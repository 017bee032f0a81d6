"""Whole streams are read like answers that do not stream, and rewritten without touching anything else."""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx
import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState

from tests.fakes.chunk_streams import HEAD, content
from truthlens.api.responses import parse_response
from truthlens.api.sse.buffered import StreamedResponse, parse_stream, rewrite_stream
from truthlens.api.sse.chunks import ChunkKind
from truthlens.api.sse.frames import encode
from truthlens.core.errors import DialectError
from truthlens.core.limits import Limits
from truthlens.core.records.enums import AnswerKind, Endpoint
from truthlens.core.records.exchange import Answer, Exchange

CHAT = Exchange(Endpoint.CHAT, "m", "q", ())
COMPLETIONS = Exchange(Endpoint.COMPLETIONS, "m", "q", ())
DONE = b"data: [DONE]\n\n"
VERDICT = {"status": "checked", "score": 0.25}
NOTICE = "Please verify.\n\n"


def chunk(*choices: Mapping[str, object], newline: bytes = b"\n", **top: object) -> bytes:
    return encode(json.dumps({**HEAD, "choices": list(choices), **top}), newline=newline)


def role(index: int = 0, text: object = "") -> dict[str, object]:
    return {"index": index, "delta": {"role": "assistant", "content": text}, "finish_reason": None}


def finish(index: int = 0, reason: str = "stop") -> dict[str, object]:
    return {"index": index, "delta": {}, "finish_reason": reason}


def read(*frames: bytes, exchange: Exchange = CHAT) -> StreamedResponse:
    return parse_stream(b"".join(frames), exchange)


def rewritten(
    frames: list[bytes], texts: Mapping[int, str], truthlens: Mapping[str, object] | None = None
) -> list[bytes]:
    """The frames of a chat stream after it was rewritten."""
    body = rewrite_stream(read(*frames), texts, truthlens)
    return [frame.raw for frame in parse_stream(body, CHAT).frames]


def contents(frames: list[bytes], index: int = 0) -> list[str]:
    """What each frame adds to a choice, where it adds anything."""
    response = read(*frames)
    return [delta.text for each in response.chunks for delta in each.deltas if delta.index == index]


FIRST = chunk(role())
ONE, TWO = chunk(content("It is ")), chunk(content("330 m tall."))
STOP = chunk(finish())
USAGE = chunk(usage={"prompt_tokens": 4, "completion_tokens": 5, "total_tokens": 9})
PLAIN = [FIRST, ONE, TWO, STOP, USAGE, DONE]
OLD = "It is 330 m tall."


def test_a_stream_is_read_as_one_response() -> None:
    """Answers, finish reasons, model and usage, as of a response in one piece."""
    response = read(*PLAIN)
    assert response.answers == (Answer(0, AnswerKind.TEXT, OLD),)
    assert response.finish_reasons == ("stop",)
    assert response.model == "m"
    assert response.usage == {"prompt_tokens": 4, "completion_tokens": 5, "total_tokens": 9}
    assert (response.endpoint, response.failed, response.opaque) == (Endpoint.CHAT, False, 0)


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Red."},
        {"content": [{"type": "text", "text": "It is "}, {"type": "text", "text": "red."}]},
        {"content": None},
        {"content": " \n"},
        {"content": None, "refusal": "No."},
        {"content": [{"type": "refusal", "refusal": "No."}]},
        {"content": "I look.", "tool_calls": [{"index": 0, "id": "c"}]},
        {"content": None, "function_call": {"name": "f"}},
        {"content": None, "reasoning_content": "Hm."},
        {},
    ],
)
def test_answers_are_what_they_would_be_unstreamed(message: Mapping[str, object]) -> None:
    """Text, tool call, refusal and nothing are told apart as in a response in one piece."""
    whole = {**HEAD, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    unstreamed = parse_response(json.dumps(whole).encode(), CHAT)
    response = read(chunk({"index": 0, "delta": message}), STOP, DONE)
    assert response.answers == unstreamed.answers
    assert response.finish_reasons == unstreamed.finish_reasons


def test_choices_come_in_the_order_in_which_they_began() -> None:
    """Each keeps its own index; one that was cut off has no finish reason."""
    response = read(
        chunk(content("c", 2)), chunk(content("a", 0), content("C", 2)), chunk(finish(2, "length"))
    )
    assert response.answers == (Answer(2, AnswerKind.TEXT, "cC"), Answer(0, AnswerKind.TEXT, "a"))
    assert response.finish_reasons == ("length", None)


def test_an_error_in_the_stream_is_told() -> None:
    """The text that came before it is an answer still."""
    response = read(ONE, b'data: {"error": {"message": "m"}}\n\n')
    assert response.failed
    assert response.answers == (Answer(0, AnswerKind.TEXT, "It is "),)
    assert read(b'data: {"error": {"message": "m"}}\n\n').failed


def test_frames_that_cannot_be_read_are_counted() -> None:
    """They may have held text that nobody has checked."""
    assert read(*PLAIN, b"data: {\n\n", b'data: {"choices": [{"delta": 5}]}\n\n').opaque == 2


@pytest.mark.parametrize(
    "body",
    [
        b"Hello, this is no stream.",
        b'event: response.output_text.delta\ndata: {"type": "response.output_text.delta", "delta": "x"}\n\n',
        b'data: {"type": "message_start"}\n\ndata: {"type": "message_delta", "usage": {"output_tokens": 7}}\n\n',
        b'data: {"type": "message_start"}\n\nevent: error\ndata: {"type": "error", "error": {"type": "x"}}\n\n',
        b'data: {"choices": {}}\n\n',
    ],
)
def test_streams_of_other_apis_are_told_apart(body: bytes) -> None:
    """The error names no text of the stream."""
    with pytest.raises(DialectError, match="expected chunks with choices"):
        parse_stream(body, CHAT)


@pytest.mark.parametrize("frames", [[], [DONE], [b": ping\n\n"], [USAGE, DONE]])
def test_a_stream_that_says_nothing_has_no_answer(frames: list[bytes]) -> None:
    """It is of the API all the same."""
    assert read(*frames).answers == ()


def test_an_echo_is_no_part_of_the_answer() -> None:
    """What the backend repeats stays in front, whatever becomes of the answer, also where a frame holds both."""
    exchange = Exchange(Endpoint.COMPLETIONS, "m", "q", (), echoed="Say: ")
    frames = [chunk({"index": 0, "text": text}) for text in ("Sa", "y: It", " is red.")]
    response = read(*frames, exchange=exchange)
    assert response.answers == (Answer(0, AnswerKind.TEXT, "It is red."),)
    assert response.echoes == ("Say: ",)
    for new in ("It is blue. Or not.", f"{NOTICE}It is red.", "It is red. Mind.", "Blue."):
        body = rewrite_stream(response, {0: new}, None)
        assert body.startswith(frames[0])
        assert parse_stream(body, exchange).answers == (Answer(0, AnswerKind.TEXT, new),)
        assert "".join(delta.text for each in read_chunks(body, exchange) for delta in each) == "Say: " + new
    whole = [chunk({"index": 0, "text": text}) for text in ("Say: ", "It is red.")]
    body = rewrite_stream(read(*whole, exchange=exchange), {0: f"{NOTICE}It is red."}, None)
    assert body.startswith(whole[0])
    assert body.endswith(whole[1])
    assert parse_stream(chunk({"index": 0, "text": "Say: "}), exchange).answers[0].kind is AnswerKind.EMPTY


def read_chunks(body: bytes, exchange: Exchange) -> list[object]:
    return [each.deltas for each in parse_stream(body, exchange).chunks]


def test_nothing_to_change_leaves_the_same_bytes() -> None:
    """Also where the texts are the old ones."""
    frames = [*PLAIN[:-1], chunk(other={"truthlens": 1}), b"data: [DONE]"]
    assert rewrite_stream(read(*frames), {}, None) == b"".join(frames)
    assert rewrite_stream(read(*frames), {0: OLD}, None) == b"".join(frames)


def test_the_verdict_comes_before_the_marker() -> None:
    """One frame more; all others are the same bytes. A count of tokens stays the last chunk."""
    frames = rewritten(PLAIN, {}, VERDICT)
    assert [*frames[:4], *frames[5:]] == PLAIN
    body = json.loads(frames[4].removeprefix(b"data: "))
    assert body == {**HEAD, "choices": [], "truthlens": VERDICT}
    for between in (b": ping\n\n", b"\n"):
        frames = rewritten([*PLAIN[:5], between, DONE], {}, VERDICT)
        assert b"truthlens" in frames[4]
        assert frames[5] == USAGE
    uncounted = [*PLAIN[:4], DONE]
    frames = rewritten(uncounted, {}, VERDICT)
    assert [*frames[:4], frames[5]] == uncounted


def test_the_verdict_comes_last_where_there_is_no_marker() -> None:
    """A last frame whose blank line never came is completed, unless it was cut off within its data."""
    frames = rewritten(PLAIN[:-2], {}, VERDICT)
    assert frames[:4] == PLAIN[:-2]
    assert b"truthlens" in frames[4]
    for ending in (b"\n", b""):
        frames = rewritten([*PLAIN[:-3], PLAIN[-3].rstrip() + ending], {}, VERDICT)
        assert frames[:4] == PLAIN[:-2]
        assert b"truthlens" in frames[4]
    for torn in (b'data: {"choices": [{"del', b": pin", b"data: caf\xc3"):
        frames = rewritten([*PLAIN[:-2], torn], {}, VERDICT)
        assert b"truthlens" in frames[4]
        assert frames[5] == torn
        frames = rewritten([*PLAIN[:-1], torn], {}, VERDICT)
        assert b"truthlens" in frames[4]
        assert frames[5:] == [USAGE, torn]
    frames = rewritten([*PLAIN[:-2], b"data: [DONE]"], {}, VERDICT)
    assert b"truthlens" in frames[4]
    assert frames[5] == b"data: [DONE]"


@pytest.mark.parametrize("frames", [[], [b": ping\n\n"], [DONE]])
def test_a_stream_that_says_nothing_takes_a_verdict_too(frames: list[bytes]) -> None:
    (verdict,) = [frame for frame in rewritten(frames, {}, VERDICT) if frame not in frames]
    assert json.loads(verdict.removeprefix(b"data: "))["truthlens"] == VERDICT
    assert rewritten(frames, {}, None) == frames


def test_there_is_one_verdict_at_most() -> None:
    """A member of that name that the backend sent goes, however it is written, also where nothing else changes."""
    theirs = [
        chunk(content("x", 1), truthlens={"status": "checked"}),
        b'data: {"choices": [], "\\u0074ruthlens": 1}\n\n',
    ]
    frames = rewritten([*PLAIN[:3], *theirs, *PLAIN[3:]], {0: NOTICE + OLD}, None)
    assert frames[4:6] == [chunk(content("x", 1)), b'data: {"choices": []}\n\n']
    assert not any(b"truthlens" in frame or b"ruthlens" in frame for frame in frames)
    assert rewritten([*PLAIN[:3], *theirs, *PLAIN[3:]], {}, None) == [
        *PLAIN[:3], chunk(content("x", 1)), b'data: {"choices": []}\n\n', *PLAIN[3:],
    ]  # fmt: skip
    frames = rewritten([*PLAIN[:3], *theirs, *PLAIN[3:]], {}, VERDICT)
    assert sum(b"ruthlens" in frame for frame in frames) == 1


def test_a_notice_before_the_answer_follows_the_role() -> None:
    """It takes one frame; all others are the same bytes, and their log probabilities stay."""
    scored = chunk(content("It is ", logprobs={"content": []}))
    old = [FIRST, scored, *PLAIN[2:]]
    frames = rewritten(old, {0: NOTICE + OLD})
    assert [frames[0], *frames[2:]] == old
    assert contents(frames)[1] == NOTICE


def test_a_notice_before_a_first_text_with_the_role_repeats_no_role() -> None:
    """The official client adds roles up like texts."""
    old = [chunk(role(0, "It is ")), *PLAIN[2:]]
    frames = rewritten(old, {0: NOTICE + OLD})
    assert frames[1:] == old
    assert contents(frames)[:2] == [NOTICE, "It is "]
    assert message(b"".join(frames)) == ("assistant", NOTICE + OLD, "stop")


def test_a_notice_behind_the_answer_comes_before_its_finish() -> None:
    """It takes one frame behind the last text."""
    frames = rewritten(PLAIN, {0: OLD + "\n\nMind."})
    assert [*frames[:3], *frames[4:]] == PLAIN
    assert contents(frames)[3] == "\n\nMind."


def test_a_notice_behind_a_text_that_finishes_is_added_to_it() -> None:
    """No text may follow the finish; the log probabilities that are gone are told of."""
    last = chunk(
        {"index": 0, "delta": {"content": "330 m tall."}, "logprobs": {"x": 1}, "finish_reason": "stop"}
    )
    frames = rewritten([FIRST, ONE, last, DONE], {0: OLD + " Mind."})
    assert contents(frames) == ["", "It is ", "330 m tall. Mind."]
    assert b"logprobs" not in frames[2]
    assert json.loads(frames[3].removeprefix(b"data: "))["truthlens"] == {"notes": ["logprobs-dropped"]}
    assert frames[4] == DONE


def test_a_new_text_takes_the_frames_of_the_old_sentence_by_sentence() -> None:
    """Frames without text keep their bytes and places; text frames left over go."""
    new = "It is 300 m tall. It stands in Paris.\n\nSo I read.  "
    more = [chunk(content(text)) for text in ("Yes. ", "No. ", "Both. ")]
    frames = rewritten([FIRST, ONE, *more, STOP, USAGE, DONE], {0: new})
    assert contents(frames) == ["", "It is 300 m tall. ", "It stands in Paris.\n\n", "So I read.  ", ""]
    assert [frames[0], *frames[4:]] == [FIRST, STOP, USAGE, DONE]
    assert frames[1] == chunk(content("It is 300 m tall. "))


def test_a_new_text_of_more_sentences_takes_more_frames() -> None:
    """They stand behind the last text frame, before the finish."""
    frames = rewritten(PLAIN, {0: "One. Two. Three. Four."})
    assert contents(frames) == ["", "One. ", "Two. ", "Three. ", "Four.", ""]
    assert frames[5:] == PLAIN[3:]


def test_a_new_text_ends_in_the_frame_that_finishes() -> None:
    """Where the last text came with the finish, the last frame takes what is left."""
    last = chunk({"index": 0, "delta": {"content": "330 m tall."}, "finish_reason": "stop"})
    assert contents(rewritten([FIRST, ONE, last], {0: "One. Two. Three."})) == ["", "One. ", "Two. Three."]
    frames = rewritten([FIRST, ONE, last], {0: "One."})
    assert contents(frames) == ["", "One.", ""]
    assert frames[2] == chunk(finish())


def test_an_empty_new_text_leaves_a_stream_that_says_nothing() -> None:
    """The first text frame is emptied, the others go."""
    assert rewritten(PLAIN, {0: ""}) == [FIRST, chunk(content("")), *PLAIN[3:]]


@pytest.mark.parametrize(
    ("choice", "top"),
    [
        ({"index": 0, "delta": {"content": "x", "reasoning": "Hm."}}, {}),
        ({"index": 0, "delta": {"content": "x", "vendor": 0}}, {}),
        ({"index": 0, "delta": {"content": [{"type": "text", "text": "x"}, {"type": "image_url"}]}}, {}),
        ({"index": 0, "delta": {"content": "x"}, "content_filter_results": {"hate": {}}}, {}),
        ({"index": 0, "delta": {"content": "x"}}, {"vendor": False}),
        ({"index": 0, "delta": {"content": "x"}}, {"usage": {"total_tokens": 2}}),
    ],
)
def test_a_frame_that_carries_more_than_text_stays(
    choice: Mapping[str, object], top: Mapping[str, object]
) -> None:
    """Its text goes, everything else of it stays."""
    carrying = chunk(choice, **top)
    frames = rewritten([FIRST, ONE, carrying, STOP, DONE], {0: "No."})
    expected = json.loads(carrying.removeprefix(b"data: "))
    delta = expected["choices"][0]["delta"]
    if isinstance(delta["content"], list):
        del delta["content"][0]
    else:
        del delta["content"]
    assert json.loads(frames[2].removeprefix(b"data: ")) == expected
    assert len(frames) == 5


@pytest.mark.parametrize("lines", [b": note\n", b"id: 7\n", b"event: message\n", b"retry: 9\n"])
def test_a_frame_with_other_fields_stays(lines: bytes) -> None:
    """Comments and ids are the stream's own."""
    frames = rewritten([FIRST, ONE, lines + TWO, STOP, DONE], {0: "No."})
    assert frames[2].startswith(lines)
    assert contents(frames) == ["", "No.", "", ""]


@pytest.mark.parametrize(
    "extra",
    [
        {"id": "c-1", "system_fingerprint": "fp", "service_tier": "x", "obfuscation": "ab", "usage": None},
        {"vendor": None},
    ],
)
def test_a_frame_with_what_every_chunk_repeats_goes(extra: Mapping[str, object]) -> None:
    """Padding, fingerprints and nulls say nothing of their own."""
    more = {
        **content("x", stop_reason=None),
        "delta": {"content": "x", "role": "assistant", "tool_calls": []},
    }
    assert rewritten([FIRST, ONE, chunk(more, **extra), STOP, DONE], {0: "No."}) == [
        FIRST,
        chunk(content("No.")),
        STOP,
        DONE,
    ]


def test_a_role_is_not_lost_with_the_text_it_came_with() -> None:
    """Where no frame before it says the role, the frame stays."""
    frames = rewritten([ONE, chunk(role(0, "x")), STOP, DONE], {0: "No."})
    assert read(*frames).transcript.choices[0].role == "assistant"
    assert len(frames) == 4


def test_log_probabilities_of_a_text_that_is_gone_go() -> None:
    """In all frames of the choice, with and without text; those of the others stay."""
    scored = {"logprobs": {"content": []}}
    frames = rewritten(
        [
            chunk(content("a. ", **scored), content("b", 1, **scored)),
            chunk(content("c", **scored)),
            chunk({**finish(), **scored}),
            DONE,
        ],
        {0: "a. d."},
        VERDICT,
    )
    bodies = [json.loads(frame.removeprefix(b"data: ")) for frame in frames[:-1]]
    assert ["logprobs" in choice for body in bodies for choice in body["choices"]] == [
        False,
        True,
        False,
        False,
    ]
    assert bodies[-1]["truthlens"] == {**VERDICT, "notes": ["logprobs-dropped"]}


def test_notes_that_are_there_already_stay() -> None:
    """The note is one of several."""
    frames = [chunk(content("a", logprobs={})), DONE]
    written = rewritten(frames, {0: "b"}, {"notes": ["first"]})
    assert json.loads(written[1].removeprefix(b"data: "))["truthlens"]["notes"] == [
        "first",
        "logprobs-dropped",
    ]


def test_other_choices_are_not_touched() -> None:
    """Also where one frame carries text of both, and where both change."""
    frames = [chunk(role(0), role(1)), chunk(content("a", 0), content("b", 1)), chunk(content("B", 1)), STOP]
    written = rewritten(frames, {0: "One. Two. Three."})
    assert contents(written, 1) == ["", "b", "B"]
    assert written[-2:] == frames[2:]
    written = rewritten(frames, {0: "One. Two.", 1: "Three."})
    assert {each.index: each.text for each in read(*written).answers} == {0: "One. Two.", 1: "Three."}
    assert frames[2] not in written


@pytest.mark.parametrize("newline", [b"\r\n", b"\r", b"\n"])
def test_new_frames_end_their_lines_as_the_stream_does(newline: bytes) -> None:
    """CRLF streams stay CRLF streams; a byte order mark stays at the front."""
    mark = b"\xef\xbb\xbf"
    frames = [mark, *(frame.replace(b"\n", newline) for frame in (ONE, TWO, STOP, DONE))]
    body = rewrite_stream(read(*frames), {0: NOTICE + OLD}, VERDICT)
    assert body.startswith(mark + b"data: ")
    assert body.count(mark) == 1
    assert body.replace(newline, b"") == body.replace(b"\r", b"").replace(b"\n", b"")
    again = parse_stream(body, CHAT)
    assert {frame.newline for frame in again.frames} == {newline}
    assert len(again.frames) == 6


def test_a_character_cut_over_frames_is_replaced_whole() -> None:
    """No half of it is left."""
    halves = [encode(json.dumps({"choices": [content(half)]})) for half in ("a\ud83d", "\ude00b")]
    assert contents(rewritten([*halves, STOP], {0: "New."})) == ["New.", ""]
    frames = rewritten([*halves, STOP], {0: "a😀b Mind."})
    assert frames[:2] == halves
    assert contents(frames)[2] == " Mind."
    exchange = Exchange(Endpoint.COMPLETIONS, "m", "q", (), echoed="a")
    said = [encode(json.dumps({"choices": [{"text": half}]})) for half in ("a\ud83d", "\ude00b")]
    response = read(*said, exchange=exchange)
    assert response.answers[0].text == "😀b"
    again = parse_stream(rewrite_stream(response, {0: "x 😀b"}, None), exchange)
    assert (again.answers[0].text, again.transcript.choices[0].text) == ("x 😀b", "ax 😀b")


def test_half_a_character_counts_where_it_stands() -> None:
    """A half that nothing followed is U+FFFD, and what is put behind it comes behind it."""
    frames = [chunk(content("a\ud83d")), STOP]
    assert read(frames[0]).answers[0].text == "a\ufffd"
    assert read(*frames).answers[0].text == "a\ufffd"
    written = rewritten(frames, {0: "a\ufffd Mind."})
    assert written[0] == frames[0]
    assert read(*written).answers[0].text == "a\ufffd Mind."


def test_choices_without_text_cannot_be_changed() -> None:
    """The message names indexes alone."""
    tools = {"index": 1, "delta": {"content": "x", "tool_calls": [{"index": 0}]}}
    response = read(ONE, chunk(tools), chunk(content(" ", 2)))
    for index in (1, 2, 3):
        with pytest.raises(ValueError, match=rf"choices \[{index}\] cannot be changed; with text: \[0\]"):
            rewrite_stream(response, {index: "x"}, None)


def test_a_frame_longer_than_the_limit_of_live_streams_is_read() -> None:
    """A body that is held already is bounded by its own limit."""
    long = "x" * (1 << 21)
    limits = Limits.model_construct(max_answer_chars=len(long))
    assert parse_stream(chunk(content(long)), CHAT, limits).answers[0].text == long


@pytest.mark.parametrize("truthlens", [None, VERDICT])
@pytest.mark.parametrize("new", [NOTICE + OLD, OLD + "\n\nMind.", "It is 300 m tall. I think. Is it?", "No."])
def test_the_official_client_reads_what_was_rewritten(
    new: str, truthlens: Mapping[str, object] | None
) -> None:
    """Role, text, finish reason and usage arrive as of any stream, and the verdict as an extra member."""
    body = rewrite_stream(read(*PLAIN), {0: new}, truthlens)
    assert message(body) == ("assistant", new, "stop")
    chunks = client_chunks(body)
    assert [each.usage.total_tokens for each in chunks if each.usage] == [9]
    assert [each.truthlens for each in chunks if hasattr(each, "truthlens")] == (
        [truthlens] if truthlens else []
    )
    assert read(body).chunks[-1].kind is ChunkKind.DONE


def message(body: bytes) -> tuple[str, str | None, str]:
    """Role, text and finish reason that the official client puts together."""
    state = ChatCompletionStreamState()
    for each in client_chunks(body):
        state.handle_chunk(each)
    (choice,) = state.get_final_completion().choices
    return choice.message.role, choice.message.content, choice.finish_reason


def client_chunks(body: bytes) -> list[openai.types.chat.ChatCompletionChunk]:
    """What the official client makes of a stream."""

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    with (
        httpx.Client(transport=httpx.MockTransport(answer)) as http,
        openai.OpenAI(api_key="x", base_url="http://backend/v1", http_client=http) as client,
    ):
        return list(client.chat.completions.create(model="m", messages=[], stream=True))


def test_reasoning_that_repeats_a_replaced_text_goes_whether_or_not_its_choice_has_an_index() -> None:
    """A choice without one is the one of its place in the chunk."""
    thoughts = [{"delta": {"reasoning": piece}} for piece in ("The tower in Paris", " is 330 m tall.")]
    said = {"delta": {"content": "The tower in Paris is 330 m tall."}}
    empty: dict[str, object] = {"delta": {}}
    for other in (empty, {"index": 0, **empty}):
        frames = [chunk(other, choice) for choice in (*thoughts, said)]
        body = b"".join(rewritten([*frames, STOP, DONE], {1: "No."}))
        assert b"No." in body
        assert b"Paris" not in body
