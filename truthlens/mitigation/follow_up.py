"""Build the bodies of the extra calls from the client's own request.

The client's request is never changed: a new object shares what stays and holds what differs. To the model
that answered, fields that are not known here go again, for its backend took them once. To any other model,
which may be somebody else's, goes only what asks the question: no keys, no names of users, no data sources,
nothing that is bound to one tokenizer or server. Who is asked, and with which key, is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from truthlens.core.records.enums import Endpoint
from truthlens.mitigation.interfaces import Task

# Of the transport or of the number of answers: an extra call wants one answer, whole, without
# log-probabilities. The client of the calls sets the model. A request id, a stored completion and a
# transferred cache belong to the first call.
_OF_THE_FIRST_CALL = frozenset(
    {
        "model",
        "stream",
        "stream_options",
        "n",
        "best_of",
        "logprobs",
        "top_logprobs",
        "prompt_logprobs",
        "echo",
        "store",
        "metadata",
        "background",
        "request_id",
        "kv_transfer_params",
        "tool_choice",
        "function_call",
        "modalities",
        "audio",
    }
)
# What another model is told of a request, besides its messages or prompt and its tools.
_OF_THE_QUESTION = frozenset(
    {
        "documents",
        "temperature",
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "stop",
        "seed",
        "frequency_penalty",
        "presence_penalty",
        "response_format",
    }
)
_OF_A_MESSAGE = frozenset(
    {"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal"}
)
# Of the place at which the first answer stood: a rewrite neither fills a gap nor goes on with a message, and
# it was not predicted. ``stop`` stays: it is part of what the client calls an answer (one line, one item),
# and a rewrite that runs into it ends where the first answer would have ended.
_OF_THE_FIRST_ANSWER = frozenset({"suffix", "prediction", "continue_final_message", "add_generation_prompt"})
# The correction prompt holds the question and the evidence: sent as well, the conversation would say all of
# it twice.
_OF_THE_CONVERSATION = frozenset(
    {
        "messages",
        "prompt",
        "documents",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "functions",
        "function_call",
        "web_search_options",
        "data_sources",
    }
)
_MOST_INSTRUCTION_CHARS = 4000
_TELLING_CHARS = 60


def follow_up(task: Task, *, prompt: str, own: bool = True) -> dict[str, object]:
    """Return the body that asks ``prompt`` as the client asked, with what the correction needs.

    Sampling, ``response_format`` and its like, stop sequences, token limits and the seed stay, and so do the
    client's instructions (system and developer messages that hold no evidence). The conversation, documents
    and tools do not: the prompt holds the question, the evidence and the answer.

    Args:
        task: its request is the client's.
        prompt: what is asked.
        own: whether the model that answered is asked; another one gets less, see ``same_request``.
    """
    endpoint = task.exchange.endpoint
    whole = _again(task.request, endpoint) if own else same_request(task.request, endpoint)
    left_out = _OF_THE_FIRST_ANSWER | _OF_THE_CONVERSATION
    body = {name: value for name, value in whole.items() if name not in left_out}
    extra = body.get("chat_template_kwargs")
    if isinstance(extra, Mapping):
        body["chat_template_kwargs"] = {name: extra[name] for name in extra if name not in left_out}
    if endpoint is Endpoint.COMPLETIONS:
        return {**body, "prompt": f"{prompt}\n"}
    return {**body, "messages": [*_instructions(task, whole), {"role": "user", "content": prompt}]}


def _instructions(task: Task, whole: Mapping[str, object]) -> list[object]:
    """Return the client's short system and developer messages without evidence: how to answer."""
    messages = whole.get("messages")
    telling = [
        " ".join(passage.text[: 4 * _TELLING_CHARS].split())[:_TELLING_CHARS]
        for passage in task.exchange.passages
    ]
    found: list[object] = []
    for message in messages if isinstance(messages, list) else []:
        content = message.get("content") if isinstance(message, Mapping) else None
        if (
            isinstance(content, str)
            and message.get("role") in ("system", "developer")
            and len(content) <= _MOST_INSTRUCTION_CHARS
        ):
            flat = " ".join(content.split())
            if not any(each and each in flat for each in telling):
                found.append(message)
    return found


def same_request(request: Mapping[str, object], endpoint: Endpoint) -> dict[str, object]:
    """Return the client's request for another model: no tool calls, no fields of the client's own.

    What goes along is a list of known fields: of the request, of its messages and of its tools, of which only
    functions do.

    Args:
        request: the client's JSON request.
        endpoint: the API that it is of.
    """
    body = {name: value for name, value in request.items() if name in _OF_THE_QUESTION}
    if endpoint is Endpoint.COMPLETIONS:
        return body | _picked(request, {"prompt"})
    messages = request.get("messages")
    if isinstance(messages, list):
        body["messages"] = [_message(each) for each in messages if isinstance(each, Mapping)]
    offered = request.get("tools")
    if isinstance(offered, list) and (tools := [each for tool in offered for each in _function(tool)]):
        body["tools"] = tools
    body |= _picked(request, {"functions"})
    return _without_calls(body)


def _again(request: Mapping[str, object], endpoint: Endpoint) -> dict[str, object]:
    """Return the client's request as the model that answered is asked it once more."""
    body = {name: value for name, value in request.items() if name not in _OF_THE_FIRST_CALL}
    return _without_calls(body) if endpoint is Endpoint.CHAT else body


def _without_calls(body: dict[str, object]) -> dict[str, object]:
    """Return ``body`` with the instruction that none of its tools may be called."""
    if body.get("tools"):
        body["tool_choice"] = "none"
    if body.get("functions"):
        body["function_call"] = "none"
    return body


def _message(message: Mapping[str, object]) -> dict[str, object]:
    kept = _picked(message, _OF_A_MESSAGE)
    calls = kept.get("tool_calls")
    if isinstance(calls, list):
        kept["tool_calls"] = [
            _picked(call, {"id", "type", "function"}) for call in calls if isinstance(call, Mapping)
        ]
    return kept


def _function(tool: object) -> Iterable[dict[str, object]]:
    """Yield a tool of type function; nothing of a server-run one, which may name the server and its key."""
    if isinstance(tool, Mapping) and tool.get("type") == "function":
        yield _picked(tool, {"type", "function"})


def _picked(fields: Mapping[str, object], names: Iterable[str]) -> dict[str, object]:
    return {name: fields[name] for name in fields if name in names}
