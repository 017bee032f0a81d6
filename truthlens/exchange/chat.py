"""The OpenAI chat and completions APIs: requests as ``Exchange`` records.

Deliberately not here: how answers are read and rewritten (``response``), finding evidence in text (``evidence``), streams.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from truthlens.core.errors import DialectError
from truthlens.core.limits import Limits, check
from truthlens.core.plan import EvidenceRules
from truthlens.core.records import Endpoint, Exchange, Message
from truthlens.exchange import jsontext
from truthlens.exchange.content import request_text
from truthlens.exchange.evidence import take_evidence

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


_DEFAULTS = Limits()


def endpoint_of(path: str) -> Endpoint | None:
    """The API that a request path belongs to, by its ending; ``None`` for every other path.

    The query string is ignored and any prefix is accepted, so gateways may mount the API where they like.
    """
    route = path.partition("?")[0].partition("#")[0].rstrip("/")
    if route.endswith("/chat/completions"):
        return Endpoint.CHAT
    if route.endswith("/completions"):
        return Endpoint.COMPLETIONS
    return None


@dataclass(frozen=True, slots=True)
class Request:
    """A request as far as it can be read without looking for evidence in its texts; ``documents`` are raw JSON."""

    endpoint: Endpoint
    model: str
    messages: tuple[Message, ...]
    documents: tuple[object, ...]
    stream: bool
    structured: bool
    echoed: str
    choices: int = 1

    @property
    def user_text(self) -> str:
        """The texts of all user messages, one after the other."""
        return "\n".join(message.text for message in self.messages if message.role == "user")


def parse_request(body: bytes, endpoint: Endpoint, rules: EvidenceRules) -> Exchange:
    """The request half of an exchange: ``read_request``, then ``exchange_of``."""
    return exchange_of(read_request(body, endpoint), rules)


def read_request(body: bytes, endpoint: Endpoint, limits: Limits = _DEFAULTS) -> Request:
    """What a request says, its texts not yet searched for evidence.

    A completions request must hold one prompt: with several, or with token ids, an answer cannot be
    attributed to a text, and the exchange is of no dialect that can be checked.

    Args:
        body: Decoded request body.
        endpoint: What ``endpoint_of`` said of the path.
        limits: Bounds on what is read.

    Raises:
        BodyTooLargeError: The body holds more JSON values, or longer messages, than ``limits`` allow.
        DialectError: The body is not UTF-8, not JSON, or not of the API's shape.
    """
    request = jsontext.load_object(jsontext.decode(body), max_values=limits.max_json_values)
    messages = _chat_messages(request) if endpoint is Endpoint.CHAT else (_prompt_message(request),)
    check(sum(len(message.text) for message in messages), limits.max_prompt_chars, key="max_prompt_chars")
    model = request.get("model")
    if model is not None and not isinstance(model, str):
        raise DialectError(f"model is {jsontext.describe(model)}; expected a string")
    return Request(
        endpoint=endpoint,
        model=jsontext.show(model or ""),
        messages=messages,
        documents=tuple(_documents(request)),
        stream=request.get("stream") is True,
        structured=_is_structured(request),
        echoed=_echoed(request, messages),
        choices=_choices(request),
    )


def exchange_of(request: Request, rules: EvidenceRules, limits: Limits = _DEFAULTS) -> Exchange:
    """The request with its evidence taken out of its texts, as ``rules`` say.

    Raises:
        BodyTooLargeError: There is more evidence than ``limits`` allow.
        StoppedError: Nobody waits for it any more.
    """
    evidence = take_evidence(request.messages, request.documents, rules, limits)
    return Exchange(
        endpoint=request.endpoint,
        model=request.model,
        query=evidence.query,
        passages=evidence.passages,
        messages=request.messages,
        stream=request.stream,
        structured=request.structured,
        echoed=request.echoed,
        choices=request.choices,
        notes=evidence.notes,
    )


def set_model(body: bytes, model: str) -> bytes:
    """``body`` with its ``model`` replaced, or added; every other character stays.

    Raises:
        DialectError: The body is not UTF-8 or not a JSON object.
    """
    text = jsontext.decode(body)
    value = jsontext.dump(model)
    if "model" in jsontext.load_object(text):
        text = jsontext.edit_object(text, lambda key, raw: value if key == "model" else raw)
    else:
        text = jsontext.append_member(text, "model", value)
    return text.encode()


def _chat_messages(request: Mapping[str, object]) -> tuple[Message, ...]:
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        raise DialectError(
            f"messages is {jsontext.describe(messages)}; expected a list of at least one message"
        )
    return tuple(_message(message, f"messages[{index}]") for index, message in enumerate(messages))


def _message(message: object, where: str) -> Message:
    if not isinstance(message, dict):
        raise DialectError(f"{where} is {jsontext.describe(message)}; expected an object")
    role = message.get("role")
    if not isinstance(role, str):
        raise DialectError(f"{where}.role is {jsontext.describe(role)}; expected a string")
    return Message(role=jsontext.show(role), text=request_text(message.get("content"), where=where))


def _prompt_message(request: Mapping[str, object]) -> Message:
    prompt = request.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        held = f"a list of {len(prompt)}" if isinstance(prompt, list) else jsontext.describe(prompt)
        raise DialectError(f"prompt is {held}; expected one string, no token ids")
    return Message(role="user", text=jsontext.show(prompt))


def _documents(request: Mapping[str, object]) -> list[object]:
    """Documents of the request: the field of its own and the one for vLLM's chat template."""
    found = _document_list(request.get("documents"), "documents")
    template = request.get("chat_template_kwargs")
    if isinstance(template, dict):
        found += _document_list(template.get("documents"), "chat_template_kwargs.documents")
    return found


def _document_list(value: object, where: str) -> list[object]:
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(item, str | dict) for item in value):
        return list(value)
    raise DialectError(f"{where} is {jsontext.describe(value)}; expected a list of strings or objects")


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
    """Text that the backend repeats before the answer, where the request asks for that."""
    if request.get("echo") is not True:
        return ""
    if "prompt" in request:
        return messages[-1].text
    # vLLM's chat API repeats the last message only where the answer continues it.
    return messages[-1].text if messages[-1].role == "assistant" else ""
