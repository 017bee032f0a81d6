"""The OpenAI chat and completions APIs: requests as ``Exchange`` records.

Deliberately not here: how answers are read and rewritten (``responses``), finding evidence in text
(``extract``), streams.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from truthlens.api.answer_citations import ANSWER_CITATIONS
from truthlens.api.content import document_parts, request_text, server_tool_results
from truthlens.core.errors import DialectError, check
from truthlens.core.limits import Limits
from truthlens.core.records.enums import Endpoint
from truthlens.core.records.exchange import Exchange, Message
from truthlens.core.records.settings import EvidenceRules
from truthlens.evidence.extract import take_evidence
from truthlens.evidence.roles import Speaker, messages_of, speaker_of
from truthlens.text import json_edit

# Fields by which OpenAI, vLLM and other compatible servers constrain the answer to a format that a
# program reads. Forced tool calls are not here: they come back as tool calls, which are never changed.
_FORMAT_FIELDS = (
    "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "structural_tag",
    "json_schema", "regex", "ebnf", "grammar", "format",
)  # fmt: skip
# What says how to answer, and not what of; a tool's schema names what it is about in every request.
_SETTINGS = frozenset(
    ("model", "user", "tools", "functions", "tool_choice", "function_call", "response_format", "metadata", "stop",
     *_FORMAT_FIELDS)
)  # fmt: skip
# Labels, and what is no text though it is written as one.
_NO_TEXT = frozenset(
    ("role", "type", "id", "tool_call_id", "image_url", "input_audio", "audio", "file", "video_url")
)
_DATA_URL = re.compile(r"data:[\w.+/-]{1,100};base64,")

MEMBER_IGNORED = "request-member-ignored"
_DEFAULTS = Limits()
_NO_SCOPE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Request:
    """A request read without searching its texts for evidence; ``documents`` are raw JSON.

    ``context`` are its texts outside of the user's messages, ``notes`` codes of what could not be read of it.
    """

    endpoint: Endpoint
    model: str
    messages: tuple[Message, ...]
    documents: tuple[object, ...]
    stream: bool
    structured: bool
    echoed: str
    choices: int = 1
    context: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def user_text(self) -> str:
        """The texts of all user messages, one after the other."""
        return "\n".join(message.text for message in self.messages if _is_users(message.role))


def _is_users(role: str) -> bool:
    """Return whether a message of this role is the user's: any role that is not known to be another's."""
    return speaker_of(role) in (Speaker.USER, Speaker.UNKNOWN)


def parse_request(body: bytes, endpoint: Endpoint, rules: EvidenceRules) -> Exchange:
    """Parse the request half of an exchange: ``read_request``, then ``exchange_of``."""
    return exchange_of(read_request(body, endpoint), rules)


def read_request(body: bytes, endpoint: Endpoint | None, limits: Limits = _DEFAULTS) -> Request:
    """Read what a request says, its texts not yet searched for evidence.

    A completions request must hold one prompt: with several, or with token ids, an answer cannot be
    attributed to a text, and the exchange is of no dialect that can be checked. Other members that are of no
    shape that the API has are left out, as backends leave them out that do not look at them, and noted.

    Args:
        body: Decoded request body.
        endpoint: What the path said; ``None`` where the body says it, as for ``/invocations``.
        limits: Bounds on what is read.

    Raises:
        BodyTooLargeError: The body holds more JSON values, or longer messages, than ``limits`` allow.
        DialectError: The body is no text, not JSON, or not of the API's shape.
    """
    repeated: list[tuple[str, object]] = []
    request = json_edit.load_object(_decode(body)[0], max_values=limits.max_json_values, repeated=repeated)
    if endpoint is None:
        endpoint = Endpoint.COMPLETIONS if request.get("messages") is None else Endpoint.CHAT
    notes: list[str] = []
    messages = _chat_messages(request, notes) if endpoint is Endpoint.CHAT else (_prompt_message(request),)
    check(sum(len(message.text) for message in messages), limits.max_prompt_chars, key="max_prompt_chars")
    model = request.get("model")
    if model is not None and not isinstance(model, str):
        notes.append(MEMBER_IGNORED)
    if request.get("data_sources"):
        notes.append(ANSWER_CITATIONS)
    return Request(
        endpoint=endpoint,
        model=json_edit.show(model) if isinstance(model, str) else "",
        messages=messages,
        documents=tuple(_documents(request, notes)),
        stream=request.get("stream") is True,
        structured=_is_structured(request),
        echoed=_echoed(request, messages),
        choices=_choices(request),
        context=_context_texts(request, repeated),
        notes=tuple(dict.fromkeys(notes)),
    )


def exchange_of(request: Request, rules: EvidenceRules, limits: Limits = _DEFAULTS) -> Exchange:
    """Return the request with its evidence taken out of its texts, as ``rules`` say.

    Raises:
        BodyTooLargeError: There is more evidence than ``limits`` allow.
        StoppedError: Nobody waits for it any more.
    """
    messages = request.messages
    if len(messages) == 1 and not messages[0].documents:
        # A prompt may be written in the marks of a model's chat template by hand.
        messages = messages_of(messages[0].text) if speaker_of(messages[0].role) is Speaker.USER else messages
    continued = request.endpoint is Endpoint.COMPLETIONS and messages == request.messages
    evidence = take_evidence(messages, request.documents, rules, limits, continued=continued)
    return Exchange(
        endpoint=request.endpoint,
        model=request.model,
        query=evidence.query,
        passages=evidence.passages,
        messages=messages,
        stream=request.stream,
        structured=request.structured,
        echoed=request.echoed,
        choices=request.choices,
        notes=(*request.notes, *evidence.notes),
        left=evidence.left,
        unchecked=evidence.unchecked,
    )


class LazyRequest:
    """The request half of an exchange, searched for evidence by ``read`` while the model is at work.

    Args:
        request: with its texts.
        rules: what counts as evidence.
        limits: bounds on it.
        size: bytes of the request.
        scope: what the operator says the exchange is about.
    """

    def __init__(
        self,
        request: Request,
        rules: EvidenceRules,
        limits: Limits = _DEFAULTS,
        *,
        size: int,
        scope: Mapping[str, str] = _NO_SCOPE,
    ) -> None:
        self.size = size
        self._scope = scope
        self._unread: tuple[Request, EvidenceRules, Limits] | None = (request, rules, limits)
        self._exchange: Exchange | None = None

    def read(self) -> None:
        """Search the texts, off the event loop where they are long.

        Raises:
            BodyTooLargeError: there is more evidence than the limits allow.
            StoppedError: the result is no longer needed.
        """
        unread = self._unread
        if unread is not None:
            self._exchange = replace(exchange_of(*unread), scope=self._scope)
            self._unread = None

    def give_up(self) -> None:
        """Release the texts: they will not be searched, and there is no exchange."""
        self._unread = None

    @property
    def exchange(self) -> Exchange | None:
        """Query and passages; ``None`` where the texts were not searched (yet)."""
        return self._exchange


def set_model(body: bytes, model: str) -> bytes:
    """Return ``body`` with its ``model`` replaced, or added; every other character stays.

    Raises:
        DialectError: The body is no text or not a JSON object.
    """
    text, encoding = _decode(body)
    value = json_edit.dump(model)
    if "model" in json_edit.load_object(text):
        text = json_edit.edit_object(text, lambda key, raw: value if key == "model" else raw)
    else:
        text = json_edit.append_member(text, "model", value)
    return text.encode(encoding, "surrogatepass")


def _decode(body: bytes) -> tuple[str, str]:
    """Decode a request's JSON and find its encoding as Python's backends do.

    It is UTF-8, UTF-16 or UTF-32, with or without a mark.

    Raises:
        DialectError: It is none of these.
    """
    encoding = json.detect_encoding(body)
    try:
        return body.decode(encoding, "surrogatepass"), encoding
    except UnicodeDecodeError as error:
        raise DialectError(f"body is not {encoding} (byte {error.start}); expected JSON in UTF-8") from None


def _chat_messages(request: Mapping[str, object], notes: list[str]) -> tuple[Message, ...]:
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        raise DialectError(
            f"messages is {json_edit.describe(messages)}; expected a list of at least one message"
        )
    return tuple(_message(message, f"messages[{index}]", notes) for index, message in enumerate(messages))


def _message(message: object, where: str, notes: list[str]) -> Message:
    if not isinstance(message, dict):
        raise DialectError(f"{where} is {json_edit.describe(message)}; expected an object")
    role, text = message.get("role"), request_text(message.get("content"))
    role = json_edit.show(role) if isinstance(role, str) else None
    speaker = speaker_of(role or "")
    if speaker is Speaker.ASSISTANT:
        documents = server_tool_results(message.get("content"))
    else:
        documents = document_parts(message.get("content"), source=speaker is Speaker.SOURCE)
    if (text is None and not documents) or role is None:
        notes.append(MEMBER_IGNORED)
    name = message.get("name")
    return Message(
        role=role or "",
        text=text or "",
        documents=documents,
        name=json_edit.show(name) if isinstance(name, str) else "",
    )


def _prompt_message(request: Mapping[str, object]) -> Message:
    prompt = request.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        held = f"a list of {len(prompt)}" if isinstance(prompt, list) else json_edit.describe(prompt)
        raise DialectError(f"prompt is {held}; expected one string, no token ids")
    return Message(role="user", text=json_edit.show(prompt))


def _documents(request: Mapping[str, object], notes: list[str]) -> list[object]:
    """Return the documents of the request: its own field and the one for vLLM's chat template."""
    found = _document_list(request.get("documents"), notes)
    template = request.get("chat_template_kwargs")
    if isinstance(template, dict):
        found += _document_list(template.get("documents"), notes)
    return found


def _document_list(value: object, notes: list[str]) -> list[object]:
    if value is None:
        return []
    entries = value if isinstance(value, list) else [value]
    documents: list[object] = [entry for entry in entries if isinstance(entry, str | dict)]
    if len(documents) < len(entries):
        notes.append(MEMBER_IGNORED)
    return documents


def _is_structured(request: Mapping[str, object]) -> bool:
    response_format = request.get("response_format")
    if isinstance(response_format, dict) and response_format.get("type") not in (None, "text"):
        return True
    return any(request.get(name) not in (None, "", False, {}, []) for name in _FORMAT_FIELDS)


def _choices(request: Mapping[str, object]) -> int:
    n = request.get("n")
    # Servers take a number that is written as text or with a fraction of 0, too.
    if isinstance(n, str) and n.strip().isdecimal() and len(n) < 10:
        return max(1, int(n))
    if isinstance(n, int | float) and not isinstance(n, bool) and 1 <= n < 1e9:
        return int(n)
    return 1


def _echoed(request: Mapping[str, object], messages: tuple[Message, ...]) -> str:
    """Return the text that the backend repeats before the answer, if the request asks for that."""
    if request.get("echo") is not True:
        return ""
    if "prompt" in request:
        return messages[-1].text
    # vLLM's chat API repeats the last message only where the answer continues it.
    return messages[-1].text if messages[-1].role == "assistant" else ""


def _context_texts(
    request: Mapping[str, object], repeated: Sequence[tuple[str, object]] = ()
) -> tuple[str, ...]:
    """Return the texts of a request's JSON without plain user messages, a prompt, its tools and its settings.

    Only for choosing a plan. What of it is evidence is for ``evidence``.

    User messages in parts are among them, for parts of unknown kinds are in no message's text. So are the plain ones
    of ``repeated`` members: a backend whose parser takes the first of two reads the question there.
    """
    replaced = [value for key, value in repeated if key not in _SETTINGS | _NO_TEXT]
    rest = {key: value for key, value in request.items() if key not in _SETTINGS and key != "prompt"}
    messages = rest.pop("messages", None)
    if not isinstance(messages, list):
        return tuple(_texts([rest, replaced]))
    joined = ["".join(parts) for message in messages if len(parts := _parts(message)) > 1]
    return tuple(_texts([rest, [_without_plain_text(message) for message in messages], joined, replaced]))


def _parts(message: object) -> list[str]:
    """Return the texts of a message in parts, which a backend's template may join without a sign between: a word may go on in the next."""
    content = message.get("content") if isinstance(message, dict) else None
    texts = (
        part.get("text") if isinstance(part, dict) else part
        for part in (content if isinstance(content, list) else ())
    )
    return [text for text in texts if isinstance(text, str)]


def _without_plain_text(message: object) -> object:
    if (
        not isinstance(message, dict)
        or not isinstance(message.get("role"), str)
        or not _is_users(message["role"])
        or not isinstance(message.get("content"), str)
    ):
        return message
    return {key: value for key, value in message.items() if key != "content"}


def _texts(value: object) -> Iterator[str]:
    """Yield every string in ``value`` that may be a text, in order.

    It keeps its own stack, as JSON may be deep.
    """
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            if value and not _DATA_URL.match(value):
                yield value
        elif isinstance(value, dict):
            stack += [item for key, item in reversed(value.items()) if key not in _NO_TEXT]
        elif isinstance(value, list):
            stack += reversed(value)
