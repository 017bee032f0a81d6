"""Held-out prompts of RAGTruth with the four real answers to each and what people marked in them.

Only groups on the test side of the bundled model's split are read, so the detector has seen neither the
prompts nor the answers. Every answer is the first answer of one case; the other three are what other models
would have said.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Message, Passage
from truthlens.lab.data.dataset import read_examples, split_of
from truthlens.lab.train.recipe import BUNDLED_RECIPE

FILE = "ragtruth_qa.train.jsonl.gz"
ANSWERS = 4


@dataclass(frozen=True, slots=True)
class Given:
    """A real answer; ``spans`` are the characters that people marked as unsupported."""

    model: str
    text: str
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A real prompt with all answers to it; ``text`` is the whole prompt that the models were given."""

    group: str
    query: str
    passages: tuple[str, ...]
    text: str
    answers: tuple[Given, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One exchange: the answer ``place`` of the prompt came first."""

    prompt: Prompt
    place: int

    @property
    def id(self) -> str:
        """Unique among all cases."""
        return f"{self.prompt.group}/{self.first.model}"

    @property
    def first(self) -> Given:
        """The answer to be corrected."""
        return self.prompt.answers[self.place]

    def other(self, number: int) -> Given:
        """Return the answer of the model ``number`` places (1 to 3) after the first one."""
        return self.prompt.answers[(self.place + number) % ANSWERS]

    @property
    def exchange(self) -> Exchange:
        """The request half, with its evidence as the data set gives it."""
        return Exchange(
            endpoint=Endpoint.CHAT,
            model=self.first.model,
            query=self.prompt.query,
            passages=tuple(Passage(text, Provenance.USER) for text in self.prompt.passages if text.strip()),
            messages=(Message("user", self.prompt.text),),
        )

    @property
    def request(self) -> Mapping[str, object]:
        """The client's JSON request."""
        return {
            "model": self.first.model,
            "messages": [{"role": "user", "content": self.prompt.text}],
            "temperature": 0.7,
        }

    @property
    def answer(self) -> Answer:
        """The first answer as the gateway reads it."""
        return Answer(0, AnswerKind.TEXT, self.first.text)


def held_out(folder: Path, rows: int | None = None) -> list[Case]:
    """Return at most ``rows`` cases in a fixed random order of whole prompts: a larger number only adds.

    Raises:
        DataError: the file cannot be read.
    """
    prompts = sorted(_prompts(folder / FILE), key=lambda prompt: _digest(prompt.group))
    cases = [Case(prompt, place) for prompt in prompts for place in range(len(prompt.answers))]
    return cases if rows is None else cases[: rows // ANSWERS * ANSWERS]


def _prompts(file: Path) -> list[Prompt]:
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        raw = [json.loads(line) for line in stream if line.strip()]
    grouped = defaultdict(list)
    for example, row in zip(read_examples(file), raw, strict=True):
        shares = BUNDLED_RECIPE.shares.get(example.source, BUNDLED_RECIPE.default_shares)
        if split_of(example.group, shares) == "test":
            grouped[example.group].append((example, row["prompt"]))
    return [
        Prompt(
            group=group,
            query=members[0][0].query,
            passages=members[0][0].context,
            text=members[0][1],
            answers=tuple(
                Given(example.generator, example.response, example.spans or ()) for example, _ in members
            ),
        )
        for group, members in grouped.items()
        if len(members) == ANSWERS
    ]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
