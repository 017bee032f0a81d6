"""What a client can show of one choice, or of what one chunk adds to it.

Every string of a choice is one of these: text of the answer, reasoning, a call, bookkeeping, or text in a
place that nothing here knows, which is *unread*: nobody scores it, and nobody may call its answer checked. So
what decides is not which members we know: a string outside of the answer that reads like prose is unread, whatever its
member is called, unless it is a label of bookkeeping (``bookkeeping``) or repeats what was read.

Source: OpenAI API (chat completions, completions), and members that vLLM, SGLang, llama.cpp, LiteLLM,
OpenRouter and Azure add to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from truthlens.api.content import is_reasoning_part, texts_of_parts
from truthlens.api.members.bookkeeping import (
    ARGUMENTS,
    CALLED,
    CALLS,
    NAMES,
    REASONING,
    is_prose,
    is_said,
    spelled_by,
    texts_within,
    words_of,
)
from truthlens.core.errors import DialectError
from truthlens.core.records.enums import Endpoint
from truthlens.text.json_edit import describe, load_object, show
from truthlens.text.sentences import sentences

# Within reasoning and calls.
_UNSAID = frozenset(("id", "index", "object", "type", "signature"))
# Members that hold answers in this API or in its neighbours; whatever stands in them is text of the answer.
_ANSWERS = frozenset(
    ("content", "text", "refusal", "transcript", "output_text", "generated_text", "output", "response", "answer", "value")
)  # fmt: skip
_HOLDERS = _ANSWERS | {"message", "delta", "audio"}
# Members that hold all of an answer, or all answers.
_WHOLE = ("choices", "message", "delta", "content", "text")
# Clients are told of these by the API itself, also piece by piece.
_SPOKEN = frozenset(("refusal", "transcript", "value"))
# Answers nested deeper than any API has them are not looked for, only counted.
_DEPTH = 8

# A token is not always the text that it stands for: so many words more than the answer has are a text of their own.
_MOST_SPELLED = 5
_PLAIN = re.compile(r"[\w.:/-]{0,63}\w", re.ASCII)


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
    """Return what a client can show of a choice of a JSON response.

    Raises:
        DialectError: Its message, its content or its text is of no shape that the API has.
    """
    return _show(choice, endpoint, holder="message")


def show_delta(choice: Mapping[str, object], endpoint: Endpoint) -> Shown:
    """Return what a client can show of what a chunk adds to a choice.

    Raises:
        DialectError: Its delta, its content or its text is of no shape that the API has.
    """
    return _show(choice, endpoint, holder="delta")


def _show(choice: Mapping[str, object], endpoint: Endpoint, *, holder: str) -> Shown:
    shown = Shown()
    if endpoint is Endpoint.COMPLETIONS:
        _set_text(shown, choice.get("text"))
        _collect(shown, choice, skip="text")
        return shown
    held = choice.get(holder)
    if held is not None and not isinstance(held, dict):
        raise DialectError(f"a choice's {holder} is {describe(held)}; expected an object")
    if held:
        _set_content(shown, held.get("content"), where=holder)
        _collect(shown, held, skip="content")
    _collect(shown, choice, skip=holder)
    return shown


def unread_of(body: Mapping[str, object]) -> list[str]:
    """The text that stands beside the choices of a response or a chunk."""
    shown = Shown()
    _collect(shown, body, skip="choices")
    # Nothing says of which choice it is.
    return [*shown.spoken, *shown.others, *shown.reasoning, *shown.unread]


def load_shown(text: str, *, max_values: int | None = None) -> tuple[dict[str, object], list[str]]:
    """Return the JSON object that ``text`` holds, and the text of its members that another one of their name replaces.

    There are clients that show the first of two. Errors: those of ``load_object``.
    """
    if "\\u" not in text and all(text.count(f'"{name}"') < 2 for name in _WHOLE):
        # Nearly every chunk, without a look at each of its members.
        return load_object(text, max_values=max_values), []
    repeated: list[tuple[str, object]] = []
    loaded = load_object(text, max_values=max_values, repeated=repeated)
    return loaded, [said for key, value in repeated for said in _said(key, value)]


def _said(key: str, value: object) -> list[str]:
    """The strings that a member says as an answer, or that read like one, at any depth."""
    found: list[str] = []
    waiting = [(key, value)]
    while waiting:
        name, each = waiting.pop()
        if isinstance(each, str):
            found += [show(each)] if name in _ANSWERS else texts_within(name, each)
        elif isinstance(each, dict):
            waiting += each.items()
        elif isinstance(each, list):
            waiting += [(name, item) for item in each]
    return [each for each in found if each.strip()]


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
        shown.text = "".join(texts_of_parts(content))
    elif content is not None:
        raise DialectError(
            f"a {where}'s content is {describe(content)}; expected a string, a list of parts or null"
        )
    if shown.text.strip():
        shown.only_refused = False


def _collect(shown: Shown, members: Mapping[str, object], *, skip: str, depth: int = _DEPTH) -> None:
    """Sort what stands in the members of an object, but for ``skip``, which was read."""
    for name, value in members.items():
        if is_said(name):
            shown.unread.append(show(name))
        if name == skip or _is_plain(name, value):
            continue
        if name in REASONING:
            shown.reasoning += _strings(value)
        elif name in CALLS:
            _collect_calls(shown, value)
        elif name in _ANSWERS and isinstance(value, str):
            _say(shown, name, value)
        elif name in _ANSWERS and isinstance(value, list):
            shown.others += texts_of_parts(value)
            _collect_parts(shown, value, depth=depth)
        elif isinstance(value, dict) and depth and name in _HOLDERS:
            _collect(shown, value, skip="", depth=depth - 1)
        else:
            shown.unread += texts_within(name, value)
    if members.get("logprobs"):
        _collect_spelled(shown, members["logprobs"])


def _is_plain(name: str, value: object) -> bool:
    """Whether a value is empty or plainly bookkeeping; nearly all of nearly all chunks."""
    if not value or isinstance(value, int | float):
        return True
    return isinstance(value, str) and name in NAMES and _PLAIN.fullmatch(value) is not None


def _collect_calls(shown: Shown, value: object) -> None:
    """Sort what stands in tool calls: names and arguments are for programs, anything else is no part of a call."""
    calls = value if isinstance(value, list) else [value]
    for call in calls:
        if not isinstance(call, dict):
            shown.unread += texts_within("", call)
            continue
        shown.tool_call = True
        shown.calls += _strings(call)
        for name, held in call.items():
            if name in CALLED and isinstance(held, dict):
                shown.unread += [
                    text
                    for key, each in held.items()
                    if key not in ARGUMENTS
                    for text in texts_within(key, each)
                ]
            elif name not in ARGUMENTS:
                shown.unread += texts_within(name, held)


def _collect_spelled(shown: Shown, logprobs: object) -> None:
    """Count what log probabilities spell beyond what the choice says; the tokens of a call are not its text."""
    spelled = spelled_by(logprobs)
    if shown.tool_call or len(spelled) <= 2 * _MOST_SPELLED:
        return
    said = {
        word
        for text in (shown.text, *shown.spoken, *shown.others, *shown.reasoning)
        for word in words_of(text)
    }
    if sum(word not in said for word in words_of(spelled)) > _MOST_SPELLED:
        shown.unread.append(spelled)


def _collect_parts(shown: Shown, parts: Sequence[object], *, depth: int = _DEPTH) -> None:
    """Sort what stands in content parts, but for the texts that ``texts_of_parts`` gives."""
    for part in parts:
        if isinstance(part, str):
            continue
        if not isinstance(part, dict):
            shown.unread += texts_within("", part)
        elif is_reasoning_part(part):
            shown.reasoning += _strings(part)
        elif not depth:
            shown.unread += texts_within("", part)
        else:
            shown.refused = shown.refused or part.get("type") == "refusal"
            _collect(shown, part, skip="text" if isinstance(part.get("text"), str) else "", depth=depth - 1)


def _say(shown: Shown, name: str, text: str) -> None:
    shown.refused = shown.refused or name == "refusal"
    if text.strip():
        shown.only_refused = shown.only_refused and name == "refusal"
    (shown.spoken if name in _SPOKEN else shown.others).append(show(text))


def _strings(value: object) -> Iterator[str]:
    """The strings of a JSON value, in order, without ids and types."""
    # A stack and no recursion: JSON may nest as deep as the decoder lets it.
    waiting = [("", value)]
    while waiting:
        name, each = waiting.pop()
        if isinstance(each, str):
            if name not in _UNSAID or is_prose(each):
                yield show(each)
        elif isinstance(each, dict):
            waiting += reversed(list(each.items()))
        elif isinstance(each, list):
            waiting += reversed([(name, held) for held in each])
