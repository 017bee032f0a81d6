"""Frames of several servers that say a sentence in their answer, and again somewhere else."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from truthlens.core.records.enums import Endpoint

TOKENS = {"ids": [791, 13018, 9244, 12486, 7194, 220, 2075, 11441, 13, 1115, 374, 264]}
Copy = Callable[[str], tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]
"""The members beside ``choices``, beside ``delta`` or ``text``, and beside ``content``, that repeat a text."""


def _logprobs(text: str) -> dict[str, Any]:
    return {"content": [{"token": token, "logprob": -0.1} for token in re.findall(r"\s*\S+", text)]}


COPIES: dict[str, Copy] = {
    "vLLM token ids": lambda _text: ({}, {"token_ids": TOKENS["ids"]}, {}),
    "vLLM prompt token ids": lambda _text: ({"prompt_token_ids": TOKENS["ids"]}, {}, {}),
    "token ids of an unknown name": lambda _text: ({}, {"ids": TOKENS["ids"]}, {}),
    "text beside": lambda text: ({}, {"text": text}, {}),
    "message beside": lambda text: ({}, {"message": {"role": "assistant", "content": text}}, {}),
    "log probabilities": lambda text: ({}, {"logprobs": _logprobs(text)}, {}),
    "log probabilities within": lambda text: ({}, {}, {"logprobs": _logprobs(text)}),
    "text within": lambda text: ({}, {}, {"text": text}),
    "reasoning content": lambda text: ({}, {}, {"reasoning_content": text}),
    "reasoning": lambda text: ({}, {}, {"reasoning": text}),
    "reasoning details": lambda text: (
        {},
        {},
        {"reasoning_details": [{"type": "reasoning.text", "text": text}]},
    ),
    "refusal": lambda text: ({}, {}, {"refusal": text}),
    "audio": lambda text: ({}, {}, {"audio": {"id": "a-1", "transcript": text}}),
    "annotations": lambda text: (
        {},
        {},
        {"annotations": [{"type": "url_citation", "url_citation": {"title": text}}]},
    ),
    "content above": lambda text: ({"content": text}, {}, {}),
    "llama.cpp verbose": lambda text: ({"__verbose": {"content": text, "tokens": TOKENS["ids"]}}, {}, {}),
    "TGI token": lambda text: ({"token": {"id": 1, "text": text}, "generated_text": text}, {}, {}),
    "LiteLLM": lambda text: ({"provider_specific_fields": {"raw": {"body": text}}}, {}, {}),
    "usage": lambda text: ({"usage": {"total_tokens": 9, "note": text}}, {}, {}),
    "a name as text": lambda text: ({"debug": {text: 1}}, {}, {}),
    "words one by one": lambda text: ({}, {"pieces": text.split()}, {}),
    "deep within": lambda text: ({"debug": [{"a": {"b": [text]}}]}, {}, {}),
}
# Read as answers themselves, so that they are scored and not only taken away; nothing is pasted beside them.
SPOKEN = ("refusal", "audio")
BOOKKEEPING: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "OpenAI": (
        {"system_fingerprint": "fp_44709d6fcb", "service_tier": "default", "obfuscation": "aB3x"},
        {},
        {},
    ),
    "Azure": (
        {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]},
        {
            "content_filter_results": {
                "hate": {"filtered": False, "severity": "safe"},
                "violence": {"filtered": False, "severity": "safe"},
            }
        },
        {},
    ),
    "vLLM": (
        {"prompt_token_ids": None},
        {"stop_reason": None, "token_ids": None},
        {"reasoning_content": None},
    ),
    "vLLM disaggregated": ({"kv_transfer_params": {"do_remote_prefill": True, "remote_port": 5557}}, {}, {}),
    "llama.cpp": ({"timings": {"predicted_n": 12, "predicted_ms": 101.5}}, {}, {}),
    "SGLang": ({}, {"matched_stop": 128009}, {}),
    "OpenRouter": ({"provider": "Amazon Bedrock"}, {"native_finish_reason": "end_turn"}, {}),
    "Mistral": ({"p": "abcdefgh"}, {}, {}),
    "Groq": ({"x_groq": {"id": "req_01jb", "usage": {"queue_time": 0.1}}}, {}, {}),
    "Perplexity": (
        {
            "citations": [f"https://example.com/{place}" for place in range(9)],
            "search_results": [{"title": "Bank fees", "url": "https://example.com", "date": "2026-01-02"}],
        },
        {},
        {},
    ),
    "tool calls": (
        {},
        {},
        {
            "tool_calls": [
                {"index": 0, "function": {"name": "f", "arguments": '{"a": "one two three four five"}'}}
            ]
        },
    ),
    "Dynamo": ({"nvext": {"worker": 1}}, {}, {}),
}


def choice_of(
    text: str, beside: dict[str, Any], within: dict[str, Any], endpoint: Endpoint, **more: Any
) -> dict[str, Any]:
    """A choice of a chunk that adds ``text``."""
    own: dict[str, Any] = (
        {"text": text} if endpoint is Endpoint.COMPLETIONS else {"delta": {"content": text} | within}
    )
    return {
        "index": 0,
        **own,
        "finish_reason": None,
        **{key: each for key, each in beside.items() if key not in own},
        **more,
    }


def tells(raw: bytes, text: str) -> bool:
    """Whether six words in a row of ``text`` stand in ``raw``, as written or behind escapes, or its token ids do."""
    shown = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), raw.decode())
    words, said = re.findall(r"\w+", text.lower()), " ".join(re.findall(r"\w+", shown.lower()))
    runs = (" ".join(words[start : start + 6]) for start in range(max(1, len(words) - 5)))
    return any(run in said for run in runs) or " ".join(map(str, TOKENS["ids"][:6])) in said
