"""Read a sentence into the words that say what it is of and the marks that say what is claimed of it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from truthlens.detection.detectors.contradictions.tables import CLASS_OF, PHRASES, UNIT_FAMILY, Mark
from truthlens.text.word_forms import word_set
from truthlens.text.words import Word, words

LONGEST = 60
"""Words of a sentence that is read; longer ones are lists and tables without full stops."""
_BE = frozenset(("is", "are", "was", "were", "be", "been", "being", "am", "get", "gets", "got"))
_FORMS = {
    **dict.fromkeys(_BE, "be"), **dict.fromkeys(("has", "have", "had"), "have"), **dict.fromkeys(("does", "do", "did"), "do"),
}  # fmt: skip
_SHORT = {
    "can't": ("can", "not"),
    "cannot": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
    "ain't": ("be", "not"),
}
_BREAK = re.compile(r"[,;:()\[\]—–|\n]|\s-\s")
_JOINTS = frozenset(
    ("and", "or", "but", "while", "whereas", "because", "which", "who", "that", "so", "whose", "as")
)
_PREPOSITIONS = word_set(
    "of in on at by to for from with into onto over under about against between through during near per via within toward towards behind"
    " beside upon among around across like than as"
)
_ARTICLES = frozenset(
    ("the", "a", "an", "its", "their", "his", "her", "our", "your", "my", "this", "that", "these", "those")
)
_COMPARED = frozenset(("more", "less", "above", "below", "fewer", "further", "least"))
_EMPTY = word_set(
    "also still already really just very quite s t please there it they he she we you i them him us one ones so even own such then"
    " people person someone anybody anyone somebody take place get got according states stated says said"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word of content, or a mark, at characters ``start`` to ``end``.

    ``key`` is what is compared of a word, ``lower`` the word as it is written. ``part`` numbers the piece of the sentence
    between commas and joining words. ``after`` is the word before it that is no article, ``passive`` that a form of "be" is near.
    """

    start: int
    end: int
    key: str
    lower: str
    part: int
    mark: Mark | None = None
    after: str = ""
    entity: bool = False
    number: bool = False
    passive: bool = False
    determined: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """A sentence as it is compared: its ``content`` and its ``marks``, each in order. ``starts`` are where its parts begin."""

    content: tuple[Token, ...]
    marks: tuple[Token, ...]
    joints: frozenset[str] = frozenset()
    keys: frozenset[str] = field(default=frozenset())


@dataclass(frozen=True, slots=True)
class _Atom:
    base: str
    lower: str
    word: Word


def read(text: str, start: int, end: int) -> Reading | None:
    """Return characters ``start`` to ``end`` of a text as they are compared; ``None`` where they are no sentence."""
    listed = words(text[start:end])
    if not listed or len(listed) > LONGEST:
        return None
    return _Reader(text, start, listed).read()


class _Reader:
    def __init__(self, text: str, offset: int, listed: list[Word]) -> None:
        self._text, self._offset = text, offset
        self._atoms = [atom for word in listed for atom in self._split(word)]
        self._part = 0

    def _lower(self, word: Word) -> str:
        return self._text[self._offset + word.start : self._offset + word.end].lower().replace("’", "'")

    def _split(self, word: Word) -> list[_Atom]:
        lower = self._lower(word)
        return [_Atom(base, lower, word) for base in _bases(lower, word.stem)]

    def read(self) -> Reading:
        content: list[Token] = []
        marks: list[Token] = []
        joints: set[str] = set()
        at, behind = 0, -1
        atoms = self._atoms
        while at < len(atoms):
            atom = atoms[at]
            if behind >= 0 and _BREAK.search(
                self._text, self._offset + behind, self._offset + atom.word.start
            ):
                self._part += 1
            mark, length = _phrase(tuple(each.base for each in atoms[at : at + _LONGEST_PHRASE]))
            if mark in (Mark.MORE_THAN, Mark.LESS_THAN) and not self._is_number(at + length):
                # "More than" compares two things unless a number follows.
                mark, length = (Mark.NOTHING, 1) if length == 1 else (None, 0)
            if (
                mark is Mark.NOT
                and atom.lower == "no"
                and self._text[self._offset + atom.word.end :][:1] in (".", ",")
            ):
                mark, length = Mark.NOTHING, 1
            if length:
                last = atoms[at + length - 1]
                if mark not in (None, Mark.NOTHING):
                    marks.append(self._token(atom, last, at, mark))
                behind = last.word.end
                if atom.base in _JOINTS:
                    joints.add(atom.base)
                at += length
                continue
            behind = atom.word.end
            if atom.base in _JOINTS:
                self._part += 1
                joints.add(atom.base)
            elif self._says(atom):
                content.append(self._token(atom, atom, at, None))
            at += 1
        return Reading(
            tuple(content), tuple(marks), frozenset(joints), frozenset(token.key for token in content)
        )

    def _is_number(self, at: int) -> bool:
        return at < len(self._atoms) and bool(self._atoms[at].word.numbers)

    def _says(self, atom: _Atom) -> bool:
        if atom.base in ("be", "have", "do") or atom.lower in _EMPTY:
            return False
        return not atom.word.stop or atom.lower in _COMPARED

    def _token(self, first: _Atom, last: _Atom, at: int, mark: Mark | None) -> Token:
        before = at - 1
        determined = before >= 0 and self._atoms[before].lower in _ARTICLES
        while before >= 0 and self._atoms[before].lower in _ARTICLES:
            before -= 1
        near = [self._atoms[number].base for number in range(max(0, at - 3), at)]
        word = first.word
        key = word.numbers[0] if word.numbers else CLASS_OF.get(word.stem, word.stem)
        return Token(
            self._offset + first.word.start, self._offset + last.word.end, key, first.lower, self._part, mark,
            self._atoms[before].lower if before >= 0 else "", word.entity, bool(word.numbers), "be" in near, determined,
        )  # fmt: skip


def is_preposition(word: str) -> bool:
    """Return whether a word leads to a noun that is no subject."""
    return word in _PREPOSITIONS


def unit_family(token: Token) -> int | None:
    """Return the number of what a unit of measure measures, ``None`` for other words."""
    found = UNIT_FAMILY.get(token.lower)
    return UNIT_FAMILY.get(token.key) if found is None and len(token.lower) > 3 else found


@lru_cache(maxsize=1 << 14)
def _bases(lower: str, stem: str) -> tuple[str, ...]:
    if lower in _SHORT:
        return _SHORT[lower]
    if lower.endswith("n't"):
        return (_FORMS.get(lower[:-3], lower[:-3]), "not")
    return (_FORMS.get(lower, lower),)


def _compiled() -> dict[tuple[str, ...], Mark]:
    return {
        tuple(base for word in phrase.split() for base in _bases(word, word)): mark
        for mark, phrases in PHRASES.items()
        for phrase in phrases.split("|")
    }


_PHRASES = _compiled()
_LONGEST_PHRASE = max(map(len, _PHRASES))
_FIRST = frozenset(phrase[0] for phrase in _PHRASES)


def _phrase(bases: tuple[str, ...]) -> tuple[Mark | None, int]:
    """Return the mark of the longest phrase that the words begin with, and its length in words; 0 for none."""
    if bases[0] not in _FIRST:
        return None, 0
    for length in range(len(bases), 0, -1):
        mark = _PHRASES.get(bases[:length])
        if mark is not None:
            return mark, length
    return None, 0
