"""The language of a text by script, character n-grams and function words, and whether a model reads it.

The n-grams are a small extract of py3langid's, see ``truthlens.lab.language_table``. Where nothing is
clear the language is unknown (``""``), and a sentence that nobody can place counts as that of the sentence
before it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthlens.text.function_words import COMMON_WORDS, WORDS_OF
from truthlens.text.scripts import SCRIPTS
from truthlens.text.sentences import sentences

ANY_LANGUAGE = "*"
"""In a manifest's ``languages``: the model reads everything."""

Ranges = Sequence[tuple[int, int]]

TOLD_BY_LETTERS = [
    "en",
    "de",
    "fr",
    "es",
    "it",
    "pt",
    "nl",
    "sv",
    "no",
    "da",
    "fi",
    "is",
    "et",
    "lv",
    "lt",
    "pl",
    "cs",
    "sk",
    "sl",
    "hr",
    "hu",
    "ro",
    "sq",
    "tr",
    "az",
    "uz",
    "vi",
    "id",
    "ms",
    "tl",
    "sw",
    "af",
    "ca",
    "gl",
    "eu",
    "cy",
    "ga",
    "mt",
    "la",
    "eo",
    "ht",
    "so",
    "ru",
    "uk",
    "bg",
    "be",
    "sr",
    "mk",
    "ar",
    "fa",
    "ur",
]
"""The columns of the table of n-grams."""
_ONE_LANGUAGE = {"greek": "el", "hebrew": "he", "thai": "th", "devanagari": "hi"}
LANGUAGES = frozenset({*TOLD_BY_LETTERS, *_ONE_LANGUAGE.values(), "zh", "ja", "ko"})
"""Whatever ``language_of`` may return."""
_SCRIPTS_OF = {
    "zh": {"han"}, "yue": {"han"}, "ja": {"han", "kana"}, "ko": {"hangul", "han"}, "el": {"greek"},
    "he": {"hebrew"}, "yi": {"hebrew"}, "th": {"thai"},
    **dict.fromkeys(("ru", "uk", "be", "bg", "sr", "mk", "kk", "ky", "mn", "tg"), frozenset({"cyrillic"})),
    **dict.fromkeys(("ar", "fa", "ur", "ps", "ckb"), frozenset({"arabic"})),
    **dict.fromkeys(("hi", "mr", "ne", "sa"), frozenset({"devanagari"})),
}  # fmt: skip
# Languages of which a reader of one reads the others, as far as a sentence shows.
_NEAR = ({"no", "nb", "nn", "da"}, {"hr", "sr", "bs"}, {"id", "ms"})
# A word is about five letters of an alphabet and one or two characters of these.
_WEIGHTS = dict.fromkeys(("han", "kana", "hangul", "thai"), 4)
_ALPHABETS = frozenset({"latin", "cyrillic", "arabic"})
_KNOWN_ENDS = (
    "latin",
    "greek",
    "cyrillic",
    "hebrew",
    "arabic",
    "hangul",
    "kana",
    "han",
    "ARMENIAN",
    "GEORGIAN",
)
_UNKNOWN_ENDS = re.compile("[\u06d4\u0589]")
_SAMPLE_CHARS = 4000

_LETTERS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
# A run without spaces is tried from its beginning alone: from every place in it, a long one would cost its square.
_NO_PROSE = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]{1,300}`|https?://\S++|(?<!\S)[^\s@]++@\S++|“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»"
    r"|\"[^\"\n]{1,300}\"|(?<!\S)[^\s=_/\\(){}<>]*+[=_/\\(){}<>]\S*+",
    re.DOTALL,
)
_CLASSES = {name: re.compile(f"[{inside}]") for name, inside in SCRIPTS.items()}

_LONGEST_NGRAM = 5
_STEPS, _FLOOR = 16.0, -15.0
# By how much, in log-odds, another language must lead; a function word counts as much as ``_WORD``.
_FOREIGN, _FOREIGN_PLAIN, _OWN, _WORD = 10.0, 4.0, -4.0, 5.0
# By how much more where signs are missing: a function word of the other language, or a word with other letters than ASCII.
_SIGN, _ENOUGH_SIGNS = 5.0, 2
_CLEAR, _ENOUGH_WORDS = 3.0, 2
_PIECE = 800
_PROSE = re.compile(r"(?:[^\W\d_]+\W+){4}.*[.!?…][\"'”’)\]]*\s*\Z", re.DOTALL)
# By function word the languages that have it, of words that few have.
_TELLING = {
    word: having
    for word in COMMON_WORDS
    if len(having := tuple(code for code in WORDS_OF if word in WORDS_OF[code])) <= 3
}


class _Table(NamedTuple):
    """``logs`` has shape (n-grams, languages), uint8: log-probabilities, see ``_FLOOR`` and ``_STEPS``."""

    places: dict[str, int]
    logs: NDArray[np.uint8]


@cache
def _table() -> _Table:
    with np.load(Path(__file__).with_name("language_table.npz"), allow_pickle=False) as data:
        places = {ngram: place for place, ngram in enumerate(str(data["ngrams"]).split("\0"))}
        return _Table(places, data["table"])


@lru_cache(maxsize=8192)
def script_of(character: str) -> str:
    """Return the script of a letter: a key of ``SCRIPTS``, else the first word of its Unicode name.

    What is no letter has none (``""``).
    """
    if not character.isalpha():
        return ""
    known = (name for name, inside in _CLASSES.items() if inside.match(character))
    return next(known, unicodedata.name(character, "").split(" ")[0])


def script_weights(text: str) -> Counter[str]:
    """Return how much the letters of each script weigh; one that is about a word weighs as much as the letters of one."""
    weights: Counter[str] = Counter()
    if text.isascii():
        weights["latin"] = sum(map(len, _LETTERS.findall(text)))
        return weights
    for character, count in Counter(text).items():
        if script := script_of(character):
            weights[script] += count * _WEIGHTS.get(script, 1)
    return weights


def has_known_sentences(text: str) -> bool:
    """Return whether ``text.sentences`` can tell the sentences of ``text``: not in Hindi, Urdu or Thai."""
    if text.isascii():
        return True
    weights = script_weights(text)
    known = sum(weights[script] for script in _KNOWN_ENDS)
    return 2 * known >= weights.total() and not _UNKNOWN_ENDS.search(text)


def language_of(text: str) -> str:
    """Return the language of ``text`` as an ISO 639 code, or ``""`` where it cannot be told.

    Chinese, Japanese and Korean are told by script alone, so are those of scripts that one language has.
    """
    weights = script_weights(text[:_SAMPLE_CHARS])
    cjk = weights["han"] + weights["kana"]
    if weights["hangul"] * 2 > weights.total():
        return "ko"
    if cjk * 5 >= weights.total() > 0:
        return "ja" if weights["kana"] * 10 >= cjk else "zh"
    script = max(weights, key=lambda name: weights[name], default="")
    if script in _ONE_LANGUAGE:
        return _ONE_LANGUAGE[script]
    scores = _scores(_prose(text[:_SAMPLE_CHARS]))
    if scores is None:
        return ""
    second, first = np.argsort(scores)[-2:].tolist()
    return TOLD_BY_LETTERS[first] if scores[first] - scores[second] >= _CLEAR else ""


def readable(text: str, languages: Iterable[str]) -> bool:
    """Return whether at least half of a document is in ``languages``; one without letters is readable.

    Documents hold tables, names and addresses, so that languages of one script are told apart by whole
    sentences only.

    Args:
        text: a passage.
        languages: ISO 639 codes, regions allowed (``en``, ``pt-BR``); ``*`` means every language. A code that
        is
            not known here is taken for a language in Latin letters, and any text in those for its own.
    """
    own = _codes(languages)
    if ANY_LANGUAGE in own:
        return True
    if not _in_scripts(text, own):
        return False
    step = max(1, (len(text) - _PIECE) // 3)
    starts = range(0, max(1, len(text) - _PIECE + 1), step) if len(text) > 4 * _PIECE else [0]
    pieces = [text[start : start + _PIECE] for start in starts] if len(text) > 4 * _PIECE else [text]
    found = [
        (end - start, _reads(piece[start:end], own))
        for piece in pieces
        for start, end in sentences(piece)
        if _PROSE.search(piece[start:end])
    ]
    foreign = sum(length for length, read in found if read is False)
    return 2 * foreign <= sum(map(len, pieces))


def unread(text: str, languages: Iterable[str], *, before: str = "") -> tuple[tuple[int, int], ...]:
    """Return the sentences of ``text``, as character ranges, that are in none of ``languages``.

    A sentence that cannot be placed is read where the one before it in that script is, so what follows never
    changes the result.

    Args:
        text: an answer.
        languages: as for ``readable``.
        before: what was asked: it stands for the sentence before the first.
    """
    own = _codes(languages)
    if ANY_LANGUAGE in own:
        return ()
    found = []
    question = before[-_SAMPLE_CHARS:]
    read = not _in_scripts(question, own) or _reads(question, own) is not False
    for start, end in sentences(text):
        placed = _reads(text[start:end], own)
        if placed is not None and _in_scripts(text[start:end], own):
            read = placed
        if placed is False or not read:
            found.append((start, end))
    return tuple(found)


def sentences_read(text: str, languages: Iterable[str]) -> list[bool | None]:
    """Return for each sentence of ``text`` whether it is in ``languages``; ``None`` where it cannot be placed."""
    own = _codes(languages)
    return [_reads(text[start:end], own) for start, end in sentences(text)]


def is_read(text: str, foreign: Ranges) -> bool:
    """Return whether the sentences ``foreign`` hold at most half of the letters of ``text``, by weight."""
    if not foreign:
        return True
    inside = sum((script_weights(text[start:end]) for start, end in foreign), Counter[str]())
    return inside.total() * 2 <= script_weights(text).total()


def _codes(languages: Iterable[str]) -> frozenset[str]:
    return frozenset(code.replace("_", "-").split("-")[0].lower() for code in languages)


def _in_scripts(text: str, own: frozenset[str]) -> bool:
    """Return whether at least half of the letters of ``text`` are in a script of the languages ``own``."""
    weights = script_weights(text)
    scripts = frozenset[str]().union(*(_SCRIPTS_OF.get(code, {"latin"}) for code in own))
    return 2 * sum(weights[script] for script in scripts) >= weights.total()


@lru_cache(maxsize=4096)
def _reads(text: str, own: frozenset[str]) -> bool | None:
    """Return whether ``text`` is in one of the languages ``own``; ``None`` where nothing says so or otherwise."""
    if not any(map(str.isalpha, text)):
        return None
    if not _in_scripts(text, own):
        return False
    if not all(code in TOLD_BY_LETTERS for code in own if _in_alphabet(code)):
        return None
    words = _prose(text)
    ours, theirs = _own_words(own)
    found = {word.casefold() for word in words}
    if len(found & ours) >= _ENOUGH_WORDS:
        # A name or a quotation has its own.
        other = len(found & theirs)
        if 3 * len(found & ours) > other:
            return None if other else True
    near = frozenset[str]().union(own, *(group for group in _NEAR if group & own))
    lead = _lead(words, near)
    if lead <= _OWN:
        return True
    signs = len(found & theirs) + sum(not word.isascii() for word in found)
    if lead < _FOREIGN + _SIGN * max(0, _ENOUGH_SIGNS - signs):
        return None
    # Names and titles have capitals: of a sentence in another language the rest is in it, too.
    plain = _lead([word for word in words if word[0].islower()], near)
    return False if plain >= _FOREIGN_PLAIN else None


@cache
def _own_words(own: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the function words of the languages ``own`` alone, and those of the others alone."""
    ours = frozenset[str]().union(*(words for code, words in WORDS_OF.items() if code in own))
    theirs = frozenset[str]().union(*(words for code, words in WORDS_OF.items() if code not in own))
    return ours - theirs, theirs - ours


def _in_alphabet(code: str) -> bool:
    return not _ALPHABETS.isdisjoint(_SCRIPTS_OF.get(code, {"latin"}))


def _lead(words: Sequence[str], own: frozenset[str]) -> float:
    """Return by how much the likeliest other language leads over ``own``; 0.0 where nothing is known."""
    scores = _scores(words)
    mine = [place for place, code in enumerate(TOLD_BY_LETTERS) if code in own]
    if scores is None or not mine:
        return 0.0
    best = scores[mine].max()
    scores[mine] = -np.inf
    return float(scores.max() - best)


def _scores(words: Sequence[str]) -> NDArray[np.float32] | None:
    """Return how likely each language of the table is, shape (languages,); ``None`` without known n-grams."""
    scores = _logs(" ".join(words))
    if scores is not None:
        for word in {word.casefold() for word in words} & _TELLING.keys():
            scores[_places(_TELLING[word])] += _WORD
    return scores


@cache
def _places(codes: tuple[str, ...]) -> list[int]:
    return [TOLD_BY_LETTERS.index(code) for code in codes]


def _prose(text: str) -> list[str]:
    """Return the words of ``text`` outside of code, addresses and quotations, initials left out."""
    words = _LETTERS.findall(_NO_PROSE.sub(" ", text)) or _LETTERS.findall(text)
    words = [word for word in words if len(word) > 1 or word.islower()]
    return [word.lower() for word in words] if text.isupper() else words


def _logs(text: str) -> NDArray[np.float32] | None:
    """Return each language's log-likelihood by n-grams, shape (languages,); ``None`` where none is known."""
    places, logs = _table()
    text = f" {unicodedata.normalize('NFC', text)} "
    counts: Counter[int] = Counter()
    for end in range(1, len(text) + 1):
        for start in range(max(0, end - _LONGEST_NGRAM), end):
            if (place := places.get(text[start:end])) is not None:
                counts[place] += 1
                break
    if not counts:
        return None
    found = np.fromiter(counts.keys(), np.intp, len(counts))
    amounts = np.log1p(np.fromiter(counts.values(), np.float32, len(counts)))
    result: NDArray[np.float32] = amounts @ (logs[found].astype(np.float32) / _STEPS + _FLOOR)
    return result
