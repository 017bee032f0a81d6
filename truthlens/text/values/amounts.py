"""Read what belongs to a number: scale, currency, percent sign, unit, label, noun. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from truthlens.text.values import numerals
from truthlens.text.values.cursor import STOPS, Cursor
from truthlens.text.values.numerals import scale_after
from truthlens.text.values.tokens import HAN, NUMBER, WORD
from truthlens.text.values.typed import TypedValue, ValueKind
from truthlens.text.values.units import (
    CURRENCY_CODES,
    CURRENCY_NAMES,
    CURRENCY_SIGNS,
    HUNDREDTHS,
    LABELS,
    PERCENT,
    UNITS,
)
from truthlens.text.word_forms import word_set
from truthlens.text.words import stem

_ONE = Decimal(1)
_RATIO_WORDS = word_set("ratio dscr leverage quotient verhältnis multiple")
_RATIO_TIMES = frozenset(("x", "×"))
_THE = word_set("the these those both all other its their our my los las les die den der")
_BEFORE_UNIT = word_set(
    "working extra further more full whole consecutive business calendar additional free clear"
)


@dataclass(frozen=True, slots=True)
class Written:
    """A number from one token to before another: ``digit`` is the worth of its last digit, ``spelled`` if it stands in words."""

    first: int
    behind: int
    amounts: tuple[Decimal, ...]
    digit: Decimal = _ONE
    spelled: bool = False


@dataclass(frozen=True, slots=True)
class _Unit:
    """What belongs to a number: a unit of ``factor`` base units, the token behind it and the token where the value begins."""

    kind: ValueKind
    unit: str
    behind: int
    start: int
    factor: Decimal = _ONE
    named: str = ""
    nouns: tuple[str, ...] = ()


class AmountReader(Cursor):
    """Reads values from numbers that were found."""

    def _with_unit(self, number: Written, *, only_unit: bool = False) -> TypedValue | None:
        """Return the value with what belongs to it; with ``only_unit`` nothing without a unit."""
        currency = self._currency_before(number.first)
        power, behind = self._scale(number, currency is not None)
        number = self._two_scales(replace(number, behind=behind), power)
        scale = Decimal(10) ** power
        found = self._unit_of(number, currency)
        if found is None:
            return None if only_unit else self._ratio(number) or self._count(number, scale)
        if only_unit and found.kind is ValueKind.LABEL:
            return None
        return self._made(number, found, scale * found.factor)

    def _scale(self, number: Written, is_money: bool) -> tuple[int, int]:
        """Return the power of ten of the words and letters behind a number, and the token behind them."""
        behind = number.behind
        power = scale_after(self._listed, behind, self._worded)
        if power and not (self._lows[behind] in ("cent", "cents") and not is_money and self._worded != "fr"):
            behind += 1
            while more := scale_after(self._listed, behind, self._worded):
                power, behind = power + more, behind + 1
            return power, behind
        if self._joined(behind) and (
            (is_money and self._lows[behind] in numerals.LETTERS)
            or (not number.spelled and self._is_letter_scale(behind))
        ):
            return numerals.LETTERS[self._lows[behind]], behind + 1
        return 0, behind

    def _two_scales(self, number: Written, power: int) -> Written:
        """Return "1万2千" as one number."""
        behind = number.behind
        if not (
            power
            and self._joined(behind)
            and self._listed[behind].sort == NUMBER
            and self._lows[behind].isdigit()
        ):
            return number
        smaller = scale_after(self._listed, behind + 1, self._worded)
        if not 0 < smaller < power:
            return number
        more = Decimal(self._lows[behind]).scaleb(smaller - power)
        return replace(number, amounts=tuple(each + more for each in number.amounts), behind=behind + 2)

    def _unit_of(self, number: Written, currency: tuple[str, int] | None) -> _Unit | None:
        """Return the unit of a number, ``None`` for a bare one and for a count."""
        first, behind = number.first, number.behind
        low, gap = self._lows[behind], behind
        if low == "-" and self._joined(behind) and self._joined(behind + 1):
            low, gap = self._lows[behind + 1], behind + 1
        if currency is not None:
            return _Unit(
                ValueKind.CURRENCY, currency[0], gap + 1 if low in CURRENCY_CODES else behind, currency[1]
            )
        if (past := self._percent(gap)) is not None:
            return _Unit(ValueKind.PERCENTAGE, "%", past, first, nouns=self._nouns(past, of_too=True))
        if (money := self._currency_word(gap)) is not None:
            return _Unit(ValueKind.CURRENCY, money[0], gap + 1, first, money[1])
        if (measure := self._measure(gap)) is not None:
            known = UNITS[measure[0]]
            return _Unit(ValueKind.MEASURE, known.sort, measure[1], first, known.factor, measure[0])
        if low in _RATIO_TIMES and self._joined(behind) and not self._joined(behind + 1):
            return _Unit(ValueKind.RATIO, "x", behind + 1, first)
        if self._lows[first - 1] in LABELS and not number.spelled:
            return _Unit(ValueKind.LABEL, self._lows[first - 1], behind, first)
        return _Unit(ValueKind.RATIO, "x", behind, first) if self._is_ratio(first) else None

    def _percent(self, place: int) -> int | None:
        """Return the token behind a percent sign or word at ``place``, ``None`` where there is none."""
        low, following = self._lows[place], self._lows[place + 1]
        if low in PERCENT:
            return place + 1 + (following in ("point", "points"))
        return place + 2 if (low, following) in _PER_CENT else None

    def _ratio(self, number: Written) -> TypedValue | None:
        """Return "3:1" as a ratio."""
        behind = number.behind
        if (
            number.spelled
            or self._lows[behind] != ":"
            or not (self._joined(behind) and self._joined(behind + 1))
        ):
            return None
        under = self._lows[behind + 1]
        if not under.isdecimal() or Decimal(under) == 0:
            return None
        ratio = replace(number, amounts=(number.amounts[0] / Decimal(under),))
        return self._made(ratio, _Unit(ValueKind.RATIO, "x", behind + 2, number.first), _ONE)

    def _count(self, number: Written, scale: Decimal) -> TypedValue | None:
        # Behind "the two" stands what was spoken of, and no count.
        if number.spelled and number.behind - number.first == 1 and self._lows[number.first - 1] in _THE:
            return None
        unit = _Unit(ValueKind.COUNT, "", number.behind, number.first, nouns=self._nouns(number.behind))
        made = self._made(number, unit, scale)
        return replace(made, unsure=True) if not number.spelled and self._is_named(number.first) else made

    def _measured(self, number: Written, name: str) -> TypedValue:
        """Return a measure whose unit stands elsewhere."""
        known = UNITS[name]
        unit = _Unit(ValueKind.MEASURE, known.sort, number.behind, number.first, known.factor, name)
        return self._made(number, unit, known.factor)

    def _made(self, number: Written, unit: _Unit, factor: Decimal) -> TypedValue:
        """Return the value of a number in the base unit."""
        first = unit.start
        amounts = tuple(each * factor for each in number.amounts)
        negative = (
            self._lows[first - 1] in ("-", "−", "–") and self._joined(first) and not self._joined(first - 1)
        )
        if first and negative and unit.kind is not ValueKind.LABEL:
            amounts = tuple(-each for each in amounts)
        end = self._listed[min(unit.behind, len(self._listed)) - 1].end
        last = self._listed[unit.behind - 1]
        if last.sort == HAN:
            name = unit.named or next(
                (last.low[:size] for size in (4, 3, 2, 1) if last.low[:size] in CURRENCY_NAMES), last.low
            )
            end = last.start + len(name)
        return TypedValue(
            unit.kind,
            self._listed[first].start,
            end,
            amounts,
            unit.unit,
            unit.nouns,
            place=number.digit * factor,
            bound=self._bound(first),
            named=unit.named,
            spelled=number.spelled,
            first=first,
            behind=unit.behind,
            factor=factor,
        )

    def _is_letter_scale(self, place: int) -> bool:
        """Return whether a letter right behind a number multiplies it: "540k", "48.2M", "3bn"; "2.5m" may be metres."""
        low = self._lows[place]
        if low in ("k", "bn", "mn"):
            return True
        if low not in ("m", "b"):
            return False
        after = self._lows[place + 1]
        return (
            self._text[self._listed[place].start].isupper()
            or after in CURRENCY_CODES
            or after in CURRENCY_NAMES
        )

    def _is_named(self, first: int) -> bool:
        """Return whether a number stands behind a name, as in "Fibre 300"."""
        if first < 1 or self._listed[first - 1].sort != WORD:
            return False
        before = self._listed[first - 1]
        return (
            self._text[before.start].isupper()
            and before.low not in STOPS
            and self._text[before.end : self._listed[first].start] == " "
        )

    def _currency_before(self, first: int) -> tuple[str, int] | None:
        low = self._lows[first - 1] if first > self._free else ""
        if low in CURRENCY_SIGNS:
            at = first - 1
            if self._lows[at - 1] in ("us", "hk", "a", "c", "nz") and self._joined(at):
                at -= 1
            return CURRENCY_SIGNS[low], at
        return (CURRENCY_CODES[low], first - 1) if low in CURRENCY_CODES else None

    def _currency_word(self, place: int) -> tuple[str, Decimal] | None:
        low = self._lows[place]
        if low in CURRENCY_SIGNS or low in CURRENCY_CODES or low in CURRENCY_NAMES:
            return CURRENCY_SIGNS.get(low) or CURRENCY_CODES.get(low) or CURRENCY_NAMES[low], _ONE
        if low in HUNDREDTHS:
            return HUNDREDTHS[low] or "money", Decimal("0.01")
        if place < len(self._listed) and self._listed[place].sort == HAN:
            for length in (4, 3, 2, 1):
                if low[:length] in CURRENCY_NAMES:
                    return CURRENCY_NAMES[low[:length]], _ONE
        return None

    def _measure(self, place: int) -> tuple[str, int] | None:
        """Return the unit that begins at a token, and the token behind it."""
        low = self._lows[place]
        if place < len(self._listed) and self._listed[place].sort == HAN:
            found = next((low[:length] for length in (3, 2, 1) if low[:length] in UNITS), None)
            return None if found is None else (found, place + 1)
        if low in ("square", "sq") and (name := f"square-{stem(self._lows[place + 1])}") in UNITS:
            return name, place + 2
        if low == "km" and self._lows[place + 1] == "/" and self._lows[place + 2] == "h":
            return "km/h", place + 3
        if low in ("degrees", "degree", "°") and self._lows[place + 1] in ("f", "fahrenheit"):
            return "fahrenheit", place + 2
        if low in ("degrees", "degree", "°"):
            return low, place + 1 + (self._lows[place + 1] in ("c", "celsius"))
        if low in ("m", "km") and self._lows[place + 1] in ("2", "²") and self._joined(place + 1):
            return low + "2", place + 2
        if low in _BEFORE_UNIT and self._lows[place + 1] in UNITS:
            return self._lows[place + 1], place + 2
        if low in ("in", "an", "a", "ps", "bar", "bars", "ha") and low != "ha":
            return None
        if low in ("m", "t", "h", "g", "l", "v", "w") and not self._joined(place):
            return (
                (low, place + 1) if low in ("m", "g", "h", "l", "w") and not self._joined(place + 1) else None
            )
        return (low, place + 1) if low in UNITS else None

    def _is_ratio(self, first: int) -> bool:
        back = first - 1 - (self._lows[first - 1] in ("of", "is", "was", "at", ":", "=", "von", "de"))
        return self._lows[back] in _RATIO_WORDS


_PER_CENT = frozenset((("per", "cent"), ("por", "ciento"), ("pour", "cent")))
