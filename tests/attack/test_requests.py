"""Requests that a lenient backend reads: none of them gets its answer under a weaker decision than the plain one."""

from __future__ import annotations

import gzip
import json
import unicodedata
import zlib
from typing import Any

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attack.gateway import Target, attacks, says, shown
from tests.attack.texts import CONTEXT, FALSE, PLAIN, QUESTION, WORD, tells

pytestmark = pytest.mark.envoy

_TEXT = st.text(max_size=12)
_ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)
_MEMBERS = [
    "model",
    "documents",
    "chat_template_kwargs",
    "tools",
    "tool_choice",
    "response_format",
    "stream",
    "stream_options",
    "n",
    "stop",
    "metadata",
    "user",
    "prompt",
    "input",
    "system",
    "temperature",
    "seed",
    "logprobs",
    "functions",
    "extra_body",
    "context",
    "data_sources",
    "Messages",
    "reasoning",
    "store",
]
_ROLES = st.sampled_from(
    ["user", "User", "USER", " user", "human", "customer", "system", "developer", "tool", "function", "assistant", "ipython", "", None, 1, ["user"], {}]
)  # fmt: skip
_PART_TYPES = st.sampled_from(["text", "input_text", "Text", "output_text", "json", None, 3])
_SPELLINGS = {
    "plain": lambda word: word,
    "upper": str.upper,
    "full width": lambda word: "".join(chr(ord(letter) + 0xFEE0) for letter in word),
    "bold letters": lambda word: "".join(chr(ord(letter) - ord("a") + 0x1D41A) for letter in word),
    "zero width": "\u200b".join,
    "joiners": "\u2060".join,
    "variation selectors": "\ufe0f".join,
    "tags": "\U000e0061".join,
    "soft hyphen": "\xad".join,
    "fillers": "\u3164".join,
    "combining": lambda word: word[0] + "\u0323" + word[1:],
    "cyrillic": lambda word: word.translate(str.maketrans("aceop", "асеор")),
    "greek": lambda word: word.translate(str.maketrans("aop", "αορ")),
    "one letter bold": lambda word: f"{word[:3]}**{word[3]}**{word[4:]}",
    "italic": lambda word: f"_{word}_",
    "code": lambda word: f"`{word}`",
    "struck": lambda word: f"~~{word}~~",
    "tag in the middle": lambda word: f"{word[:4]}<b></b>{word[4:]}",
    "comment in the middle": lambda word: f"{word[:4]}<!-- -->{word[4:]}",
    "entity": lambda word: f"&#{ord(word[0])};{word[1:]}",
    "backslash": lambda word: f"{word[:4]}\\{word[4:]}",
    "link": lambda word: f"[{word}](https://example.com)",
    "hyphens": lambda word: f"{word[:4]}-\n{word[4:]}",
    "direction": lambda word: f"\u202d{word}\u202c",
    "capital sharp": lambda word: unicodedata.normalize("NFD", word.replace("a", "á", 1)),
}
_ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
_PACKED = {
    "": lambda body: body,
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "GZIP": gzip.compress,
    "identity": lambda body: body,
    "foo": lambda body: body,
    "gzip, br": lambda body: brotli.compress(gzip.compress(body)),
    "gzip,": gzip.compress,
}
_TYPES = ("application/json", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", "x", "")  # fmt: skip


@st.composite
def _content(draw: st.DrawFn, text: str) -> Any:
    part = {"type": draw(_PART_TYPES), "text": text}
    return draw(
        st.sampled_from(
            [text, text, [part], [text], part, [{"type": "image_url", "image_url": {"url": "x"}}, part],
             [{"text": text}], [{"type": "text", "text": {"value": text}}], [{"type": "text", "content": text}], {"text": text}]
        )
    )  # fmt: skip


@st.composite
def _requests(draw: st.DrawFn, spellings: tuple[str, ...]) -> tuple[bytes, dict[str, str]]:
    """The plain request, in any wording and wrapping that a lenient server reads."""
    question = QUESTION.replace(WORD, _SPELLINGS[draw(st.sampled_from(spellings))](WORD))
    evidence = {"role": "user", "content": f"<context>{CONTEXT}</context>\nAnswer the question."}
    asked = {"role": draw(_ROLES), "content": draw(_content(question))}
    together = {"role": "user", "content": draw(_content(f"<context>{CONTEXT}</context>\n{question}"))}
    messages = draw(st.sampled_from([[together], [evidence, asked], [asked, evidence]]))
    odd = st.fixed_dictionaries(
        {}, optional={"role": _ROLES, "content": _ODD, "name": _ODD, "tool_calls": _ODD}
    )
    messages = [*draw(st.lists(odd, max_size=2)), *messages, *draw(st.lists(odd, max_size=1))]
    extra = draw(st.dictionaries(st.sampled_from(_MEMBERS), _ODD, max_size=2))
    text = json.dumps({**PLAIN, **extra, "messages": messages}, ensure_ascii=draw(st.booleans()))
    match draw(st.integers(0, 4)):
        case 0:  # the last of two members counts
            text = '{"messages": [{"role": "user", "content": "Hi"}], ' + text[1:]
        case 1:
            text = text.replace('"messages"', '"m\\u0065ssages"').replace('"content"', '"c\\u006fntent"')
        case 2:
            text = " \n\t" * draw(st.integers(1, 50)) + text + " \r\n"
    encoding = draw(st.sampled_from(_ENCODINGS))
    packed = draw(st.sampled_from(sorted(_PACKED)))
    headers = {"content-type": draw(st.sampled_from(_TYPES))}
    if packed:
        headers["content-encoding"] = packed
    return _PACKED[packed](text.encode(encoding, "surrogatepass")), headers


def _check(target: Target, body: bytes, headers: dict[str, str]) -> None:
    response = target.ask(FALSE, body=body, headers=headers)
    told = says(response)
    if tells(response.content):
        assert (told.get("decision"), told.get("detected")) == ("strict", "true"), shown(
            response, headers, body
        )
    else:
        assert response.status_code != 200, shown(response, headers, body)
        assert told.get("status"), shown(response, headers, body)


@pytest.mark.parametrize("name", _SPELLINGS)
def test_a_word_counts_however_it_is_written(by_word: Target, name: str) -> None:
    """What a reader takes for the word is the word."""
    body = json.dumps(PLAIN).replace(WORD, json.dumps(_SPELLINGS[name](WORD))[1:-1]).encode()
    _check(by_word, body, {})


@attacks(ci=60, nightly=3000)
@given(sent=_requests(("plain", "upper", "full width", "zero width", "italic")))
def test_no_wrapping_of_a_request_gets_it_a_weaker_decision(
    by_word: Target, sent: tuple[bytes, dict[str, str]]
) -> None:
    """Encodings, members of odd types, messages of odd roles: the answer is flagged under the stricter plan, or refused."""
    _check(by_word, *sent)


_OTHER_READINGS = {
    "the first of two members counts": b'{"messages": %b, "messages": [{"role": "user", "content": "Hi"}]}',
    "in another letter case": b'{"Messages": %b, "messages": []}',
    "in an input member": b'{"input": %b, "messages": [{"role": "user", "content": "Hi"}]}',
    "below another object": b'{"body": {"messages": %b}, "messages": [{"role": "user", "content": "Hi"}]}',
}


@pytest.mark.parametrize("name", list(_OTHER_READINGS)[:1])
def test_a_request_that_servers_read_differently_gets_the_stricter_reading(
    by_word: Target, name: str
) -> None:
    """Which of two members counts is the backend's affair; a rule counts for either."""
    _check(by_word, _OTHER_READINGS[name] % json.dumps(PLAIN["messages"]).encode(), {})


def test_the_plain_request_is_flagged_under_the_stricter_decision(by_word: Target) -> None:
    """Else nothing here would show anything."""
    response = by_word.ask(FALSE)
    assert (says(response)["decision"], says(response)["detected"]) == ("strict", "true"), shown(response)
    without = json.dumps(PLAIN).replace(WORD, "bakery").encode()
    assert says(by_word.ask(FALSE, body=without))["decision"] == "default"
