"""Prompt wordings that published checkpoints were trained on, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_COUNT_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's fixed parts: ``head``, then per passage its ``label`` and ``gap``, then ``tail``."""

    head: str
    labels: tuple[str, ...]
    gap: str
    tail: str

    def text(self, passages: Sequence[str]) -> str:
        """The whole prompt with ``passages`` (as many as ``labels``) in their places."""
        pairs = zip(self.labels, passages, strict=True)
        return self.head + "".join(label + passage + self.gap for label, passage in pairs) + self.tail


def lettucedetect_prompt(*, query: str, passages: int, answer_words: int) -> Prompt:
    """The prompt of LettuceDetect v1's training data: question answering, or a summary without a query.

    Source: RAGTruth (ParticleMedia), field ``prompt`` of its QA and summary tasks.
    """
    if not query.strip():
        return Prompt(
            head=f"Summarize the following news within {max(answer_words, 1)} words:\n",
            labels=("",) * passages,
            gap="\n",
            tail="output:",
        )
    count = _COUNT_WORDS[passages] if passages < len(_COUNT_WORDS) else str(passages)
    return Prompt(
        head=(
            f"Briefly answer the following question:\n{query}\nBear in mind that your response should be "
            f"strictly based on the following {count} passages:\n"
        ),
        labels=tuple(f"passage {number}:" for number in range(1, passages + 1)),
        gap="\n\n",
        tail=(
            "In case the passages do not contain the necessary information to answer the question, please "
            'reply with: "Unable to answer based on given passages."\noutput:'
        ),
    )
