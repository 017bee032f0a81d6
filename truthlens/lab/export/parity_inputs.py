"""Exchanges of our own that two forms of one model are compared on: from one line to several windows long.

They carry no labels and prove nothing about quality; they show whether an exported or a rounded model still
computes what the original does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from truthlens.core.errors import ModelError
from truthlens.detection.models.inputs.manifest import InputFormat
from truthlens.detection.models.inputs.windows import Window, build_windows

_PLACES = ("harbour museum", "tram depot", "seed library", "observatory", "weaving mill", "river ferry")
_FACTS = (
    "The {place} opened in {year} and has been run by volunteers since {later}.",
    "A day ticket costs {price} euros, and children under {age} come in free of charge.",
    "Its largest room holds {count} visitors at a time, as the fire brigade demands.",
    "Guided tours start at {hour} o'clock on weekdays and take about {minutes} minutes.",
    "The roof was mended after the storm of {later}; the work cost {sum} thousand euros.",
    "Members receive a letter every {age} months with the dates of talks and workshops.",
    "Dogs are welcome in the yard but not in the archive, where {count} maps are kept.",
)
_CLAIMS = (
    "The {place} opened in {year}.",
    "A day ticket costs {price} euros, and it sells out within {minutes} minutes every morning.",
    "Tours begin at {hour} o'clock and last {minutes} minutes.",
    "It was founded by a retired judge who left it {sum} thousand euros in gold.",
    "The passages do not say who designed the building.",
    "Up to {count} people fit into the largest room.",
)
_SENTENCES = (1, 3, 8, 20, 45, 70)


@dataclass(frozen=True, slots=True)
class ParityInput:
    """One exchange: what was asked, the evidence, the answer."""

    query: str
    passages: tuple[str, ...]
    answer: str


def samples() -> list[ParityInput]:
    """Return the six exchanges, from about 20 words to about 1,100, always the same."""
    return [_sample(number, sentences) for number, sentences in enumerate(_SENTENCES)]


def fixture_windows(tokenizer: Tokenizer, fmt: InputFormat) -> list[Window]:
    """Return the windows of ``samples`` in a model's own input format, each at most ``fmt.max_tokens`` long.

    Raises:
        ModelError: the format leaves no room, or the tokenizer makes no token of any answer.
    """
    windows: list[Window] = []
    for sample in samples():
        built = build_windows(
            tokenizer, fmt, query=sample.query, passages=sample.passages, answer=sample.answer
        )
        windows.extend(built.windows)
    if not windows:
        raise ModelError("the tokenizer makes no token of the fixture's answers; it does not fit the model")
    return windows


def _sample(number: int, sentences: int) -> ParityInput:
    place = _PLACES[number % len(_PLACES)]
    text = [_fill(_FACTS, place, line) for line in range(sentences)]
    # Three passages where there is enough of it, as retrieval gives them.
    cut = max(1, -(-sentences // 3))
    passages = tuple(" ".join(text[start : start + cut]) for start in range(0, sentences, cut))
    claims = [_fill(_CLAIMS, place, line) for line in range(min(len(_CLAIMS), 1 + number))]
    return ParityInput(query=f"What is known about the {place}?", passages=passages, answer=" ".join(claims))


def _fill(patterns: Sequence[str], place: str, line: int) -> str:
    return patterns[line % len(patterns)].format(
        place=place,
        year=1860 + 7 * line,
        later=1990 + line % 30,
        price=4 + line % 11,
        age=3 + line % 5,
        count=40 + 13 * line,
        hour=8 + line % 9,
        minutes=20 + 5 * (line % 8),
        sum=15 + 12 * line,
    )
