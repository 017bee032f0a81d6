"""A label, an id or an address is told from a sentence by its shape, whatever its member is called."""

from __future__ import annotations

import pytest

from truthlens.api.members.bookkeeping import NAMES, is_identifier, says_nothing, texts_within

SENTENCE = "The ferry costs nine dollars a day."


@pytest.mark.parametrize("name", [*sorted(NAMES), "token", "remark"])
def test_a_sentence_is_told_under_any_name(name: str) -> None:
    assert texts_within(name, SENTENCE) == [SENTENCE]
    assert texts_within(name, [{"x": [SENTENCE]}, {SENTENCE: 1}]) == [SENTENCE, SENTENCE]


@pytest.mark.parametrize(
    ("name", "text", "beside"),
    [
        ("provider", "Amazon Bedrock", {}),
        ("stop_reason", "\nUser says", {}),
        ("url", "https://a.b/c d", {}),
        ("remark", "https://example.com/the-ferry-costs-nine-dollars-a-day", {}),
        ("model", "Qwen 3 Coder", {}),
        ("remark", "2026-01-02T10:00:00Z", {}),
        ("token", " dollars", {}),
        ("token", "end.", {}),
        ("token", "\u8f6e\u6e21", {}),
        ("title", "How to get to the island by ferry, and when", {"url": "https://a.b/"}),
        ("title", "\u8f6e\u6e21", {}),
    ],
)
def test_labels_ids_and_addresses_say_nothing(name: str, text: str, beside: dict[str, object]) -> None:
    assert says_nothing(name, text, beside)


@pytest.mark.parametrize(
    ("name", "text", "beside"),
    [
        ("remark", "nine dollars", {}),
        ("role", "It costs nine dollars a day", {}),
        ("title", "How to get to the island by ferry", {}),
        ("title", SENTENCE, {"url": "https://a.b/"}),
        ("title", "x " * 25, {"url": "https://a.b/"}),
        ("name", "No, nine.", {}),
        ("token", "nine dollars", {}),
        ("provider", "\u8f6e\u6e21\u7684\u7968\u4ef7\u662f\u4e5d\u7f8e\u5143", {}),
    ],
)
def test_what_is_said_is_not_a_label(name: str, text: str, beside: dict[str, object]) -> None:
    assert not says_nothing(name, text, beside)


@pytest.mark.parametrize(
    ("name", "text"),
    [("id", "chatcmpl-8a7f3c"), ("id", "0b3cd3a5-0e4e-4b5e-9d5e-abcdefabcdef"), ("model", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B"),
     ("model", "accounts/fireworks/models/llama-v3p1-405b-instruct"), ("object", "chat.completion.chunk")],
)  # fmt: skip
def test_ids_and_names_of_models_are_identifiers(name: str, text: str) -> None:
    assert is_identifier(name, text)


@pytest.mark.parametrize(
    "text",
    ["", SENTENCE, SENTENCE.replace(" ", "_"), SENTENCE.replace(" ", "-"), SENTENCE.replace(" ", "%20"), SENTENCE.replace(" ", "."),
     SENTENCE.title().replace(" ", ""), "x" * 129, "a b", "a\nb", "\u8f6e\u6e21"],
)  # fmt: skip
def test_sentences_in_other_spellings_are_not(text: str) -> None:
    assert not is_identifier("id", text)
