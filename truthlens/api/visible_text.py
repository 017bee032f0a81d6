"""What a client can show of one choice, or of what one chunk adds to it.

Every string of a choice is one of these: text of the answer, reasoning, a call, bookkeeping, or text in a
place that nothing here knows, which is *unread*: nobody scores it, and nobody may call its answer checked. So
what decides is not which members we know, but which ones we know to hold no text; a string anywhere else that
reads like prose is unread, unless it repeats what was read.

Source: OpenAI API (chat completions, completions), and members that vLLM, SGLang, llama.cpp, LiteLLM,
OpenRouter and Azure add to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from truthlens.api.content import is_reasoning_part, text_of_part
from truthlens.api.json_edit import describe, show
from truthlens.core.enums import Endpoint
from truthlens.core.errors import DialectError
from truthlens.text.sentences import sentences

_REASONING = frozenset(("reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks"))
_CALLS = frozenset(("tool_calls", "function_call"))
_HOLDERS = frozenset(("message", "delta", "audio"))
# Members that hold answers in this API or in its neighbours; whatever stands in them is text of the answer.
_ANSWERS = frozenset(
    ("content", "text", "refusal", "transcript", "output_text", "generated_text", "output", "response", "answer", "value")
)  # fmt: skip
# Clients are told of these by the API itself, also piece by piece.
_SPOKEN = frozenset(("refusal", "transcript", "value"))
# No text of an answer: names, ids, reasons, counts, probabilities, and what the client sent itself.
_BOOKKEEPING = frozenset(
    ("id", "index", "object", "created", "model", "role", "type", "name", "title", "url", "provider", "finish_reason",
     "native_finish_reason", "stop_reason", "matched_stop", "stopping_word", "stop", "finish_details", "logprobs",
     "prompt_logprobs", "token_ids", "prompt_token_ids", "usage", "timings", "system_fingerprint", "service_tier",
     "obfuscation", "signature", "prompt", "generation_settings", "truthlens")
)  # fmt: skip
_PLAIN_TOP = _BOOKKEEPING | {"choices"}
_PLAIN_CHOICE = _BOOKKEEPING
_PLAIN_DELTA = frozenset(("role", "content"))

# Answers nested deeper than any API has them are not looked for, only counted.
_DEPTH = 8

# Bounded, so that a long string is read once: unread strings may be all of a body.
_BETWEEN = r"[^\w\s]{0,4}\s{1,64}[^\w\s]{0,4}"
_LETTER = re.compile("[A-Za-z\u0080-\U0010ffff]")
_WORDS = re.compile(rf"[^\W\d_]{_BETWEEN}[^\W_]|\d{_BETWEEN}[^\W\d_]")
_SENTENCE = re.compile(r"[^\W_][.!?…]['\")\]]{0,4}\Z")
# Scripts that write without spaces.
_DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]{2}"
)


@dataclass(slots=True)
class Shown:
    """The strings of one choice, sorted.

    ``text`` stands where the API has answers: ``message.content``, ``delta.content``, or ``text`` in
    completions. ``spoken`` are a refusal, a transcript, and text objects; ``others`` what stands in members where
    other APIs have their answers. ``unread`` reads like text, and nothing here knows what it is. ``calls`` are
    the strings of tool calls. ``refused``: there is a refusal; ``only_refused``: no other text.
    """

    text: str = ""
    spoken: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    refused: bool = False
    only_refused: bool = True
    tool_call: bool = False

    def whole(self) -> str:
        """All text of the answer, that of the API's own place first; copies are left out."""
        found = [self.text] if self.text.strip() else []
        for text in (*self.spoken, *self.others):
            if text.strip() and all(text.strip() != known.strip() for known in found):
                found.append(text)
        return "\n\n".join(found) if found else self.text


def show_choice(choice: Mapping[str, object], endpoint: Endpoint) -> Shown:
    """What a client can show of a choice of a JSON response.

    Raises:
        DialectError: Its message, its content or its text is of no shape that the API has.
    """
    shown = Shown()
    if endpoint is Endpoint.COMPLETIONS:
        _set_text(shown, choice.get("text"))
        _collect(shown, choice, skip="text")
        return shown
    message = choice.get("message")
    if message is not None and not isinstance(message, dict):
        raise DialectError(f"a choice's message is {describe(message)}; expected an object")
    if message:
        _set_content(shown, message.get("content"), where="message")
        _collect(shown, message, skip="content")
    _collect(shown, choice, skip="message")
    return shown


def show_delta(choice: Mapping[str, object], endpoint: Endpoint) -> Shown:
    """What a client can show of what a chunk adds to a choice.

    Raises:
        DialectError: Its delta, its content or its text is of no shape that the API has.
    """
    shown = Shown()
    if endpoint is Endpoint.COMPLETIONS:
        _set_text(shown, choice.get("text"))
        if not choice.keys() - {"text"} <= _PLAIN_CHOICE:
            _collect(shown, choice, skip="text")
        return shown
    delta = choice.get("delta")
    if delta is not None and not isinstance(delta, dict):
        raise DialectError(f"a choice's delta is {describe(delta)}; expected an object")
    if delta:
        _set_content(shown, delta.get("content"), where="delta")
        if not delta.keys() <= _PLAIN_DELTA:
            _collect(shown, delta, skip="content")
    if not choice.keys() - {"delta"} <= _PLAIN_CHOICE:
        _collect(shown, choice, skip="delta")
    return shown


def unread_of(body: Mapping[str, object]) -> list[str]:
    """The text that stands beside the choices of a response or a chunk."""
    if body.keys() <= _PLAIN_TOP:
        return []
    shown = Shown()
    _collect(shown, body, skip="choices")
    # Nothing says of which choice it is.
    return [*shown.spoken, *shown.others, *shown.reasoning, *shown.unread]


def without_copies(texts: Sequence[str], answers: Sequence[str]) -> list[str]:
    """Those of ``texts`` that repeat neither one of ``answers`` nor a sentence or a line of one."""
    if not texts:
        return []
    known: set[str] = set()
    for answer in answers:
        known.add(answer.strip())
        known.update(answer[start:end].strip() for start, end in sentences(answer))
        known.update(line.strip() for line in answer.splitlines())
    return [text for text in texts if text.strip() not in known]


def is_prose(text: str) -> bool:
    """Whether ``text`` reads like something said.

    That is two words at least, the end of a sentence, or letters of a script without spaces.
    """
    words = len(text.split(maxsplit=1)) > 1 and _LETTER.search(text) and _WORDS.search(text)
    return bool(words or _SENTENCE.search(text.rstrip()[-16:]) or _DENSE.search(text))


def _set_text(shown: Shown, text: object) -> None:
    if text is not None and not isinstance(text, str):
        raise DialectError(f"a choice's text is {describe(text)}; expected a string")
    shown.text = text or ""
    shown.only_refused = not shown.text.strip()


def _set_content(shown: Shown, content: object, *, where: str) -> None:
    if isinstance(content, str):
        shown.text = content
    elif isinstance(content, list):
        _collect_parts(shown, content)
        shown.text = "".join(text_of_part(part) or "" for part in content)
    elif content is not None:
        raise DialectError(
            f"a {where}'s content is {describe(content)}; expected a string, a list of parts or null"
        )
    if shown.text.strip():
        shown.only_refused = False


def _collect(shown: Shown, members: Mapping[str, object], *, skip: str, depth: int = _DEPTH) -> None:
    """Sort what stands in the members of an object, but for ``skip``, which was read."""
    for name, value in members.items():
        if name == skip or not value or name in _BOOKKEEPING:
            continue
        if name in _REASONING:
            shown.reasoning += _strings(value)
        elif name in _CALLS:
            shown.tool_call = True
            shown.calls += _strings(value, names=True)
        elif name in _ANSWERS and isinstance(value, str):
            _say(shown, name, value)
        elif name in _ANSWERS and isinstance(value, list):
            shown.others += [text for part in value if (text := text_of_part(part)) is not None]
            _collect_parts(shown, value, depth=depth)
        elif isinstance(value, dict) and depth and (name in _HOLDERS or name in _ANSWERS):
            _collect(shown, value, skip="", depth=depth - 1)
        else:
            shown.unread += [text for text in _strings(value) if is_prose(text)]


def _collect_parts(shown: Shown, parts: Sequence[object], *, depth: int = _DEPTH) -> None:
    """Sort what stands in content parts, but for the texts that ``text_of_part`` gives."""
    for part in parts:
        if isinstance(part, str):
            continue
        if not isinstance(part, dict):
            shown.unread += [text for text in _strings(part) if is_prose(text)]
        elif is_reasoning_part(part):
            shown.reasoning += _strings(part)
        elif not depth:
            shown.unread += [text for text in _strings(part) if is_prose(text)]
        else:
            shown.refused = shown.refused or part.get("type") == "refusal"
            _collect(shown, part, skip="text" if isinstance(part.get("text"), str) else "", depth=depth - 1)


def _say(shown: Shown, name: str, text: str) -> None:
    shown.refused = shown.refused or name == "refusal"
    if text.strip():
        shown.only_refused = shown.only_refused and name == "refusal"
    (shown.spoken if name in _SPOKEN else shown.others).append(show(text))


def _strings(value: object, *, names: bool = False) -> Iterator[str]:
    """The strings of a JSON value, in order, without bookkeeping; with ``names``, with the names of functions too."""
    # A stack and no recursion: JSON may nest as deep as the decoder lets it.
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield show(each)
        elif isinstance(each, dict):
            waiting += reversed(
                [
                    held
                    for name, held in each.items()
                    if name not in _BOOKKEEPING or (names and name == "name")
                ]
            )
        elif isinstance(each, list):
            waiting += reversed(each)
