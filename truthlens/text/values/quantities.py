"""Read the typed values of a text: money, percentages, dates, times, ratios, measures, counts, versions, labels. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType

from truthlens.core.cancellation import checkpoint
from truthlens.text.values import numerals
from truthlens.text.values.amounts import AmountReader, Written
from truthlens.text.values.clocks import NOONS, Moment
from truthlens.text.values.cursor import STARTERS, STOPS, worded
from truthlens.text.values.dates import MONTHS
from truthlens.text.values.moments import WEEKDAYS, Moments
from truthlens.text.values.numerals import fraction_words, is_one, read_words, scale_after, written
from truthlens.text.values.tokens import (
    BREAK,
    HAN,
    HAN_NUMBER,
    MARK,
    NUMBER,
    WORD,
    Token,
    language_of,
    tokens,
)
from truthlens.text.values.typed import Bound, TypedValue, ValueKind
from truthlens.text.values.units import (
    CURRENCY_CODES,
    CURRENCY_NAMES,
    CURRENCY_SIGNS,
    LABELS,
    REFERENCES,
    UNITS,
)
from truthlens.text.word_forms import word_set

__all__ = ["Bound", "Reader", "TypedValue", "ValueKind", "typed_values"]

_ONE, _HUNDRED = Decimal(1), Decimal(100)
_MOST_GROUPS = 6  # of three digits
_FRACTIONS = {language: fraction_words(language) for language in numerals.LANGUAGES}


def typed_values(text: str, *, language: str | None = None) -> list[TypedValue]:
    """Return the values of ``text`` by position, not overlapping.

    Numbering of lists, ordinals, numbers within names (``KH-02``), citation marks and references to passages are none.
    """
    listed = tokens(text)
    return Reader(text, listed, language_of(listed) if language is None else language).values()


def beginnings(listed: Sequence[Token], language: str) -> list[int]:
    """Return the tokens at which a value may begin, in order: what is no word and no mark, and words that begin one."""
    begin = _BEGIN.get(worded(language), _MOMENT_WORDS)
    if language == "de":
        return [
            at
            for at, (sort, _, _, low) in enumerate(listed)
            if sort in _VALUE_SORTS
            or (
                sort == WORD
                and (low in begin or (len(low) > 8 and numerals.number_word(low, "de") is not None))
            )
        ]
    return [
        at
        for at, (sort, _, _, low) in enumerate(listed)
        if sort in _VALUE_SORTS or (sort == WORD and low in begin)
    ]


class Reader(AmountReader):
    """Reads the values of a text whose tokens are known."""

    def __init__(self, text: str, listed: Sequence[Token], language: str) -> None:
        super().__init__(text, listed, language)
        self._moments = Moments(text, listed, self._worded, self._lows)

    def values(self) -> list[TypedValue]:
        """Return the values by position."""
        return list(self._found())

    def _found(self) -> Iterator[TypedValue]:
        behind = 0
        for place in beginnings(self._listed, self._language):
            if place < behind:
                continue
            checkpoint()
            found = self._moment(self._moments.at(place)) or self._quantity(place)
            if found is not None:
                yield found
                behind = self._free = max(found.behind, place + 1)

    def _moment(self, moment: Moment | None) -> TypedValue | None:
        if moment is None:
            return None
        parts, first, behind = moment.parts, moment.first, moment.behind
        amounts: tuple[Decimal, ...] = ()
        if parts.keys() == {"year"} and moment.unsure:
            following = self._listed[behind] if behind < len(self._listed) else None
            if self._is_counted_year(first, behind, following):
                return None
            amounts = (Decimal(parts["year"]),)
        elif moment.unsure and "time" in parts and "half" not in parts:
            amounts = (Decimal(parts["time"] // 60 or 12),)
        kind = ValueKind.TIME if moment.is_clock else ValueKind.DATE
        start, end = self._listed[first].start, self._listed[behind - 1].end
        # A bare year, whose amount is compared as well, keeps what is said of amounts.
        bound = (
            self._bound(first) if amounts else _BOUND_OF_TIME.get(self._lows[first - 1]) or self._bound(first)
        )
        return TypedValue(
            kind, start, end, amounts, parts=MappingProxyType(parts), bound=bound, unsure=moment.unsure,
            first=first, behind=behind,
        )  # fmt: skip

    def _is_counted_year(self, first: int, behind: int, following: Token | None) -> bool:
        """Return whether four digits are an amount: "$2000", "1500 metres", "no. 1999"."""
        before = self._lows[first - 1]
        if (
            before in CURRENCY_SIGNS
            or before in CURRENCY_CODES
            or before in LABELS
            or before in ("#", ".", "+", "°")
        ):
            return True
        if before == "-" and self._joined(first) and self._joined(first - 1):
            return True
        if following is None or following.sort in (MARK, BREAK):
            return (following is not None and following.low in ("%", "€", "°", "$", "£")) or (
                following is not None and following.low == "x" and self._joined(behind)
            )
        if following.low in UNITS and following.low not in ("in", "an", "a"):
            return True
        if (
            following.low in CURRENCY_NAMES
            or following.low in CURRENCY_CODES
            or following.sort in (HAN, HAN_NUMBER)
        ):
            return True
        if before in _YEAR_BEFORE:
            return False
        plural = following.low.endswith("s") and len(following.low) > 3 and following.low not in STOPS
        return plural and not self._text[following.start].isupper()

    def _quantity(self, place: int) -> TypedValue | None:
        token = self._listed[place]
        if token.sort == NUMBER:
            return self._digits(place)
        if token.sort == HAN_NUMBER:
            return self._han(place)
        if token.sort != WORD or not self._worded:
            return None
        read = read_words(self._listed, place, self._worded, self._text)
        if read is None:
            return None
        value, behind, fraction = read
        if fraction:
            return self._fraction(place, behind, value)
        if (
            self._lows[behind] == "and"
            and self._lows[behind + 1] == "a"
            and self._lows[behind + 2] in ("half", "quarter")
        ):
            value += Decimal(1) / _FRACTIONS["en"][self._lows[behind + 2]]
            behind += 3
        first = place
        if is_one(self._lows[place - 1], self._worded) and self._lows[place] in (
            "hundred",
            "thousand",
            "million",
            "dozen",
            "couple",
        ):
            first = place - 1
        one = behind - place == 1 and value == 1
        found = self._with_unit(Written(first, behind, (value,), spelled=True), only_unit=one)
        if found is not None and found.kind is ValueKind.COUNT and self._follows_number(place):
            return replace(found, unsure=True)  # "six dollars fifty" without its dollars
        return self._with_cents(found)

    def _follows_number(self, place: int) -> bool:
        before = self._listed[place - 1] if place else None
        return (
            before is not None
            and (before.sort == NUMBER or before.low in self._starters)
            and self._text[before.end] == " "
        )

    def _with_cents(self, found: TypedValue | None) -> TypedValue | None:
        """Return "six dollars fifty" as one sum."""
        if (
            found is None
            or found.kind is not ValueKind.CURRENCY
            or found.place != 1
            or found.behind >= len(self._listed)
        ):
            return found
        cents = numerals.number_word(self._lows[found.behind], self._worded)
        if (
            cents is None
            or cents < 5
            or self._lows[found.behind + 1] in UNITS
            or self._text[self._listed[found.behind - 1].end] != " "
        ):
            return found
        behind = found.behind + 1
        if (
            (more := numerals.number_word(self._lows[behind + 1], self._worded))
            and self._lows[behind] == "-"
            and cents >= 20
        ):
            cents, behind = cents + more, behind + 2
        amounts = tuple(each + Decimal(cents) / 100 for each in found.amounts)
        return replace(
            found, amounts=amounts, behind=behind, end=self._listed[behind - 1].end, place=Decimal("0.01")
        )

    def _fraction(self, place: int, behind: int, value: Decimal) -> TypedValue | None:
        """Read "half an hour", "a third of", "half a million"; nothing where "third" is an ordinal."""
        low = self._lows[place]
        part = self._lows[behind - 1]
        first = place - 1 if is_one(self._lows[place - 1], self._worded) else place
        before = self._lows[first - 2]
        if self._lows[first - 1] == "and" and before in UNITS and self._lows[first - 3] in ("a", "an", "one"):
            whole = Written(first - 3, behind, (1 + value,), Decimal("0.01"), spelled=True)
            return self._measured(whole, before)
        at = behind + (self._lows[behind] in ("a", "an", "of"))
        at += self._lows[at] in ("a", "an")
        if (scale := scale_after(self._listed, at, self._worded)) and scale > 2:
            return self._with_unit(Written(first, at + 1, (value * Decimal(10) ** scale,), spelled=True))
        ordinal = part not in _HALF and first == place and behind - place == 1
        if (
            self._lows[at] in UNITS
            and self._lows[at] not in ("in", "an", "t", "h", "m")
            and (not ordinal or at - behind > 1)
        ):
            return self._with_unit(Written(first, at, (value,), Decimal("0.01"), spelled=True))
        if (
            low in ("third", "fifth", "tenth", "sixth", "eighth", "fifths")
            and first == place
            and behind - place == 1
        ):
            return None
        if (
            low in ("quarter", "quarters", "viertel", "cuarto", "quart")
            and first == place
            and behind - place == 1
        ):
            return None
        if low in ("media", "medio", "quinto", "décimo", "second") or (
            low == "half" and self._lows[place - 1] in _HALVES_BEFORE
        ):
            return None
        if low == "half" and (
            self._lows[behind] in ("way", "year", "term", "time", "board") or self._lows[behind] == "-"
        ):
            return None
        start, end = self._listed[first].start, self._listed[behind - 1].end
        return TypedValue(
            ValueKind.PERCENTAGE, start, end, (value * 100,), "share", self._nouns(behind, of_too=True), place=Decimal("0.5"),
            bound=self._bound(first), spelled=True, first=first, behind=behind,
        )  # fmt: skip

    def _digits(self, place: int) -> TypedValue | None:
        token = self._listed[place]
        if self._is_mark(place):
            return None
        if token.low.count(".") >= 2 and not written(token.low, self._language):
            start = token.start - (self._lows[place - 1] == "v" and self._joined(place))
            return TypedValue(
                ValueKind.VERSION,
                start,
                token.end,
                unit=token.low,
                first=place,
                behind=place + 1,
                named=token.low,
            )
        low, behind = self._spaced(place)
        amounts = written(low, self._language)
        if not amounts:
            return None
        exponent = amounts[0].as_tuple().exponent
        digit = _ONE.scaleb(exponent) if isinstance(exponent, int) else _ONE
        if self._lows[behind] == "/" and self._joined(behind) and self._joined(behind + 1):
            under = self._lows[behind + 1]
            if (
                under.isdecimal()
                and under not in ("0", "00")
                and len(under) <= 2
                and len(token.low) == 1
                and int(under) > int(token.low)
            ):
                amounts, behind, digit = (amounts[0] / int(under),), behind + 2, Decimal("0.01")
        if self._lows[behind] in _ORDINAL and self._joined(behind):
            return None
        return self._with_unit(Written(place, behind, amounts, digit))

    def _spaced(self, place: int) -> tuple[str, int]:
        """Return the digits of a number and the token behind it: "1 234,50" is one where decimals have a comma."""
        low, behind = self._lows[place], place + 1
        if self._language not in ("fr", "es", "de") or not low.isdecimal() or len(low) > 3:
            return low, behind
        while behind < min(len(self._listed), place + _MOST_GROUPS) and self._listed[behind].sort == NUMBER:
            digits = self._lows[behind]
            gap = self._text[self._listed[behind - 1].end : self._listed[behind].start]
            if gap != " " or not (digits[:3].isdecimal() and len(digits.split(",")[0]) == 3):
                break
            low, behind = low + digits, behind + 1
            if "," in digits:
                break
        return low, behind

    def _han(self, place: int) -> TypedValue | None:
        token = self._listed[place]
        value = numerals.han_number(token.low)
        if value is None:
            return None
        following = self._lows[place + 1] if self._joined(place + 1) else ""
        if self._lows[place - 1].endswith("分之") and self._joined(place):
            under = numerals.han_number(self._han_before(place)) or _HUNDRED
            start = self._listed[place - 1 - (self._lows[place - 1] == "分之")].start
            return TypedValue(
                ValueKind.PERCENTAGE, start, token.end, (value * 100 / under,), "%", place=Decimal("0.5"),
                bound=self._bound(place - 1), spelled=True, first=place, behind=place + 1,
            )  # fmt: skip
        if following.startswith("分之"):
            return None
        if len(token.low) == 1 and not following.startswith(_HAN_COUNTERS):
            return None
        if self._lows[place - 1].endswith(("第", "之")) or token.low == "一":
            return None
        return self._with_unit(Written(place, place + 1, (value,), spelled=True))

    def _han_before(self, place: int) -> str:
        mark = self._lows[place - 1]
        if mark == "百分之":
            return "百"
        return (
            self._lows[place - 2] if mark == "分之" and self._listed[place - 2].sort == HAN_NUMBER else "百"
        )

    def _is_mark(self, place: int) -> bool:
        """Return whether a number is the number of a list's item, a citation, or part of a name or an address."""
        token = self._listed[place]
        text, start, end = self._text, token.start, token.end
        before, after = text[start - 1 : start], text[end : end + 1]
        if (before == "[" and after == "]") or before in {"^", "#", "@", "【"}:
            return True
        if self._lows[place - 1] in REFERENCES or (
            self._lows[place - 1] in ("#", "no") and self._lows[place - 2] in REFERENCES
        ):
            return True
        if before == "-" and place > 1 and self._joined(place - 1) and self._listed[place - 2].sort == WORD:
            return self._lows[place - 2] not in ("to", "mid", "pre", "post")
        if (
            before.isalpha()
            and before not in "$€£¥x"
            and not before > "\u3000"
            and self._lows[place - 1] not in (*CURRENCY_CODES, "v", "us")
        ):
            return True
        if before in "_/\\" and before:
            return True
        if after in ".):、" and token.low.isdecimal() and len(token.low) <= 2:
            line = text[text.rfind("\n", 0, start) + 1 : start] if start else ""
            return (
                len(line) < 12
                and not line.strip(" \t*#(-|>")
                and text[end + 1 : end + 2] in (" ", "\t", "*", "")
            )
        return after == "_"


_YEAR_BEFORE = word_set(
    "in since by until of from during and to before after between till around about early late mid the seit ab bis im en depuis"
    " desde hasta jusqu entre"
)
_BOUND_OF_TIME = {
    **dict.fromkeys(("before", "until", "till", "by", "vor", "bis", "avant", "antes", "hasta"), Bound.BELOW),
    **dict.fromkeys(("after", "nach", "après"), Bound.ABOVE),
}
_HALF = frozenset(("half", "halbe", "halben", "halb", "halbes", "demi", "demie"))
_HALVES_BEFORE = frozenset(("first", "second", "other", "better", "past"))
_ORDINAL = frozenset(("st", "nd", "rd", "th", "º", "ª", "er", "ème", "e"))
_HAN_COUNTERS = tuple(
    "个個名人位次条條件台部本张張篇章段项項家所座万亿元美欧年天日月周时点小分秒米公千克度倍成套辆只種つ枚回冊歳円階"
)
_MOMENT_WORDS = frozenset((*NOONS, *MONTHS, *WEEKDAYS, *word_set("q half quarter first second third fourth")))
_MOMENT_WORDS |= {f"{word}'s" for word in _MOMENT_WORDS}
_BEGIN = {language: words | _MOMENT_WORDS for language, words in STARTERS.items()}
_VALUE_SORTS = frozenset((NUMBER, HAN, HAN_NUMBER))
