"""Put fixed delimiters around all data in a prompt, and escape data so that it cannot imitate them.

A tag is ``<truthlens:name …>`` or ``</truthlens:name>``. Data is escaped: where an opening angle bracket, or
a character or character reference that reads as one, comes before the prefix, a broken bar is put behind it.
All other text stays as it is, so that code and markup in the evidence remain readable, and ``unmarked`` takes
the bar out again. What this does not do: it does not assess what the data says, and it does not cut anything
(``excerpts``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from truthlens.core.records.exchange import Passage
from truthlens.core.records.verdict import Mark
from truthlens.prompts.excerpts import OMITTED, excerpts

PREFIX = "truthlens:"
MOST_CHARS = 24_000

_NAME = PREFIX.rstrip(":")
_BAR = "¦"
_MOST_LABEL_CHARS = 120
_MOST_VALUE_CHARS = 20 * _MOST_LABEL_CHARS  # read at most: white space may fill most of them
# What a model may read as an opening angle bracket: the character, its look-alikes, and the ways to write it
# in markup, in a string literal or in a URL. What normalisation turns into one of them is written as an escape. Backslashes are tried from the first of a run only.
_OPEN = re.compile(
    "[<＜﹤‹˂ᐸ\u2329〈⟨《⟪❬❮❰⦑⧼≪≺\u226e\u2280\ufe3d\ufe3f]|&(?:amp;)*(?:lt|#0*60|#x0*3c);?|(?<!\\\\)\\\\++(?:u003c|x3c|u\\{3c\\})|%(?:25)*3c",
    re.IGNORECASE,
)
_SLASHES = frozenset("/／⁄∕╱⧸⟋\\＼﹨∖⧵⧹")
# Letters that take no room, and one that shows nothing.
_BLANKS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
_PASSED_OVER = frozenset({"Mn", "Me", "Cf", "Cc", "Cn", "Co", "Zs", "Zl", "Zp"})
_BETWEEN_LETTERS = frozenset({"Mn", "Me", "Cf", "Cc"})
# Letters of other alphabets that look like one of the prefix and have no compatibility decomposition to it.
_LOOK_ALIKES = str.maketrans(
    {
        **dict.fromkeys("тτᴛ", "t"),
        **dict.fromkeys("гᴦꭇꭈʀ", "r"),
        **dict.fromkeys("υսᴜцц", "u"),
        **dict.fromkeys("һհнʜ", "h"),
        **dict.fromkeys("ӏi1|ǀіιʟ", "l"),
        **dict.fromkeys("еєεҽ℮ᴇ", "e"),
        **dict.fromkeys("пոηɴ", "n"),
        **dict.fromkeys("ѕꜱտ", "s"),
    }
)
_TAG_END = re.compile(r"[^<>＜＞\n]{0,200}?(?:[>＞﹥›〉\u232a\u226f\ufe40⟩]|&(?:amp;)*gt;?)", re.IGNORECASE)
_COLONS = frozenset(":：﹕︓∶꞉ː׃\u2a74\U00010781")


def escape(text: str) -> str:
    """Return ``text`` in which nothing can pass for one of our tags; every other character stays."""
    return _with_inserted(text, ((place, _BAR) for place in _imitations(text)))


def tag(name: str, text: str, **attributes: str | int) -> str:
    """Return ``text`` escaped and between tags, each on its own line; values of attributes are made safe.

    Args:
        name: of the tag, without the prefix; one of ours, never data.
        text: data.
        attributes: names are ours, values may be data.
    """
    return f"{_open_tag(name, attributes)}\n{escape(text)}\n</{PREFIX}{name}>"


def inline(name: str, text: str, **attributes: str | int) -> str:
    """Return the same as ``tag``, but on one line."""
    return f"{_open_tag(name, attributes)}{escape(text)}</{PREFIX}{name}>"


def evidence(
    passages: Sequence[Passage],
    *,
    near: Sequence[int] = (),
    most_chars: int = MOST_CHARS,
    around: Mapping[int, Sequence[tuple[int, int]]] | None = None,
) -> str:
    """Return the passages between tags, numbered from 1 in the order of the request.

    Where they are longer than ``most_chars`` together, passages of ``near`` come first in line for the space,
    and what is left out is shown by ``[…]``. A passage is cut between sentences.

    Args:
        passages: of the exchange.
        near: indexes of passages that matter most, the most important first.
        most_chars: characters of passages at most, tags not counted.
        around: by index of a passage, the characters that must stay when it is cut.
    """
    kept = excerpts(
        [passage.text for passage in passages], near=near, most_chars=most_chars, around=around or {}
    )
    parts: list[str] = []
    for number, (passage, text) in enumerate(zip(passages, kept, strict=True), start=1):
        if text:
            labels = {"label": passage.id, "title": passage.title}
            shown = {name: label for name, label in labels.items() if label}
            parts.append(tag("passage", text, id=number, **shown))
        elif not parts or parts[-1] != OMITTED:
            parts.append(OMITTED)
    body = "\n".join(parts)
    return (
        f"<{PREFIX}evidence>\n{body}\n</{PREFIX}evidence>"
        if body
        else f"<{PREFIX}evidence></{PREFIX}evidence>"
    )


def marked(text: str, marks: Iterable[Mark]) -> str:
    """Return ``text`` escaped, with numbered span tags around ``marks``, in order, not overlapping; see ``unmarked``."""
    inserted = [(place, 1, _BAR) for place in _imitations(text)]
    for number, mark in enumerate(marks, start=1):
        opening = _open_tag("span", {"n": number, "confidence": f"{mark.score:.2f}"})
        inserted += [(mark.start, 2, opening), (mark.end, 0, f"</{PREFIX}span>")]
    return _with_inserted(text, ((place, what) for place, _, what in sorted(inserted)))


def unmarked(text: str) -> str:
    """Return ``text``, usually a model's, without our tags and with our escape undone."""
    pieces: list[str] = []
    done = 0
    for opening, end in _tags(text):
        if opening < done:
            continue
        if rest := _TAG_END.match(text, end):
            pieces.append(text[done:opening])
            done = rest.end()
    pieces.append(text[done:])
    bare = "".join(pieces)
    return "".join(_without_bars(bare))


def imitations(text: str) -> int:
    """Return how many openings of one of our tags, real or look-alike, ``text`` holds."""
    return sum(1 for _ in _tags(text))


def _open_tag(name: str, attributes: Mapping[str, str | int]) -> str:
    shown = "".join(f' {key}="{_attribute(str(value))}"' for key, value in attributes.items())
    return f"<{PREFIX}{name}{shown}>"


def _attribute(value: str) -> str:
    """Return a value on one line, without quotation marks or angle brackets."""
    value = value[:_MOST_VALUE_CHARS]
    line = " ".join(
        "".join(" " if unicodedata.category(c) in {"Cc", "Cf", "Cs"} else c for c in value).split()
    )
    bare = line.replace('"', "'").replace("<", "(").replace(">", ")")
    cut = bare if len(bare) <= _MOST_LABEL_CHARS else bare[: _MOST_LABEL_CHARS - 1] + "…"
    return escape(cut)


def _with_inserted(text: str, inserted: Iterable[tuple[int, str]]) -> str:
    pieces: list[str] = []
    done = 0
    for place, what in inserted:
        pieces += (text[done:place], what)
        done = place
    pieces.append(text[done:])
    return "".join(pieces)


def _without_bars(text: str) -> Iterator[str]:
    """Yield the pieces of ``text`` with one bar less at each escaped place."""
    done = 0
    for _, place, _ in _openings(text, barred=True):
        if text[place : place + 1] == _BAR:
            yield text[done:place]
            done = place + 1
    yield text[done:]


def _imitations(text: str) -> Iterator[int]:
    """Yield where a bar must be inserted: after each opening bracket, however many bars follow it already.

    A text that holds our escape gets one bar more, so that taking one out gives every text back.
    """
    return (place for _, place, _ in _openings(text, barred=True))


def _tags(text: str) -> Iterator[tuple[int, int]]:
    """Yield where a tag and its name begin; the prefix's word without its colon is no tag."""
    for opening, _, end in _openings(text, barred=False):
        colon = end
        while colon < len(text) and _passed_over(text[colon]):
            colon += 1
        if text[colon : colon + 1] in _COLONS:
            yield opening, colon + 1


def _openings(text: str, *, barred: bool) -> Iterator[tuple[int, int, int]]:
    """Yield where a bracket precedes the prefix: (start of the bracket, its end, end of the prefix's name).

    Each character is looked at once per bracket before it, and what may be between holds no bracket: linear.
    """
    for match in _OPEN.finditer(text):
        place = match.end()
        if barred:
            while text[place : place + 1] == _BAR:
                place += 1
        while place < len(text) and _passed_over(text[place]):
            place += 1
        if end := _end_of_name(text, place):
            yield match.start(), match.end(), end


def _end_of_name(text: str, place: int) -> int:
    """Return where the prefix's name that starts at ``place`` ends; 0 if another word is there."""
    read = ""
    while place < len(text):
        read += _folded(text[place])
        place += 1
        if read.startswith(_NAME):
            return place
        if not _NAME.startswith(read):
            return 0
    return 0


@lru_cache(maxsize=4096)
def _passed_over(character: str) -> bool:
    return (
        character in _SLASHES
        or character in _BLANKS
        or character.isspace()
        # A lone accent, decomposed, is a space with an accent on it.
        or all(unicodedata.category(c) in _PASSED_OVER for c in unicodedata.normalize("NFKD", character))
    )


@lru_cache(maxsize=4096)
def _folded(character: str) -> str:
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", character).casefold()).casefold()
    kept = (c for c in plain if unicodedata.category(c) not in _BETWEEN_LETTERS and c not in _BLANKS)
    bare = "".join(kept).translate(_LOOK_ALIKES)
    return bare.strip() if len(plain) > 1 else bare
