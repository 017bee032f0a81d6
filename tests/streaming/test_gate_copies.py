"""What repeats withheld text, or says text that nobody scored, does not leave a gate; bookkeeping does."""

from __future__ import annotations

import json
import re
from urllib.parse import unquote_plus

import pytest

from tests.fakes.copied_frames import BOOKKEEPING, COPIES, SPOKEN, choice_of, tells
from tests.fakes.gated_streams import (
    BAD,
    GOOD,
    GatedStream,
    exchange,
    finish,
    frame,
    frames_of,
    plan,
    read_back,
)
from truthlens.api.sse.frames import encode
from truthlens.core.records.enums import Endpoint, OnFlagged, OnUnchecked
from truthlens.core.records.verdict import Verdict

TRUE = "The bank opens at nine in the morning."
FALSE = "A domestic wire transfer costs eleven thousand dollars a day."
DONE = b"data: [DONE]\n\n"
STRICT = [
    {"on_flagged": OnFlagged.WITHHOLD},
    {"on_flagged": OnFlagged.STOP},
    {"on_flagged": OnFlagged.WITHHOLD, "on_unchecked": OnUnchecked.BLOCK},
]


def scorer(_choice: int, text: str) -> Verdict:
    return BAD if "wire" in text else GOOD


def played(
    settings: dict[str, object], *frames: bytes, endpoint: Endpoint = Endpoint.CHAT
) -> tuple[GatedStream, bytes]:
    stream = GatedStream(plan(**settings), exchange(endpoint), scorer)
    return stream, stream.play(*frames)


@pytest.mark.parametrize("endpoint", list(Endpoint))
@pytest.mark.parametrize("settings", STRICT)
@pytest.mark.parametrize("name", COPIES)
def test_a_withheld_sentence_leaves_in_no_other_member(
    name: str, settings: dict[str, object], endpoint: Endpoint
) -> None:
    """Of the frame that says it, whatever a server puts beside it."""
    top, beside, within = COPIES[name](FALSE)
    own = [
        frame(choice_of(f"{TRUE} ", {}, {}, endpoint)),
        frame(choice_of(f"{FALSE} ", beside, within, endpoint), **top),
        frame(choice_of(TRUE, {}, {}, endpoint)),
        frame(choice_of("", {}, {}, endpoint, finish_reason="stop")),
        DONE,
    ]
    stream, out = played(settings, *own, endpoint=endpoint)
    assert not tells(out, FALSE)
    text = read_back(out, endpoint).choices[0].text
    assert text.startswith(TRUE)
    if name in SPOKEN and endpoint is Endpoint.CHAT:
        assert stream.gate.all_stopped
        return
    assert "withheld" in text or "stopped" in text
    lost = any((top, beside, within if endpoint is Endpoint.CHAT else {}))
    assert (stream.gate.fields_dropped or stream.gate.logprobs_dropped) == (
        lost and "text" not in (beside if endpoint is Endpoint.COMPLETIONS else {})
    )


ASIDE = ("reasoning content", "reasoning", "reasoning details", *SPOKEN)
# Of what is said aside before the answer has begun nothing can be known; a count of tokens has no choice.
ELSEWHERE = [
    (name, place)
    for name, copy in COPIES.items()
    for place in (0, 2, 3, 4)
    if not (place == 0 and name in ASIDE) and (place < 4 or copy(FALSE)[0])
]


@pytest.mark.parametrize("settings", STRICT)
@pytest.mark.parametrize(("name", "place"), ELSEWHERE)
def test_nor_does_it_leave_in_a_frame_of_its_own(name: str, place: int, settings: dict[str, object]) -> None:
    """Ahead of its sentence, behind it, with the finish, or with the count of tokens."""
    top, beside, within = COPIES[name](FALSE)
    own = [
        frame(choice_of(f"{TRUE} ", {}, {}, Endpoint.CHAT)),
        frame(choice_of(f"{FALSE} ", {}, {}, Endpoint.CHAT)),
        frame(choice_of(f"{TRUE} And", {}, {}, Endpoint.CHAT)),
        frame(finish()),
        DONE,
    ]
    if place < 4:
        text = {0: "", 2: "Now. ", 3: ""}[place]
        reason = {"finish_reason": "stop"} if place == 3 else {}
        own.insert(place, frame(choice_of(text, beside, within, Endpoint.CHAT, **reason), **top))
    else:
        own.insert(4, encode(json.dumps({"choices": [], "usage": {"total_tokens": 9}} | top)))
    _stream, out = played(settings, *own)
    assert not tells(out, FALSE)
    assert read_back(out).choices[0].text.startswith(TRUE)


@pytest.mark.parametrize("name", ["text within", "text beside", "audio", "content above"])
def test_text_that_comes_word_by_word_in_another_place_does_not_leave(name: str) -> None:
    """Each piece for itself would be too short to be noticed."""
    frames = []
    for word in FALSE.split():
        top, beside, within = COPIES[name](f"{word} ")
        frames.append(frame(choice_of("So. ", beside, within, Endpoint.CHAT), **top))
    _stream, out = played(STRICT[0], *frames, frame(finish()), DONE)
    assert b"thousand" not in out
    frames = [frame(choice_of("So. ", {"made_up": word}, {}, Endpoint.CHAT)) for word in FALSE.split()]
    _stream, out = played(STRICT[0], *frames, frame(finish()), DONE)
    assert b"thousand" not in out


@pytest.mark.parametrize("settings", STRICT)
@pytest.mark.parametrize("name", BOOKKEEPING)
def test_bookkeeping_leaves_byte_for_byte(name: str, settings: dict[str, object]) -> None:
    top, beside, within = BOOKKEEPING[name]
    own = [
        frame(choice_of("", beside, within, Endpoint.CHAT), **top),
        frame(choice_of(f"{TRUE} ", beside, within, Endpoint.CHAT), **top),
        frame(finish()),
        frame(usage={"total_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 0}}),
        DONE,
    ]
    stream, out = played(settings, *own)
    assert out == b"".join(own)
    assert not stream.gate.fields_dropped


@pytest.mark.parametrize("name", BOOKKEEPING)
def test_bookkeeping_stays_beside_a_notice(name: str) -> None:
    top, beside, within = BOOKKEEPING[name]
    stream, _out = played(
        STRICT[0], frame(choice_of(FALSE, beside, within, Endpoint.CHAT), **top), frame(finish()), DONE
    )
    body = json.loads(frames_of(stream.entries[0].output or b"")[0].data or "")
    (choice,) = body["choices"]
    assert body.items() >= top.items()
    assert choice.items() >= beside.items()
    assert choice["delta"].items() >= within.items()


def test_a_gate_that_only_marks_leaves_all_members_alone() -> None:
    """Nothing is withheld there."""
    for copy in COPIES.values():
        top, beside, within = copy(FALSE)
        own = [
            frame(choice_of("", beside, within, Endpoint.CHAT), **top),
            frame(choice_of(TRUE, {}, {}, Endpoint.CHAT)),
        ]
        _stream, out = played({"on_flagged": OnFlagged.MARK}, *own)
        assert out == b"".join(own)


def test_log_probabilities_that_spell_their_own_text_stay() -> None:
    """Those that tell of more than it do not."""
    own = COPIES["log probabilities"](f"{TRUE}")[1]
    ahead = COPIES["log probabilities"](f"{TRUE} And more.")[1]
    _stream, out = played(STRICT[0], frame(choice_of(TRUE, own, {}, Endpoint.CHAT)))
    assert json.loads(frames_of(out)[0].data or "")["choices"][0]["logprobs"] == own["logprobs"]
    stream, out = played(STRICT[0], frame(choice_of(TRUE, ahead, {}, Endpoint.CHAT)))
    assert b"logprobs" not in out
    assert stream.gate.logprobs_dropped


def test_of_a_name_that_is_repeated_only_the_last_leaves() -> None:
    first = json.dumps([choice_of(FALSE, {}, {}, Endpoint.CHAT)])
    last = json.dumps([choice_of(TRUE, {}, {}, Endpoint.CHAT)])
    _stream, out = played(STRICT[0], encode(f'{{"id":"a","choices":{first},"choices":{last},"n":1.50}}'))
    assert not tells(out, FALSE)
    assert b"1.50" in out
    assert read_back(out).choices[0].text == TRUE


BESIDE = {
    "an event": b"event: %s",
    "an id": b"id: %s",
    "a comment": b": %s",
    "a comment without a space": b":%s",
    "retry": b"retry: %s",
    "an unknown field": b"note: %s",
    "a line without a colon": b"%s",
    "data behind a byte order mark": b"\xef\xbb\xbfdata: %s",
    "data in capitals": b"Data: %s",
}


@pytest.mark.parametrize("settings", STRICT)
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("place", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("name", BESIDE)
def test_a_withheld_sentence_leaves_in_no_line_beside_the_data(
    name: str, place: int, newline: bytes, settings: dict[str, object]
) -> None:
    """Before its data, behind it and without any, ahead of the sentence, with it, behind it and at the end."""
    if place == 0 and name == "data behind a byte order mark":
        # It begins the stream.
        name = "a comment"
    for spelling in (FALSE, "_".join(WORDS), "".join(map(str.capitalize, WORDS))):
        line = BESIDE[name] % spelling.encode() + newline
        own = [
            frame(choice_of(f"{TRUE} ", {}, {}, Endpoint.CHAT)),
            frame(choice_of(f"{FALSE} ", {}, {}, Endpoint.CHAT)),
            frame(finish()),
            DONE,
        ]
        before = [line + own[place], own[place][:-1] + line + b"\n"] if place < len(own) else []
        for changed in (*before, line + newline):
            frames = [
                *own[:place],
                changed,
                *(own[place + 1 :] if before and changed in before else own[place:]),
            ]
            stream, out = played(settings, b"".join(frames))
            assert "".join(WORDS[:6]).lower() not in _spelled(out)
            assert read_back(out).choices[0].text.startswith(TRUE)
            assert stream.gate.fields_dropped or stream.gate.stopped


@pytest.mark.parametrize("settings", STRICT)
def test_lines_beside_the_data_that_keep_books_leave_byte_for_byte(settings: dict[str, object]) -> None:
    own = [
        b": OPENROUTER PROCESSING\n\n",
        b"event: chat.completion.chunk\nid: 17\nretry: 3000\n"
        + frame(choice_of(f"{TRUE} ", {}, {}, Endpoint.CHAT)),
        b": ping\n\n",
        b":\n\n",
        b"id: evt_01jb9x\n" + frame(finish()),
        DONE,
    ]
    _stream, out = played(settings, *own)
    assert out == b"".join(own)


def test_a_comment_that_may_not_leave_still_keeps_the_connection() -> None:
    _stream, out = played(
        STRICT[0], f": {FALSE}\r\n\r\n".encode(), frame(choice_of(TRUE, {}, {}, Endpoint.CHAT))
    )
    assert out.startswith(b":\r\n\r\n")


def test_what_is_no_utf_8_does_not_repeat_what_was_withheld() -> None:
    bad = b"data: " + FALSE.encode() + b" \xff\n\n"
    _stream, out = played(
        STRICT[0], frame(choice_of(f"{TRUE} {FALSE} ", {}, {}, Endpoint.CHAT)), bad, frame(finish())
    )
    assert not tells(out, FALSE)


def test_nothing_leaves_behind_the_marker_in_its_own_frame() -> None:
    _stream, out = played(STRICT[0], frame(choice_of(TRUE, {}, {}, Endpoint.CHAT)), encode(f"[DONE] {FALSE}"))
    assert out.endswith(b"data: [DONE]\n\n")
    assert not tells(out, FALSE)


def test_parts_of_a_content_that_nobody_reads_do_not_leave() -> None:
    parts = [
        {"type": "text", "text": TRUE, "annotations": [FALSE]},
        {"type": "markdown", "body": FALSE},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]
    _stream, out = played(STRICT[0], frame({"index": 0, "delta": {"content": parts}, "finish_reason": None}))
    assert not tells(out, FALSE)
    assert json.loads(frames_of(out)[0].data or "")["choices"][0]["delta"]["content"] == [
        {"type": "text", "text": TRUE},
        {"type": "markdown"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]


def test_an_error_keeps_its_message_unless_it_repeats_what_was_withheld() -> None:
    told = [
        encode(json.dumps({"error": {"message": each}}))
        for each in ("The engine ran out of its memory.", FALSE)
    ]
    _stream, out = played(
        STRICT[0], frame(choice_of(f"{TRUE} {FALSE} ", {}, {}, Endpoint.CHAT)), frame(finish()), *told
    )
    assert b"ran out of its memory" in out
    assert not tells(out, FALSE)


WORDS = FALSE.rstrip(".").split()
SPELLINGS: dict[str, object] = {
    "a query": {"url": "https://x.example/?q=" + "+".join(WORDS)},
    "a path": {"url": "https://x.example/" + "-".join(WORDS).lower()},
    "a path with escapes": {"citations": ["https://x.example/" + "%20".join(WORDS)]},
    "an id": {"id": "_".join(WORDS)},
    "an id in capitals": {"id": "".join(map(str.capitalize, WORDS))},
    "names": {"seen": dict.fromkeys(WORDS, True)},
    "one name": {"_".join(WORDS): True},
    "names beside": dict.fromkeys(WORDS, None),
    "names in the count": {"usage": {"total_tokens": 9, "seen": dict.fromkeys(WORDS, 1)}},
    "pairs": {"usage": {"total_tokens": 9, "edits": [[at, word] for at, word in enumerate(WORDS)]}},
    "pairs elsewhere": {"edits": [[at, word] for at, word in enumerate(WORDS)]},
    "labels": {"citations": [" ".join(WORDS[at : at + 3]) for at in range(0, len(WORDS), 3)]},
    "several members": {f"x{at}": word for at, word in enumerate(WORDS)},
    "pieces of words": {"citations": [FALSE[at : at + 7] for at in range(0, len(FALSE), 7)]},
    "JSON": {"debug": json.dumps({"text": FALSE})},
}


def _spelled(raw: bytes) -> str:
    """Letters and digits of all that left, names and values alike."""
    return "".join(re.findall(r"[a-z]+", unquote_plus(raw.decode()).lower()))


@pytest.mark.parametrize("word_by_word", [False, True])
@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("name", SPELLINGS)
def test_a_withheld_sentence_leaves_in_no_other_spelling(name: str, place: int, word_by_word: bool) -> None:
    """Ahead of its sentence, with it, behind it, and with the finish."""
    if place < 2 and name == "a path":
        pytest.skip("until it is known what is withheld: paths spell the titles of their pages")
    top = SPELLINGS[name]
    assert isinstance(top, dict)
    texts = [f"{word} " for word in FALSE.split()] if word_by_word else [f"{FALSE} "]
    own = [frame(choice_of(text, {}, {}, Endpoint.CHAT)) for text in texts]
    own = [frame(choice_of(f"{TRUE} ", {}, {}, Endpoint.CHAT)), *own, frame(finish()), DONE]
    at = {0: 0, 1: 1, 2: len(own) - 2, 3: len(own) - 2}[place]
    carrier = finish() if place == 3 else choice_of("", {}, {}, Endpoint.CHAT)
    own.insert(at, frame(carrier, **top))
    _stream, out = played(STRICT[0], *own)
    assert "".join(WORDS[:6]).lower() not in _spelled(out)
    assert read_back(out).choices[0].text.startswith(TRUE)


@pytest.mark.parametrize(
    "member", ["id", "model", "url", "provider", "made_up", "error", "role", "reasoning_content", "type"]
)
def test_nor_word_by_word_over_frames(member: str) -> None:
    """Each frame for itself says nothing."""
    own = [frame(choice_of(f"{FALSE} ", {}, {}, Endpoint.CHAT))]
    for word in WORDS:
        within = {member: f"{word} "} if member in ("role", "reasoning_content", "type") else {}
        value = f"https://x.example/?q={word}" if member == "url" else word
        body = {} if within else {member: value}
        own.append(frame(choice_of("", {}, within, Endpoint.CHAT), **body))
    _stream, out = played(STRICT[0], *own, frame(finish()), DONE)
    said = [word for word in WORDS if f"{word}" in out.decode().partition("[DONE]")[0]]
    assert said != WORDS


def test_our_own_chunks_repeat_no_text_of_the_first() -> None:
    """Its id, its model and its kind are taken over where they are such."""
    for first in (FALSE, FALSE.replace(" ", "-"), "".join(map(str.capitalize, WORDS)), "x" * 5000):
        head = {"id": first, "object": first, "model": first, "created": 10**400}
        own = [frame(choice_of(f"{TRUE} {FALSE} ", {}, {}, Endpoint.CHAT), **head), frame(finish()), DONE]
        _stream, out = played({"on_flagged": OnFlagged.STOP}, *own)
        assert "".join(WORDS[:6]).lower() not in _spelled(out)
        assert first.encode() not in out


def test_a_call_leaves_with_its_name_and_its_arguments_alone() -> None:
    call = {
        "index": 0,
        "id": "c",
        "type": "function",
        "function": {"name": "get_the_current_fee_of_a_wire", "arguments": "{}"},
    }
    signed = {**call, "extra_content": {"google": {"thought_signature": "AbC/" * 100}}}
    own = frame(choice_of("", {}, {"tool_calls": [signed]}, Endpoint.CHAT))
    _stream, out = played(STRICT[0], own)
    assert out == own
    _stream, out = played(
        STRICT[0], frame(choice_of("", {}, {"tool_calls": [{**call, "text": FALSE}, FALSE]}, Endpoint.CHAT))
    )
    assert json.loads(frames_of(out)[0].data or "")["choices"][0]["delta"]["tool_calls"] == [call]
