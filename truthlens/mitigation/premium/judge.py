"""Ask the judge for an answer where answers differ.

The judge sees the answers without their authors and in an order that depends on nothing but their texts, so
that neither a name nor the first place earns favour. Whether arbitration is called for, and whether its
result is better, is decided by the caller.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from truthlens.core.records.calls import Role
from truthlens.mitigation.interfaces import Task, Tools
from truthlens.mitigation.premium.consensus.answer_diff import (
    AnswerDifference,
    AnswerDifferenceKind,
    differences,
)
from truthlens.mitigation.premium.consensus.comparison import Comparison
from truthlens.mitigation.questions import Opinion, is_structured, prompted, written
from truthlens.prompts import delimiters

_MOST_DIFFERENCES = 40


async def arbitrate(task: Task, tools: Tools, comparison: Comparison, *, judge: str) -> Opinion:
    """Return the judge's answer, from the evidence, the question, all answers and where they differ.

    Args:
        task: the answer to be corrected.
        tools: one call is made.
        comparison: of the first answer with at least one other.
        judge: the model that judges.
    """
    labels = labels_of(comparison)
    asked = await asyncio.to_thread(
        prompted,
        task,
        "arbitrate",
        model=judge,
        role=Role.JUDGE,
        values={
            "answers": _answers(comparison, labels),
            "differences": _shown(differences(comparison), labels),
            "structured": is_structured(task),
        },
    )
    return await written(task, tools, asked)


def labels_of(comparison: Comparison) -> list[str]:
    """Return the letter of each voice: A, B, … in the order of a hash of the texts; equal texts share one."""
    texts = {voice.text for voice in comparison.voices}
    ordered = sorted(texts, key=lambda text: hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    letters = dict(zip(ordered, ascii_uppercase, strict=False))
    return [letters[voice.text] for voice in comparison.voices]


@dataclass(frozen=True, slots=True)
class _Shown:
    """A difference as the template shows it: ``alone`` where one of the two answers says nothing."""

    alone: bool
    claims: tuple[str, ...]


def _answers(comparison: Comparison, labels: Sequence[str]) -> str:
    texts = {label: voice.text for label, voice in zip(labels, comparison.voices, strict=True)}
    return "\n".join(delimiters.tag("answer", texts[label], label=label) for label in sorted(texts))


def _shown(found: Sequence[AnswerDifference], labels: Sequence[str]) -> list[_Shown]:
    """Return the worst differences: contradictions first, the worst grounded first among each kind.

    Sides are in the order of their letters, and what only one answer says does not name which: "missing" and
    "added" would show the judge the first answer.
    """
    ranked = sorted(
        found, key=lambda each: (each.kind is not AnswerDifferenceKind.CONTRADICTED, _worst_grounding(each))
    )
    return [
        _Shown(each.kind is not AnswerDifferenceKind.CONTRADICTED, _claims(each, labels))
        for each in ranked[:_MOST_DIFFERENCES]
    ]


def _worst_grounding(difference: AnswerDifference) -> float:
    sides = (difference.first_grounding, difference.other_grounding)
    return min(side for side in sides if side is not None)


def _claims(difference: AnswerDifference, labels: Sequence[str]) -> tuple[str, ...]:
    sides = (
        (labels[0], difference.first, difference.first_grounding),
        (labels[difference.voice], difference.other, difference.other_grounding),
    )
    return tuple(
        delimiters.inline("claim", text, answer=label, grounding=f"{grounding:.2f}")
        for label, text, grounding in sorted(sides, key=lambda side: side[0])
        if text is not None
    )
