"""Requests of the demo's conversations, as a client would send them, and lines to paste into a shell."""

from __future__ import annotations

import json
import shlex

from truthlens.demo.conversations import BY_NAME, Conversation, PromptLayout

GROUNDED_MODEL = "demo-grounded"
UNGROUNDED_MODEL = "demo-ungrounded"
REWORDED_MODEL = "demo-reworded"
DEFAULT_MODEL = "demo"
MODELS = (DEFAULT_MODEL, GROUNDED_MODEL, REWORDED_MODEL, UNGROUNDED_MODEL)

_LINES = (
    ("an answer that its context supports", "wire-fee", GROUNDED_MODEL),
    (
        "an answer with invented facts: it comes back with a warning, and with the spans that the client asks for",
        "ibuprofen-dose",
        UNGROUNDED_MODEL,
    ),
    ("no context to check against: the headers say unchecked", "no-context", DEFAULT_MODEL),
)
_STREAMED = (
    "the invented answer as a stream: its verdict comes before [DONE]",
    "ibuprofen-dose",
    UNGROUNDED_MODEL,
)


def curl_lines(base_url: str) -> list[tuple[str, str]]:
    """Return four titles, each with a one-line ``curl`` command that shows the response headers.

    Args:
        base_url: Address of the gateway, with or without ``/v1``.
    """
    root = base_url.rstrip("/").removesuffix("/v1")
    lines = []
    for title, name, model in (*_LINES, _STREAMED):
        fields = {"stream": True} if title == _STREAMED[0] else {}
        body = json.dumps(chat_request(BY_NAME[name], model=model, **fields), ensure_ascii=False)
        words = [
            "curl",
            "-sSN" if fields else "-sS",
            "-i",
            f"{root}/v1/chat/completions",
            "-H",
            "content-type: application/json",
            *(("-H", "x-truthlens-details: spans") if model == UNGROUNDED_MODEL else ()),
            "-d",
            body,
        ]
        lines.append((title, shlex.join(words)))
    return lines


def chat_request(
    conversation: Conversation, *, model: str = DEFAULT_MODEL, **fields: object
) -> dict[str, object]:
    """Return the body of a chat request with the conversation's question and passages.

    Args:
        conversation: One of ``CONVERSATIONS``.
        model: Which answer the demo backend gives; one of ``MODELS``.
        fields: Further fields of the request.
    """
    text = "\n\n".join(conversation.passages)
    question = conversation.question
    request: dict[str, object] = {"model": model}
    match conversation.layout:
        case PromptLayout.TAG:
            request["messages"] = [_user(f"<context>\n{text}\n</context>\n\n{question}")]
        case PromptLayout.LABEL:
            request["messages"] = [_user(_labelled(conversation, text))]
        case PromptLayout.NUMBERED:
            sources = "\n".join(
                f"[{number}] {passage}" for number, passage in enumerate(conversation.passages, 1)
            )
            request["messages"] = [_user(f"{sources}\n\nQuestion: {question}")]
        case PromptLayout.SYSTEM:
            told = f"You answer customers. Use the following information to answer.\n\n{text}"
            request["messages"] = [{"role": "system", "content": told}, _user(question)]
        case PromptLayout.DOCUMENTS:
            request["messages"] = [_user(question)]
            request["documents"] = [
                {"title": conversation.name, "text": passage} for passage in conversation.passages
            ]
        case PromptLayout.TOOL:
            request["messages"] = tool_turn(conversation)
        case PromptLayout.NONE:
            request["messages"] = [_user(question)]
    return request | fields


def tool_turn(conversation: Conversation) -> list[dict[str, object]]:
    """Return the messages of a tool conversation after the tool has answered."""
    result = json.dumps(
        {"results": [{"text": passage} for passage in conversation.passages]}, ensure_ascii=False
    )
    return [
        _user(conversation.question),
        {"role": "assistant", "content": None, "tool_calls": [tool_call(conversation)]},
        {"role": "tool", "tool_call_id": "call_demo", "content": result},
    ]


def tool_call(conversation: Conversation) -> dict[str, object]:
    """Return the call that a tool conversation begins with."""
    function = {"name": conversation.tool, "arguments": conversation.arguments}
    return {"id": "call_demo", "type": "function", "function": function}


def _labelled(conversation: Conversation, text: str) -> str:
    if conversation.question.isascii():
        return f"Context:\n{text}\n\nQuestion: {conversation.question}"
    return f"参考资料：\n{text}\n\n问题：{conversation.question}"


def _user(content: str) -> dict[str, object]:
    return {"role": "user", "content": content}
