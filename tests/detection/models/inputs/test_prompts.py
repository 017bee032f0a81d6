"""Tests of ``truthlens.detection.models.inputs.prompts``: every wording byte for byte."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from tokenizers import Tokenizer, decoders, pre_tokenizers, processors
from tokenizers.models import BPE

from truthlens.detection.models.inputs.lettucedetect_prompts import BY_LANGUAGE
from truthlens.detection.models.inputs.manifest import InputFormat
from truthlens.detection.models.inputs.prompts import TEMPLATES, TemplateName, build_prompt, task_of
from truthlens.detection.models.inputs.windows import build_windows

BUSINESS = json.dumps({"name": "Corner Bakery", "stars": 4.5, "parking": {"street": True, "lot": None}})


def text(name: TemplateName, query: str, *passages: str) -> str:
    """The whole prompt."""
    return build_prompt(name, query=query, passages=passages).text(passages)


@pytest.mark.parametrize("name", ["lettucedetect-v1", "lettucedetect-qa"])
def test_question_prompt_is_the_training_wording(name: TemplateName) -> None:
    """Question, count in words, labels without a space, blank lines, refusal sentence: byte for byte."""
    assert text(name, "why is it blue", "One.", "Two.", "Three.") == (
        "Briefly answer the following question:\nwhy is it blue\nBear in mind that your response should be strictly "
        "based on the following three passages:\npassage 1:One.\n\npassage 2:Two.\n\npassage 3:Three.\n\nIn case the "
        'passages do not contain the necessary information to answer the question, please reply with: "Unable to '
        'answer based on given passages."\noutput:'
    )


@pytest.mark.parametrize("name", ["lettucedetect-v1", "lettucedetect-qa", "lettucedetect-summary"])
def test_without_a_query_it_is_the_summary_wording(name: TemplateName) -> None:
    """No question: the summary prompt, asked for at a quarter of the article's words."""
    article = "word " * 40
    assert text(name, " ", article) == f"Summarize the following news within 10 words:\n{article}\noutput:"


@pytest.mark.parametrize(("words", "asked"), [(1, 1), (799, 199), (2000, 200)])
def test_summaries_are_asked_for_at_a_quarter_and_at_most_200_words(words: int, asked: int) -> None:
    """The length in the prompt follows the article as it did in training."""
    assert f"within {asked} words" in text("lettucedetect-summary", "", "word " * words)


def test_data_is_written_as_python_writes_it() -> None:
    """Data-to-text: the instruction, then the object with single quotes, True and None, then "Overview:"."""
    prompt = text("lettucedetect-v1", "", BUSINESS)
    assert prompt == (
        "Instruction:\nWrite an objective overview about the following local business based only on the provided "
        "structured data in the JSON format. You should include details and cover the information mentioned in the "
        "customers' review. The overview should be 100 - 200 words. Don't make up information. Structured data:\n"
        "{'name': 'Corner Bakery', 'stars': 4.5, 'parking': {'street': True, 'lot': None}}\nOverview:"
    )


def test_many_passages_are_counted_in_digits() -> None:
    """Above ten the count is a figure."""
    assert "following 12 passages:" in text("lettucedetect-qa", "q", *["p"] * 12)


@pytest.mark.parametrize(
    ("query", "passages", "task"),
    [
        ("When does it open?", ["It opens at nine."], "question"),
        ("opening hours", ["It opens at nine."], "question"),
        ("", ["It opens at nine."], "summary"),
        ("Please summarise the notes below in two lines", ["It opens at nine."], "summary"),
        ("Could you write a short summary of this?", ["It opens at nine."], "summary"),
        ("TL;DR", ["It opens at nine."], "summary"),
        ("Who wrote the summary of the book?", ["It opens at nine."], "question"),
        ("Describe this place", [BUSINESS], "data"),
        ("Is there parking?", [BUSINESS], "question"),
        ("Describe this place", [BUSINESS, "It opens at nine."], "question"),
        ("", ["{not json"], "summary"),
        ("", ["[1, 2]"], "summary"),
    ],
)
def test_the_task_is_read_off_the_exchange(
    query: str, passages: list[str], task: Literal["question", "summary", "data"]
) -> None:
    """Objects and no question: data; a plain wish for a summary, or nothing asked: summary; else a question."""
    assert task_of(query, passages) == task


def test_a_forced_wording_does_not_look_at_the_exchange() -> None:
    """-data frames plain text as data, -summary ignores a question."""
    assert text("lettucedetect-data", "Why?", "Plain.").endswith("Structured data:\nPlain.\nOverview:")
    assert text("lettucedetect-summary", "Why?", "Plain.").startswith(
        "Summarize the following news within 1 words"
    )


def test_the_second_version_puts_the_request_first() -> None:
    """v2: the request, a blank line, the passages; nothing after the last one, and no frame without a request."""
    assert text("lettucedetect-v2", "Why?", "One.", "Two.") == "User request: Why?\n\nOne.\n\nTwo."
    assert text("lettucedetect-v2", "", "One.") == "One."


def test_every_template_has_a_prompt_around_every_passage() -> None:
    """No name is without wording, and no wording loses or doubles a passage."""
    passages = ("Alpha.", "Beta.", "Gamma.")
    for name in TEMPLATES:
        for query in ("Which?", ""):
            prompt = text(name, query, *passages)
            assert [prompt.count(passage) for passage in passages] == [1, 1, 1]
            assert (query in prompt) or name in {"lettucedetect-summary", "lettucedetect-data"}


@pytest.mark.parametrize("language", sorted(BY_LANGUAGE))
def test_wordings_by_language_are_those_of_the_package(language: str) -> None:
    """With a question and without, the prompt is what lettucedetect's own predict() builds."""
    utilities = pytest.importorskip(
        "lettucedetect.detectors.prompt_utils",
        reason="needs lettucedetect: pip install --no-deps lettucedetect (what `make setup-test` does)",
    ).PromptUtils
    passages = ["The ferry leaves at nine.", "It costs 4 euros."]
    name: TemplateName = f"lettucedetect-{language}"  # type: ignore[assignment]
    assert text(name, "When?", *passages) == utilities.format_context(passages, "When?", language)
    assert text(name, "", *passages) == utilities.format_context(passages, None, language)


@pytest.mark.parametrize("name", TEMPLATES)
def test_windows_hold_the_prompt_byte_for_byte(name: TemplateName) -> None:
    """Whatever the manifest's template, segment A of a window in which all fits is exactly its prompt."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["[PAD]", "[CLS]", "[SEP]", *alphabet])}
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    fmt = InputFormat(max_tokens=2048, template=name, answer_tokens=64, answer_overlap=8)
    for query, passages in (("When?", ["The ferry leaves at nine.", "It costs 4 euros."]), ("", [BUSINESS])):
        built = build_windows(tokenizer, fmt, query=query, passages=passages, answer="At nine.")
        (window,) = built.windows
        read = tokenizer.decode(window.input_ids[1 : window.answer.start - 1].tolist())
        assert read == text(name, query, *passages)
