"""Answers with text where clients may look for it, in JSON and in streams out of the same forms."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_CALL = {"id": "call-1", "index": 0, "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
_HEAD = {"id": "c-1", "created": 1700000000, "model": "scripted-model"}


@dataclass(frozen=True)
class Form:
    """Members of a message or a delta, of the choice around it, and of the body around that."""

    message: Mapping[str, Any] = field(default_factory=dict)
    choice: Mapping[str, Any] = field(default_factory=dict)
    top: Mapping[str, Any] = field(default_factory=dict)

    def said(self) -> dict[str, Any]:
        return {"role": "assistant", **self.message}

    def body(self) -> dict[str, Any]:
        """A response in one piece."""
        choice = {"index": 0, "message": self.said(), "finish_reason": "stop", **self.choice}
        return {**_HEAD, "object": "chat.completion", "choices": [choice], **self.top}

    def frames(self) -> list[bytes]:
        """A stream that says the same in one chunk between its first and its last."""
        middle = {"index": 0, "delta": dict(self.message), "finish_reason": None, **self.choice}
        last = {"index": 0, "delta": {}, "finish_reason": "stop"}
        first = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        return [_frame(first), _frame(middle, **self.top), _frame(last), b"data: [DONE]\n\n"]


_IN_CHOICE = ("finish_reason", "stop_reason", "matched_stop", "logprobs", "token_ids", "native_finish_reason")
_IN_RESPONSE = (
    "usage",
    "timings",
    "system_fingerprint",
    "service_tier",
    "provider",
    "object",
    "url",
    "prompt",
)


def alone(text: str) -> dict[str, Form]:
    """By name, forms in which ``text`` is all that there is to show."""
    return {
        "content": Form({"content": text}),
        "beside a tool call": Form({"content": text, "tool_calls": [_CALL]}),
        "beside an empty tool call": Form({"content": text, "tool_calls": [{}]}),
        "beside a function call": Form({"content": text, "function_call": {"name": "f", "arguments": "{}"}}),
        "refusal": Form({"content": None, "refusal": text}),
        "refusal part": Form({"content": [{"type": "refusal", "refusal": text}]}),
        "transcript": Form({"content": None, "audio": {"id": "a", "data": "AAAA", "transcript": text}}),
        "text object": Form({"content": [{"type": "text", "text": {"value": text, "annotations": []}}]}),
        "capital type": Form({"content": [{"type": "Text", "text": text}]}),
        "null type": Form({"content": [{"type": None, "text": text}]}),
        "odd type": Form({"content": [{"type": ["text"], "text": text}]}),
        "several parts": Form({"content": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": text}]}),
        "unknown part": Form({"content": [{"type": "markdown", "markdown": text}]}),
        "unknown part in depth": Form({"content": [{"type": "block", "children": [{"leaf": [text]}]}]}),
        "output part": Form({"content": [{"type": "output_json", "output": text}]}),
        "message text": Form({"content": None, "text": text}),
        "output_text": Form({"content": "", "output_text": text}),
        "generated_text": Form({"generated_text": text}),
        "output": Form({"output": [{"type": "output_text", "text": text}]}),
        "choice text": Form({"content": None}, {"text": text}),
        "choice content": Form({}, {"content": text}),
        "choice delta": Form({"content": None}, {"message": {"content": text}}),
        "unknown member": Form({"content": None, "remark": text}),
        "unknown members in depth": Form({"content": None, "x": {"y": [{"z": text}]}}),
        "unknown choice member": Form({"content": None}, {"note": {"said": text}}),
        "beside the choices": Form({"content": None}, top={"output_text": text}),
        "beside the choices, unknown": Form({"content": None}, top={"remark": {"said": [text]}}),
        "beside empty choices": Form(top={"choices": [], "text": text}),
        "beside empty choices, unknown": Form(top={"choices": [], "remark": {"said": text}}),
        "reasoning_content": Form({"content": None, "reasoning_content": text}),
        "reasoning": Form({"content": "", "reasoning": text}),
        "reasoning part": Form({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}),
        "reasoning in the content": Form({"content": f"<think>\n{text}\n</think>\n\n"}),
        "reasoning without an end": Form({"content": f"<think>\n{text}"}),
    }  # fmt: skip


def beside(text: str, answer: str) -> dict[str, Form]:
    """By name, forms in which ``text`` stands beside an answer in its own place."""
    part = {"type": "text", "text": answer}
    kinds = ("markdown", "Text", None, "refusal", "output_json")
    return {
        **{f"part of type {kind}": Form({"content": [part, {"type": kind, "text": text}]}) for kind in kinds},
        **{f"part with {name}": Form({"content": [part, {"type": "x", name: text}]}) for name in ("markdown", "json", "refusal")},
        "text object": Form({"content": [part, {"type": "text", "text": {"value": text}}]}),
        "member of a text part": Form({"content": [{**part, "annotations": [{"type": "note", "note": text}]}]}),
        "part of another kind": Form({"content": [part, [text]]}),
        "refusal": Form({"content": answer, "refusal": text}),
        "transcript": Form({"content": answer, "audio": {"id": "a", "transcript": text}}),
        "message text": Form({"content": answer, "text": text}),
        "choice text": Form({"content": answer}, {"text": text}),
        "choice output": Form({"content": answer}, {"output": {"value": text}}),
        "unknown member": Form({"content": answer, "remark": text}),
        "unknown choice member": Form({"content": answer}, {"remark": [text]}),
        "beside the choices": Form({"content": answer}, top={"content": text}),
        "beside the choices, unknown": Form({"content": answer}, top={"debug": {"said": text}}),
        "an error beside the choices": Form({"content": answer}, top={"error": text}),
        "a name": Form({"content": answer, "seen": {text: True}}),
        **{f"{name} of the message": Form({"content": answer, name: text}) for name in ("type", "name", "id", "title", "model")},
        **{f"{name} of the choice": Form({"content": answer}, {name: text}) for name in _IN_CHOICE},
        **{f"{name} of the choice, within": Form({"content": answer}, {name: {"text": [text]}}) for name in _IN_CHOICE},
        **{f"{name} of the response": Form({"content": answer}, top={name: text}) for name in _IN_RESPONSE},
        **{f"{name} of the response, within": Form({"content": answer}, top={name: {"text": text}}) for name in _IN_RESPONSE},
        "tokens": Form({"content": answer}, {"logprobs": {"content": [{"token": text, "logprob": 0}]}}),
        "calls that are a text": Form({"content": answer, "tool_calls": text}),
        "a call that is a text": Form({"content": answer, "tool_calls": [text]}),
        "a call of type text": Form({"content": answer, "tool_calls": [{"type": "text", "text": text}]}),
        "text of a call": Form({"content": answer, "tool_calls": [{**_CALL, "text": text}]}),
        "name of a call": Form({"content": answer, "tool_calls": [{"function": {"name": text, "arguments": "{}"}}]}),
        "text of a function call": Form({"content": answer, "function_call": {"name": "f", "arguments": "{}", "text": text}}),
        "title of a source": Form({"content": answer, "annotations": [{"url": "https://a.b/c", "title": text}]}),
    }  # fmt: skip


def harmless(answer: str) -> dict[str, Form]:
    """By name, forms that say nothing but ``answer``, with what servers write beside it."""
    return {
        "null members": Form({"content": answer, "refusal": None, "tool_calls": [], "audio": None, "annotations": []}),
        "bookkeeping": Form(
            {"content": answer, "annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.b/c d", "title": "A long title"}}]},
            {"stop_reason": "\nUser says", "token_ids": [1, 2], "logprobs": None, "matched_stop": 2},
            {"system_fingerprint": "fp 1", "provider": "Some Provider", "usage": {"total_tokens": 3}, "service_tier": "default",
             "timings": {"ms": 1.5}, "x_unknown": {"id": "a-b", "when": "2025-01-01T10:00:00Z", "flag": True}},
        ),
        "sources": Form(
            {"content": answer, "annotations": [{"type": "url_citation", "url_citation": {
                "url": "https://example.com/how-to-get-there-by-boat", "title": "How to get there by boat, and when to go - Example Times",
                "start_index": 0, "end_index": 9}}]},
            top={"citations": ["https://example.com/a-b-c-d-e-f-g"], "model": "accounts/fireworks/models/llama-v3p1-405b-instruct"},
        ),
        "log probabilities": Form({"content": answer}, {"logprobs": {"content": [
            {"token": token, "logprob": -0.1, "bytes": list(token.encode()), "top_logprobs": [{"token": token, "logprob": -0.1}]}
            for token in re.findall(r"\s*\S+", answer)]}}),
        "copies": Form({"content": answer, "text": answer, "audio": {"transcript": answer}}, {"text": answer}, {"output_text": answer}),
        "a sentence once more": Form({"content": answer, "segments": [{"said": answer.partition(". ")[0].rstrip(".") + "."}]}),
    }  # fmt: skip


def _frame(choice: Mapping[str, Any], **top: Any) -> bytes:
    body = {**_HEAD, "object": "chat.completion.chunk", "choices": [choice], **top}
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n".encode()
