"""Look around in the tokens of a text: what a number counts, and whether it is stated as exact. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from truthlens.text.values import numerals
from truthlens.text.values.numerals import starters
from truthlens.text.values.tokens import HAN, WORD, Token, lows
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
    "over above exceeding exceeds exceed beyond least minimum > ≥ über mindestens plus supérieur superior mínimo 超过 至少 以上"
)
_BELOW = word_set("under below most maximum within < ≤ unter höchstens bis moins menos máximo 不到 低于 最多")
_MORE = word_set("more greater higher longer older mehr plus más later upwards")
_LESS = word_set("less fewer lower shorter younger weniger moins menos earlier short shy")
_THAN = frozenset(("than", "als", "de", "que", "of"))
STARTERS = {language: starters(language) for language in numerals.LANGUAGES}
STOPS = STOP_WORDS | ENGLISH_STOPS
_NO_NOUN = word_set(
    "per each every ago old later earlier more less fewer total only first last next am pm in-all was were is are had has have will"
    " did do does came went took said lies stand stands cost costs runs apply applies percent once"
)
_MOST_NOUNS = 3
_DETERMINERS = word_set("the its their his her our your these those all")


def worded(language: str) -> str:
    """Return the language whose number words are read: English where none is known, ``""`` where there is no list of them."""
    return language if language in STARTERS else "" if language else "en"


class Cursor:
    """The tokens of a text.

    Args:
        text: all of it.
        listed: its tokens.
        language: ``en``, ``de``, ``fr``, ``es``, ``zh``, ``ja``, another code, or ``""`` where it is unknown.
    """

    def __init__(self, text: str, listed: Sequence[Token], language: str) -> None:
        self._text, self._listed, self._language = text, listed, language
        self._lows = lows(listed)
        self._worded = worded(language)
        # Tokens before belong to a value that was read.
        self._free = 0
        self._starters = STARTERS.get(self._worded, frozenset())

    def _joined(self, place: int) -> bool:
        """Return whether the token at ``place`` stands right behind the one before."""
        return 0 < place < len(self._listed) and self._listed[place].start == self._listed[place - 1].end

    def _nouns(self, behind: int, *, of_too: bool = False) -> tuple[str, ...]:
        """Return stems of the words behind a number that may be what it counts: up to the next mark or function word."""
        found: list[str] = []
        at = behind
        if self._lows[at] == "of":
            at += 1
            while self._lows[at] in _DETERMINERS or (
                at < len(self._listed) and self._lows[at] in self._starters
            ):
                at += 1
        while at < len(self._listed) and len(found) < _MOST_NOUNS:
            token = self._listed[at]
            if token.sort == HAN:
                found.append(token.low[:3])
                break
            if token.low == "-" and self._joined(at):
                at += 1
                continue
            if token.sort != WORD or token.low in STOPS or token.low in _NO_NOUN:
                break
            found.append(stem(token.low))
            at += 1
        return tuple(found)

    def _bound(self, first: int) -> Bound:
        one, two = self._lows[first - 1], self._lows[first - 2]
        if self._lows[first - 1] in CURRENCY_SIGNS:
            one, two = two, self._lows[first - 3]
        if one in ("a", "an", "the", "to", "at", "of") and two not in ("up", "more", "less", "fewer"):
            one, two = two, self._lows[first - 3]
        if one in _THAN and self._lows[first - 3] in ("no", "not"):
            return Bound.BELOW if two in _MORE else Bound.ABOVE
        if (one in _THAN and two in _MORE) or (one in _ABOVE and one != "plus"):
            return Bound.ABOVE
        if (one in _THAN and two in _LESS) or one in _BELOW or (one == "to" and two == "up"):
            return Bound.BELOW
        if (
            one in _ABOUT
            or one.endswith(("约", "大约", "約"))
            or (two in ("just", "close") and one in ("over", "under", "to"))
        ):
            return Bound.ABOUT
        return Bound.EXACT
