"""Words of texts and questions as the index holds and seeks them."""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing

import regex

from truthlens.text.scripts import HANGUL, UNSPACED

TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
"""What FTS5 makes of a text: words without case and accents, by English stems, with vowel signs."""
_WORD = regex.compile(r"[\p{L}\p{N}\p{Co}\p{Mn}\p{Mc}]+")
# Scripts without spaces, and Korean, whose particles are written at the word.
_RUN = regex.compile(f"[{UNSPACED}{HANGUL}]+")
_MOST_CHARS = 4000
_MOST_TERMS = 64
# About what ten milliseconds are enough to rank.
_MOST_POSTINGS = 10_000


def indexed(text: str) -> str:
    """Return ``text`` as it is indexed: in NFKC, scripts without spaces as pairs of characters."""
    return _RUN.sub(_pairs, unicodedata.normalize("NFKC", text))


def _pairs(run: regex.Match[str]) -> str:
    text = run[0]
    pairs = (text[at : at + 2] for at in range(len(text) - 1)) if len(text) > 1 else (text,)
    return f" {' '.join(pairs)} "


def match_expression(text: str, frequency: Callable[[str], int]) -> str:
    """Return the words of a question or a claim as an FTS5 expression, any of which may match.

    It is ``""`` where there is none.

    Every word is quoted: nothing in the text is taken for an operator. Frequent words are left out where they
    would make the ranking slow, all but the rarest; they would hardly change it.

    Args:
        text: of which the first 4,000 characters count.
        frequency: gives for a stem how many passages hold it, 0 where they are few.
    """
    words: dict[str, str] = {}
    for word, stem in _stemmed(_WORD.findall(indexed(text[:_MOST_CHARS]))):
        words.setdefault(stem, word)
    chosen: list[str] = []
    postings = 0
    for count, _, word in sorted(
        (frequency(stem), at, word) for at, (stem, word) in enumerate(words.items())
    ):
        postings += count
        if chosen and (postings > _MOST_POSTINGS or len(chosen) >= _MOST_TERMS):
            break
        chosen.append(f'"{word}"')
    return " OR ".join(chosen)


def _stemmed(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each word with its stem, as the tokenizer of the index makes it."""
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.execute(f'CREATE VIRTUAL TABLE words USING fts5(word, tokenize="{TOKENIZER}")')
        memory.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(words, instance)")
        memory.executemany("INSERT INTO words(rowid, word) VALUES (?, ?)", enumerate(words))
        for stem, place in memory.execute("SELECT term, doc FROM stems ORDER BY doc, offset").fetchall():
            yield words[place], stem
