"""Look around in the tokens of a text: what stands at a place, what a number counts. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from truthlens.text.values.numerals import LANGUAGES, number_word, starters
from truthlens.text.values.tokens import BREAK, HAN, WORD, Token, lows
from truthlens.text.values.typed import Bound
from truthlens.text.values.units import CURRENCY_SIGNS
from truthlens.text.word_forms import STOP_WORDS, word_set
from truthlens.text.words import STOP_WORDS as ENGLISH_STOPS
from truthlens.text.words import stem

_ABOUT = word_set(
    "about around roughly approximately nearly almost some circa ca approx near etwa rund ungefähr fast knapp environ près presque"
    " unos unas casi aproximadamente alrededor cerca approximate ~ ≈ 约 大约 近 将近 約 ほぼ"
)
_ABOVE = word_set(
    "over above exceeding exceeds exceed beyond least minimum > ≥ über mindestens supérieur superior mínimo 超过 至少 以上"
)
_BELOW = word_set("under below most maximum within < ≤ unter höchstens bis moins menos máximo 不到 低于 最多")
_MORE = word_set("more greater higher longer older mehr plus más later upwards")
_LESS = word_set("less fewer lower shorter younger weniger moins menos earlier short shy")
_BOUNDS = (
    dict.fromkeys(_BELOW, Bound.BELOW)
    | dict.fromkeys(_ABOVE, Bound.ABOVE)
    | dict.fromkeys(_ABOUT, Bound.ABOUT)
)
_BOUNDS_BEFORE_THAN = dict.fromkeys(_LESS, Bound.BELOW) | dict.fromkeys(_MORE, Bound.ABOVE)
_ARTICLES = frozenset(("a", "an", "the", "to", "at", "of"))
_BEFORE_THAN = frozenset(("up", "more", "less", "fewer"))
_BESIDE = frozenset(("over", "under", "to"))
_THAN = frozenset(("than", "als", "de", "que", "of"))
STARTERS = {language: starters(language) for language in LANGUAGES}
STOPS = STOP_WORDS | ENGLISH_STOPS
_NO_NOUN = word_set(
    "per each every ago old later earlier more less fewer total only first last next am pm in-all was were is are had has have will"
    " did do does came went took said lies stand stands cost costs runs apply applies percent once"
)
_MOST_NOUNS = 3
_DETERMINERS = word_set("the its their his her our your these those all")


def is_plural(low: str) -> bool:
    """Return whether a word has the form of a plural in "s"."""
    return len(low) > 3 and low.endswith("s") and not low.endswith("ss")


def worded(language: str) -> str:
    """Return the language whose number words are read: English where none is known, ``""`` where there is no list of them."""
    return language if language in STARTERS else "" if language else "en"


class Cursor:
    """The tokens of a text, looked at by place; before the first and behind the last stands ``""``.

    Args:
        text: all of it.
        listed: its tokens.
        language: ``en``, ``de``, ``fr``, ``es``, ``zh``, ``ja``, another code, or ``""`` where it is unknown.
    """

    def __init__(self, text: str, listed: Sequence[Token], language: str) -> None:
        self.text, self.listed, self.language = text, listed, language
        self.lows = lows(listed)
        self.worded = worded(language)
        self.starters = STARTERS.get(self.worded, frozenset[str]())
        self.free = 0
        """Tokens before belong to a value that was read."""

    def sort(self, place: int) -> str:
        """Return the sort of a token, ``""`` where there is none."""
        return self.listed[place].sort if 0 <= place < len(self.listed) else ""

    def joined(self, place: int, many: int = 1) -> bool:
        """Return whether each of so many tokens from ``place`` on stands right behind the one before."""
        listed = self.listed
        if not 0 < place <= len(listed) - many:
            return False
        if many > 1 and not self.joined(place + 1, many - 1):
            return False
        return listed[place].start == listed[place - 1].end

    def gap(self, place: int) -> str:
        """Return what stands between the token before ``place`` and that at ``place``."""
        return self.text[self.listed[place - 1].end : self.listed[place].start] if place else ""

    def written(self, first: int, behind: int | None = None) -> str:
        """Return a token, or those from ``first`` to before ``behind``, as the text has them."""
        if first >= len(self.listed):
            return ""
        return self.text[self.listed[first].start : self.listed[first if behind is None else behind - 1].end]

    def is_capital(self, place: int) -> bool:
        """Return whether a token begins with a capital."""
        return self.text[self.listed[place].start].isupper()

    def is_noun(self, place: int) -> bool:
        """Return whether a word that says something stands at a place."""
        return self.sort(place) == WORD and self.lows[place] not in STOPS

    def number(self, place: int, digits: int = 2) -> int | None:
        """Return the whole number of up to so many digits at a place."""
        low = self.lows[place]
        return int(low) if low.isascii() and low.isdecimal() and len(low) <= digits else None

    def english(self, place: int) -> int:
        """Return what the English number word at a place says, 0 where there is none."""
        return number_word(self.lows[place], "en") or 0

    def nouns(self, behind: int) -> tuple[str, ...]:
        """Return stems of the words behind a number that may be what it counts.

        They end at a mark or function word. The first plural stands in front: "12 senior engineers" counts
        engineers. Without one the first word does.
        """
        found: list[str] = []
        plural, at = 0, self._behind_of(behind)
        while at < len(self.listed) and len(found) < _MOST_NOUNS:
            low = self.lows[at]
            if self.sort(at) == HAN:
                found.append(low[:3])
                break
            if low == "-" and self.joined(at):
                at += 1
                continue
            if not self.is_noun(at) or low in _NO_NOUN or self._is_parted(at):
                break
            if not plural and is_plural(low):
                plural = len(found) + 1
            found.append(stem(low))
            at += 1
        if plural:
            found.insert(0, found.pop(plural - 1))
        return tuple(found)

    def _behind_of(self, place: int) -> int:
        """Return the first token behind "of the" and "of the two"."""
        if self.lows[place] == "of":
            place += 1
            while self.lows[place] in _DETERMINERS or self.lows[place] in self.starters:
                place += 1
        return place

    def _is_parted(self, place: int) -> bool:
        """Return whether a gap as between the columns of a table stands before a token."""
        gap = self.gap(place)
        return len(gap) > 1 and gap.isspace()

    def bound(self, first: int) -> Bound:
        """Return how a value whose first token is ``first`` is stated."""
        three, two, one = self.lows[first - 3], self.lows[first - 2], self.lows[first - 1]
        if one in CURRENCY_SIGNS:
            one, two = two, three
        if one in _ARTICLES and two not in _BEFORE_THAN:
            one, two = two, three
        if one in _THAN:
            if three in ("no", "not"):
                return Bound.BELOW if two in _MORE else Bound.ABOVE
            return _BOUNDS_BEFORE_THAN.get(two, Bound.EXACT)
        if one in ("<", ">") and not self._compares(first - 1):
            return Bound.EXACT
        if one.endswith(("约", "約")) or (one in _BESIDE and two in ("just", "close")):
            return Bound.ABOUT
        return Bound.BELOW if (two, one) == ("up", "to") else _BOUNDS.get(one, Bound.EXACT)

    def _compares(self, place: int) -> bool:
        """Return whether "<" or ">" is no quotation mark at the start of a line and no head of an arrow."""
        if place < 1 or self.sort(place - 1) == BREAK:
            return False
        return not (self.joined(place) and self.lows[place - 1] in ("-", "=", "–", ">"))
