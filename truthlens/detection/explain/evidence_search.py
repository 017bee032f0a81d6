"""Find the sentence of the evidence that is nearest to a claim, by shared words weighted by their rarity.

Pure.

No embeddings and no model: what is looked for is the sentence about the same subject, and a wrong figure is
in none of them, so the words around it decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from truthlens.core.records.exchange import Passage
from truthlens.detection.models.inputs.lexical import keys_of
from truthlens.text.sentences import sentences
from truthlens.text.words import Word, words

_LONGEST = 60  # words; longer "sentences" are tables and lists without full stops
_PASSAGE_SHARE = 0.15  # how much the rest of a passage speaks for a sentence of it
_LENGTH_SHARE = 0.12  # how much a long sentence must give back for what it shares by chance
_MOST_CHARACTERS = 400_000

BEFORE_WEIGHT = 0.25
"""Of the words before a claim: they say what "it" and a bare list item are about."""


@dataclass(frozen=True, slots=True)
class EvidenceSentence:
    """Characters ``start`` to ``end`` of passage number ``passage``, with the words in them."""

    passage: int
    start: int
    end: int
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """The nearest sentence of a claim.

    ``similarity`` is the share of the claim's weight that it holds, 0..1.
    """

    number: int
    sentence: EvidenceSentence
    similarity: float


def weighted(listed: Iterable[Word], weight: float) -> dict[str, float]:
    """Return the content words by the first of their keys, all with the same weight."""
    return {keys_of(word)[0]: weight for word in listed if not word.stop}


class EvidenceSentences:
    """The passages of an exchange, read once and only when something is first asked.

    At most the first 400,000 characters are read; a passage beyond comes near to nothing.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = passages
        self._keys: dict[int, frozenset[str]] = {}
        self._arrays: dict[str, NDArray[np.int64]] = {}

    def nearest(
        self, claim: Mapping[str, float], *, context: Mapping[str, float] = MappingProxyType({})
    ) -> Match | None:
        """Return the sentence that holds most of ``claim``; ``None`` if none holds any of it.

        Args:
            claim: weights by key (stem or number value).
            context: further keys that help to choose between sentences and count for no similarity.
        """
        whole = sum(weight * self.idf(key) for key, weight in claim.items())
        if not self.sentences or whole <= 0.0:
            return None
        held, by_passage = self._held(claim, whole)
        score = held + _PASSAGE_SHARE * by_passage[self._passage_of]
        for key in context.keys() - claim.keys():
            if (places := self._places(key)) is not None:
                score[places] += context[key] * self.idf(key) / whole
        score *= (1.0 - _LENGTH_SHARE * self._relative_length) * (held > 0.0)
        best = int(score.argmax())
        if score[best] <= 0.0:
            return None
        return Match(best, self.sentences[best], min(float(held[best]), 1.0))

    def at(self, passage: int, place: int, claim: Mapping[str, float]) -> Match | None:
        """Return the sentence at character ``place`` of passage number ``passage``, ``None`` if there is none.

        Args:
            passage: its number.
            place: a character of it.
            claim: weights by key, for the similarity.
        """
        for number, sentence in enumerate(self.sentences):
            if sentence.passage == passage and sentence.start <= place < sentence.end:
                weights = {key: weight * self.idf(key) for key, weight in claim.items()}
                held = sum(weight for key, weight in weights.items() if key in self.keys(number))
                return Match(number, sentence, held / (sum(weights.values()) or 1.0))
        return None

    def _held(
        self, claim: Mapping[str, float], whole: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return two arrays, shapes (sentences,) and (passages,): the share of the claim that each holds."""
        held = np.zeros(len(self.sentences))
        by_passage = np.zeros(len(self.passages))
        for key, weight in claim.items():
            places = self._places(key)
            if places is not None:
                worth = weight * self.idf(key) / whole
                held[places] += worth
                by_passage += worth * (np.bincount(self._passage_of[places], minlength=len(by_passage)) > 0)
        return held, by_passage

    def idf(self, key: str) -> float:
        """Return the rarity of ``key``, > 0; a key that occurs nowhere counts like one that occurs once."""
        places = self._postings.get(key)
        return math.log(1.0 + len(self.sentences) / (1 if places is None else len(places)))

    def holds(self, word: Word) -> bool:
        """Return whether a content word (any value of a number) occurs anywhere in the evidence."""
        return any(key in self._postings for key in keys_of(word))

    def follows(self, first: str, second: str) -> bool:
        """Return whether two stems are adjacent anywhere in a sentence of the evidence."""
        return (first, second) in self._bigrams

    @cached_property
    def sentences(self) -> tuple[EvidenceSentence, ...]:
        """The evidence sentence by sentence, long ones in pieces, in order."""
        found: list[EvidenceSentence] = []
        room = _MOST_CHARACTERS
        for number, passage in enumerate(self.passages):
            text = passage.text[:room]
            room -= len(text)
            listed, place = words(text), 0
            for begin, end in sentences(text):
                first = place
                while place < len(listed) and listed[place].start < end:
                    place += 1
                for start in range(first, place, _LONGEST):
                    piece = tuple(listed[start : min(start + _LONGEST, place)])
                    low = begin if start == first else piece[0].start
                    high = end if start + _LONGEST >= place else piece[-1].end
                    found.append(EvidenceSentence(number, low, high, piece))
        return tuple(found)

    @cached_property
    def names(self) -> frozenset[str]:
        """Stems of the words that are names somewhere in the evidence."""
        return frozenset(word.stem for each in self.sentences for word in each.words if word.entity)

    def keys(self, number: int) -> frozenset[str]:
        """Return the stems and number values of sentence ``number``, including stop words."""
        if number not in self._keys:
            self._keys[number] = frozenset(
                key for word in self.sentences[number].words for key in keys_of(word)
            )
        return self._keys[number]

    @cached_property
    def _postings(self) -> dict[str, list[int]]:
        """Per key of content, the numbers of the sentences that contain it, ascending.

        A title counts for all of its sentences.
        """
        postings: dict[str, list[int]] = {}
        titles = [[word for word in words(passage.title) if not word.stop] for passage in self.passages]
        for number, sentence in enumerate(self.sentences):
            listed: Sequence[Word] = sentence.words
            if titles[sentence.passage]:
                listed = [*listed, *titles[sentence.passage]]
            for word in listed:
                if word.stop:
                    continue
                for key in word.numbers or (word.stem,):
                    places = postings.get(key)
                    if places is None:
                        postings[key] = [number]
                    elif places[-1] != number:
                        places.append(number)
        return postings

    def _places(self, key: str) -> NDArray[np.int64] | None:
        if key not in self._arrays and key in self._postings:
            self._arrays[key] = np.array(self._postings[key], dtype=np.int64)
        return self._arrays.get(key)

    @cached_property
    def _bigrams(self) -> frozenset[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        for each in self.sentences:
            stems = [word.stem for word in each.words]
            found.update(pairwise(stems))
        return frozenset(found)

    @cached_property
    def _passage_of(self) -> NDArray[np.int64]:
        return np.array([each.passage for each in self.sentences], dtype=np.int64)

    @cached_property
    def _relative_length(self) -> NDArray[np.float64]:
        lengths = np.array([len(each.words) for each in self.sentences], dtype=np.float64)
        return np.minimum(lengths / max(float(lengths.mean()), 1.0), 3.0) / 3.0
