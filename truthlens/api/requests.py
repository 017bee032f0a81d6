"""The OpenAI chat and completions APIs: requests as ``Exchange`` records.

Deliberately not here: how answers are read and rewritten (``responses``), finding evidence in text
(``extract``), streams.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from truthlens.api import json_edit
from truthlens.api.answer_citations import ANSWER_CITATIONS
from truthlens.api.content import document_parts, request_text
from truthlens.api.evidence.chat_template import messages_of
from truthlens.api.evidence.extract import take_evidence
from truthlens.api.evidence.roles import Speaker, speaker_of
from truthlens.api.request_context import context_texts
from truthlens.core.errors import DialectError
from truthlens.core.limits import Limits, check
from truthlens.core.records.enums import Endpoint
from truthlens.core.records.exchange import Exchange, Message
from truthlens.core.records.plan import EvidenceRules

# Fields by which OpenAI, vLLM and other compatible servers constrain the answer to a format that a
# program reads. Forced tool calls are not here: they come back as tool calls, which are never changed.
_FORMAT_FIELDS = (
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "structured_outputs",
    "structural_tag",
    "json_schema",
    "regex",
    "ebnf",
    "grammar",
    "format",
)


MEMBER_IGNORED = "request-member-ignored"
_DEFAULTS = Limits()


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
        return "\n".join(message.text for message in self.messages if is_users(message.role))


def is_users(role: str) -> bool:
    """Return whether a message of this role is the user's: any role that is not known to be another's."""
    return speaker_of(role) is Speaker.USER


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
        context=context_texts(request, repeated),
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
        messages = messages_of(messages[0].text) if is_users(messages[0].role) else messages
    evidence = take_evidence(messages, request.documents, rules, limits)
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
    documents = document_parts(message.get("content"), source=speaker_of(role or "") is Speaker.SOURCE)
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
