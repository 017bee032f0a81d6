"""Synthetic answers made from evidence: clean ones, and ones with a marked error.

Wordings are our own.

An answer is a few sentences of the evidence, some of them reworded, with lead-ins and closings as chat models
write them. Errors are minimal edits (``perturbations``) or text from another source; clean ones also cover
what detectors wrongly flag: abstentions, restated questions, headings, politeness, number paraphrases.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from truthlens.lab.data.dataset import Example
from truthlens.lab.data.paraphrase import reword
from truthlens.lab.data.perturbations import Perturbation, perturbed
from truthlens.text.sentences import sentences

SOURCE = "synthetic"

_LEAD_INS = (
    "Based on the given passages, ", "According to the provided passages, ", "Based on the context: ",
    "From the information provided, ", "The passages say the following. ", "Here is a short summary:\n\n",
    "Sure! Here is what the documents say:\n", "To answer your question: ", "Here are the main points:\n",
    "The text states that ", "In summary, ",
)  # fmt: skip
_CLOSINGS = (
    " I hope this helps!", " Let me know if you would like more detail.", "\n\nIs there anything else?",
    " Please refer to the passages for more information.", " Would you like me to go on?",
)  # fmt: skip
_ABSTENTIONS = (
    "Unable to answer based on given passages.", "I cannot answer this from the passages that were provided.",
    "The given context does not contain the information needed to answer this question.",
    "I'm sorry, but the documents do not mention that.", "There is not enough information in the context.",
    "I don't know based on what was provided.", "The passages do not say.",
    "Unfortunately, none of the sources address this question directly.",
)  # fmt: skip


def synthesize(sources: Sequence[Example], *, count: int, seed: int) -> list[Example]:
    """Return ``count`` synthetic examples over the contexts of ``sources``, about half with marked errors.

    Returned examples keep the group of their source, so splits hold.
    """
    dice = random.Random(seed)  # noqa: S311  # no secret: repeatable draws
    made: list[Example] = []
    while sources and len(made) < count:
        base, other = dice.choice(sources), dice.choice(sources)
        example = _make(base, other, dice, number=len(made))
        if example is not None:
            made.append(example)
    return made


def _make(base: Example, other: Example, dice: random.Random, *, number: int) -> Example | None:
    kind = dice.random()
    spans: list[tuple[int, int]] = []
    if kind < 0.05:
        text = dice.choice(_ABSTENTIONS)
    else:
        pool = _pool(base)
        if len(pool) < 2:
            return None
        picked = sorted(dice.sample(range(len(pool)), min(len(pool), dice.randint(1, 5))))
        pieces: list[tuple[str, Perturbation | None]] = [
            (reword(pool[place], dice), None) for place in picked
        ]
        if kind < 0.55:
            pieces = _with_error(pieces, base, other, dice)
            if not any(edit for _, edit in pieces):
                return None
        text, spans = _compose(pieces, base.query, dice)
    return replace(
        base, id=f"synthetic-{number}", source=SOURCE, response=text, spans=tuple(spans), label=int(bool(spans)),
        quality="good",
    )  # fmt: skip


def _pool(example: Example) -> list[str]:
    return [
        passage[start:end]
        for passage in example.context
        for start, end in sentences(passage)
        if 30 <= end - start <= 260
    ]


def _with_error(
    pieces: list[tuple[str, Perturbation | None]], base: Example, other: Example, dice: random.Random
) -> list[tuple[str, Perturbation | None]]:
    context = " ".join(base.context)
    result = list(pieces)
    places = dice.sample(range(len(result)), len(result))
    wanted = 1 if dice.random() < 0.75 else 2
    for place in places:
        sentence = result[place][0]
        edit = perturbed(sentence, context, dice)
        if edit is not None:
            result[place] = (edit.apply(sentence), replace(edit, end=edit.span[1]))
            wanted -= 1
        if not wanted:
            break
    if wanted or dice.random() < 0.15:
        foreign = _pool(other) if other.group != base.group else []
        if foreign:
            sentence = dice.choice(foreign)
            result.insert(dice.randint(0, len(result)), (sentence, Perturbation(0, len(sentence), sentence)))
    return result


def _compose(
    pieces: list[tuple[str, Perturbation | None]], query: str, dice: random.Random
) -> tuple[str, list[tuple[int, int]]]:
    text = dice.choice(_LEAD_INS) if dice.random() < 0.4 else ""
    if query and dice.random() < 0.15:
        text += f"You asked: {query}\n"
    listed = len(pieces) > 2 and dice.random() < 0.25
    spans: list[tuple[int, int]] = []
    for number, (sentence, edit) in enumerate(pieces, start=1):
        if listed:
            text += f"\n{number}. "
        elif number > 1:
            text += " "
        if edit is not None and edit.end > edit.start:
            spans.append((len(text) + edit.start, len(text) + edit.end))
        text += sentence
    return text + (dice.choice(_CLOSINGS) if dice.random() < 0.15 else ""), spans
