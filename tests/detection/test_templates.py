"""Tests of ``truthlens.detection.templates``."""

from __future__ import annotations

from truthlens.detection.templates import lettucedetect_prompt


def test_question_prompt_is_the_training_wording() -> None:
    """Question, count in words, labels without a space, blank lines, refusal sentence: byte for byte."""
    prompt = lettucedetect_prompt(query="why is it blue", passages=3, answer_words=5)
    assert prompt.text(["One.", "Two.", "Three."]) == (
        "Briefly answer the following question:\nwhy is it blue\nBear in mind that your response should be strictly "
        "based on the following three passages:\npassage 1:One.\n\npassage 2:Two.\n\npassage 3:Three.\n\nIn case the "
        'passages do not contain the necessary information to answer the question, please reply with: "Unable to '
        'answer based on given passages."\noutput:'
    )


def test_without_a_query_it_is_the_summary_wording() -> None:
    """No question: the summary prompt, with the answer's length in words."""
    prompt = lettucedetect_prompt(query=" ", passages=1, answer_words=40)
    assert prompt.text(["News."]) == "Summarize the following news within 40 words:\nNews.\noutput:"


def test_many_passages_are_counted_in_digits() -> None:
    """Above ten the count is a figure."""
    assert "following 12 passages:" in lettucedetect_prompt(query="q", passages=12, answer_words=1).head
