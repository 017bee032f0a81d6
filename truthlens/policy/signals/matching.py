"""Match the user's words: terms, the nearest example, the language.

No model and no embedding: terms are compared as they are written, examples by the words that they
share with a sentence. A paraphrase in other words is not found.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

from truthlens.policy.signals.readable_text import (
    compatible,
    in_reading_order,
    over_lines,
    pieces,
    readable,
    spelled_out,
    unaccented,
)
from truthlens.text.function_words import FUNCTION_WORDS
from truthlens.text.language import language_of
from truthlens.text.scripts import UNSPACED
from truthlens.text.sentences import sentences
from truthlens.text.word_forms import singular

_UNSPACED = re.compile(f"[{UNSPACED}]")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_RUN = re.compile(f"[^\\W{UNSPACED}]+")
_WORD = re.compile(f"[^\\W_{UNSPACED}]+")
_QUESTION_WORDS = "which when where who why should would could will there any if or at by from me we our your"
# Of very many messages the language of so many is told, of the first ones and of the last ones.
_SOME_PARTS = 32
_COMMON = FUNCTION_WORDS["en"] | frozenset(_QUESTION_WORDS.split())


class TextForm:
    """A text in one of the forms in which it is searched."""

    def __init__(self, plain: str) -> None:
        self.plain = plain

    @cached_property
    def runs(self) -> frozenset[str]:
        """Every run of letters, digits and ``_`` that is not written in an unspaced script."""
        return frozenset(_RUN.findall(self.plain))


class UserText:
    """The user's text, with what is worked out of it kept for the next question.

    Args:
        text: what the user wrote.
        language: its language, where that is known.
        more: texts of other messages, which count as well.
    """

    def __init__(self, text: str, language: str = "", more: Sequence[str] = ()) -> None:
        self._text = "\n".join((text, *more)) if more else text
        self._language = language
        self._parts = (text, *more)

    @cached_property
    def written(self) -> TextForm:
        """The text as it is written: NFKC, case folded, single spaces."""
        return TextForm(" ".join(map(_plain, self._pieces)))

    @cached_property
    def seen(self) -> TextForm:
        """The text as its reader sees it, in the same form."""
        return self._form(self._readable, other_than=self._pieces, form=self.written)

    @cached_property
    def unaccented(self) -> TextForm:
        """The same without accents, and with words that are spelled letter by letter put together."""
        parts = tuple(unaccented(piece) for piece in self._readable)
        spelled = tuple(words for part in parts if (words := spelled_out(part)))
        return self._form(parts + spelled, other_than=self._readable, form=self.seen)

    @cached_property
    def unbroken(self) -> TextForm:
        """The words that a line end may have cut, put together; a model's template may put a line end between two parts."""
        return TextForm(" ".join(_plain(unaccented(over_lines(piece))) for piece in self._readable))

    @cached_property
    def languages(self) -> frozenset[str]:
        """The language codes of the text and of the others, of each by its beginning and its end."""
        if len(self._parts) == 1:
            return frozenset((self._language or language_of(self._text),))
        parts = (*self._parts[:_SOME_PARTS], *self._parts[_SOME_PARTS:][-_SOME_PARTS:])
        return frozenset(language_of(end) for part in parts for end in {part[:4000], part[-4000:]}) - {""}

    @cached_property
    def sentence_features(self) -> tuple[Counter[str], ...]:
        """The content words of each sentence, as it is written and as its reader sees it."""
        found = [_features(self._text[start:end]) for start, end in sentences(self._text)]
        if self.unaccented is not self.written:
            for piece in self._readable:
                shown = unaccented(piece)
                found += [_features(shown[start:end]) for start, end in sentences(shown)]
        return tuple(found)

    @cached_property
    def _readable(self) -> tuple[str, ...]:
        shown = (in_reading_order(piece) for piece in self._pieces)
        # A model reads what is written, a person what is shown.
        turned = tuple(
            readable(order) for order, piece in zip(shown, self._pieces, strict=True) if order is not piece
        )
        return tuple(map(readable, self._pieces)) + turned

    @cached_property
    def _pieces(self) -> tuple[str, ...]:
        return tuple(pieces(self._text))

    def _form(self, parts: tuple[str, ...], *, other_than: tuple[str, ...], form: TextForm) -> TextForm:
        """Return the form of ``parts``; most texts are the same in every form, and are searched once."""
        return form if parts == other_than else TextForm(" ".join(map(_plain, parts)))


class Terms:
    """A set of words and phrases that may occur in a text.

    A term matches whole words, in any case; between CJK characters it matches anywhere, since they are
    written without spaces. A final ``*`` matches any ending. It is looked for in the text as it is written
    and as its reader sees it (``readable_text``); a term without accents matches accented words, too.
    """

    def __init__(self, terms: Iterable[str]) -> None:
        plain = [(_plain(term.rstrip("*")), term.endswith("*")) for term in terms]
        self._all = _Lookup(plain)
        self._unaccented = _Lookup((term, stem) for term, stem in plain if unaccented(term) == term)

    def found_in(self, text: UserText) -> bool:
        """Return whether any of the terms occurs in ``text``."""
        if self._all.found_in(text.written):
            return True
        if text.seen is not text.written and self._all.found_in(text.seen):
            return True
        if text.unaccented is not text.seen and self._unaccented.found_in(text.unaccented):
            return True
        return self._unaccented.found_in(text.unbroken)


class _Lookup:
    """Terms in plain form, each with whether any ending will do."""

    def __init__(self, terms: Iterable[tuple[str, bool]]) -> None:
        plain = tuple(terms)
        # A term that is one run is in a text exactly where the text has that run: one look-up for all of
        # them.
        self._runs = frozenset(term for term, stem in plain if not stem and _RUN.fullmatch(term))
        self._others = tuple(
            (term, stem) for term, stem in plain if term and (stem or term not in self._runs)
        )

    def found_in(self, form: TextForm) -> bool:
        if not self._runs.isdisjoint(form.runs):
            return True
        plain = form.plain
        # Nearly every term is absent, and ``in`` says so fastest.
        return any(_stands_in(term, plain, stem=stem) for term, stem in self._others if term in plain)


class Examples:
    """Example questions; a text is near when one of its sentences shares enough weighty words with one."""

    def __init__(self, examples: Sequence[str], *, min_similarity: float) -> None:
        counted = [_features(example) for example in examples]
        self._document_count = len(counted)
        self._frequency = Counter(word for words in counted for word in words)
        self._min_similarity = min_similarity
        self._vectors = tuple(self._vector(words) for words in counted)

    def near(self, text: UserText) -> bool:
        """Return whether the best cosine of a sentence and an example reaches ``min_similarity``."""
        return any(
            _cosine(self._vector(words), example) >= self._min_similarity
            for words in text.sentence_features
            for example in self._vectors
        )

    def _vector(self, words: Counter[str]) -> dict[str, float]:
        weights = {
            word: 1 + math.log((1 + self._document_count) / (1 + self._frequency[word])) for word in words
        }
        norm = math.sqrt(sum(weight * weight for weight in weights.values()))
        return {word: weight / norm for word, weight in weights.items()}


def _plain(text: str) -> str:
    return " ".join(compatible(text).casefold().split())


def _stands_in(term: str, text: str, *, stem: bool) -> bool:
    start = text.find(term)
    while start >= 0:
        end = start + len(term)
        if _is_edge(text, start - 1, term[0]) and (stem or _is_edge(text, end, term[-1])):
            return True
        start = text.find(term, start + 1)
    return False


def _is_edge(text: str, index: int, inner: str) -> bool:
    """Return whether a word ends between ``inner`` and the character at ``index``."""
    if not 0 <= index < len(text) or not _joins(inner):
        return True
    return not _joins(text[index])


def _joins(character: str) -> bool:
    return (character.isalnum() or character == "_") and not _UNSPACED.match(character)


def _features(text: str) -> Counter[str]:
    plain = _plain(text)
    words = map(singular, _WORD.findall(plain))
    runs = _UNSPACED_RUN.findall(plain)
    pairs = [run[i : i + 2] for run in runs for i in range(max(len(run) - 1, 1))]
    return Counter(word for word in (*words, *pairs) if word not in _COMMON)


def _cosine(left: dict[str, float], right: dict[str, float]) -> float:
    return sum(weight * right[word] for word, weight in left.items() if word in right)
