"""Prompt wordings that published checkpoints were trained on, byte for byte.

A token classifier learns the wording around the evidence along with the task, so a paraphrase of it costs
accuracy without any error. The names are those of ``input.template`` in a manifest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from truthlens.detection.models.inputs.lettucedetect_prompts import Wording

Task = Literal["question", "summary", "data"]
TemplateName = Literal[
    "lettucedetect-v1",
    "lettucedetect-qa",
    "lettucedetect-summary",
    "lettucedetect-data",
    "lettucedetect-v2",
    "lettucedetect-en",
    "lettucedetect-de",
    "lettucedetect-fr",
    "lettucedetect-es",
    "lettucedetect-it",
    "lettucedetect-pl",
    "lettucedetect-cn",
    "lettucedetect-hu",
]
TEMPLATES: tuple[TemplateName, ...] = get_args(TemplateName)

_COUNT_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
# The training summaries were asked for at a quarter of the article's words, at most this many.
_LONGEST_SUMMARY = 200
_ASKS_FOR_SUMMARY = re.compile(
    r"\s*(?:please\s+|(?:can|could|would)\s+you\s+(?:please\s+)?)?"
    r"(?:summari[sz]e\b|tl;?dr\b|(?:give|write|provide|make)\s+(?:me\s+|us\s+)?(?:an?|the)\s+(?:\w+\s+){0,3}summary\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's fixed parts: ``head``, then per passage its ``label`` and ``gap``, then ``tail``.

    With ``literal`` a passage that is a JSON object appears in the prompt as Python writes it.
    """

    head: str
    labels: tuple[str, ...]
    gap: str
    tail: str
    literal: bool = False

    def text(self, passages: Sequence[str]) -> str:
        """Return the whole prompt with ``passages`` (as many as ``labels``) in their places."""
        shown = [_literal(passage) for passage in passages] if self.literal else passages
        pairs = zip(self.labels, shown, strict=True)
        return self.head + "".join(label + passage + self.gap for label, passage in pairs) + self.tail


def build_prompt(name: TemplateName, *, query: str, passages: Sequence[str]) -> Prompt:
    """Build the prompt of template ``name`` for one exchange.

    ``lettucedetect-v1`` picks among RAGTruth's three wordings by the exchange: data-to-text where every
    passage is a JSON object and nothing is asked, a summary where nothing but that is asked, else question
    answering. ``-qa``, ``-summary`` and ``-data`` force one; without a query ``-qa`` has nothing to ask and
    is a summary.

    Args:
        name: the template.
        query: what the user asked, or ``""``.
        passages: the evidence, in document order.

    Source:
        v1: RAGTruth (ParticleMedia, 2023), field ``prompt`` of its three tasks, on which LettuceDetect v1 and
        TinyLettuce were trained, unchanged. v2: ``format_prompt`` of LettuceDetect 0.2. By language: the
        prompt files of the ``lettucedetect`` package, which its ``predict`` uses.
    """
    if name == "lettucedetect-v2":
        return _request_first(query, len(passages))
    # Only its own checkpoints have any use for them.
    from truthlens.detection.models.inputs.lettucedetect_prompts import BY_LANGUAGE

    wording = BY_LANGUAGE.get(name.removeprefix("lettucedetect-"))
    if wording is not None:
        return _worded(wording, query, len(passages))
    task = _FORCED.get(name) or task_of(query, passages)
    if task == "question" and not query.strip():
        task = "summary"
    match task:
        case "question":
            return _question(query, len(passages))
        case "data":
            return _data(len(passages))
        case _:
            words = min(_LONGEST_SUMMARY, sum(len(passage.split()) for passage in passages) // 4)
            return _summary(len(passages), words=words)


def task_of(query: str, passages: Sequence[str]) -> Task:
    """Return which of RAGTruth's tasks an exchange is nearest to."""
    asks = query.strip()
    summary = not asks or _ASKS_FOR_SUMMARY.match(asks) is not None
    if passages and not asks.endswith("?") and all(_json_object(passage) is not None for passage in passages):
        return "data"
    return "summary" if summary else "question"


def _question(query: str, passages: int) -> Prompt:
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


def _summary(passages: int, *, words: int) -> Prompt:
    return Prompt(
        head=f"Summarize the following news within {max(1, words)} words:\n",
        labels=("",) * passages,
        gap="\n",
        tail="output:",
    )


def _data(passages: int) -> Prompt:
    return Prompt(
        head=(
            "Instruction:\nWrite an objective overview about the following local business based only on the "
            "provided structured data in the JSON format. You should include details and cover the information "
            "mentioned in the customers' review. The overview should be 100 - 200 words. Don't make up "
            "information. Structured data:\n"
        ),
        labels=("",) * passages,
        gap="\n",
        tail="Overview:",
        literal=True,
    )


def _request_first(query: str, passages: int) -> Prompt:
    # Between passages only, so the separator is part of every label but the first.
    labels = tuple("\n\n" if number else "" for number in range(passages))
    return Prompt(head=f"User request: {query}\n\n" if query.strip() else "", labels=labels, gap="", tail="")


def _worded(wording: Wording, query: str, passages: int) -> Prompt:
    labels = tuple(f"{wording.passage} {number}: " for number in range(1, passages + 1))
    if not query.strip():
        return Prompt(head=wording.summary, labels=labels, gap="\n", tail=wording.summary_tail)
    head = f"{wording.ask}{query}{wording.bind}{passages}{wording.count_end}"
    return Prompt(head=head, labels=labels, gap="\n", tail=wording.tail)


def _json_object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _literal(passage: str) -> str:
    value = _json_object(passage)
    return passage if value is None else str(value)


_FORCED: dict[str, Task] = {
    "lettucedetect-qa": "question",
    "lettucedetect-summary": "summary",
    "lettucedetect-data": "data",
}
