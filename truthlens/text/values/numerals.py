"""Read numbers: digits with separators by language, and number words in six languages. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType

from truthlens.text.values.tokens import FRACTION_SIGNS, HAN_NUMBER, WORD, Token
from truthlens.text.word_forms import word_set

_UNITS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
          " eighteen nineteen",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn"
          " achtzehn neunzehn",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete"
          " dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete"
          " veintiocho veintinueve",
}  # fmt: skip
ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth",
    *(f"{word}th" for word in _UNITS["en"].split()[13:]), "twentieth",
)  # fmt: skip
"""English ordinals from the first to the twentieth."""
_TENS = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "fr": "vingt trente quarante cinquante soixante",
    "es": "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
}
_MORE = {
    "en": {},
    "de": {"zwo": 2, "beide": 2, "ein": 1, "eine": 1, "einem": 1, "einen": 1, "einer": 1, "dreissig": 30},
    "fr": {"une": 1, "septante": 70, "huitante": 80, "nonante": 90},
    "es": {"un": 1, "una": 1, "doscientos": 200, "trescientos": 300, "cuatrocientos": 400, "quinientos": 500,
           "seiscientos": 600, "setecientos": 700, "ochocientos": 800, "novecientos": 900, "doscientas": 200,
           "trescientas": 300, "quinientas": 500, "cien": 100, "ciento": 100},
}  # fmt: skip
SHORT_SCALES = MappingProxyType({"bn": 9, "mn": 6, "mio": 6, "mrd": 9, "tsd": 3})
"""Those of ``SCALES`` that are cut short, with a full stop or without one."""
SCALES = MappingProxyType(SHORT_SCALES | {
    "hundred": 2, "thousand": 3, "million": 6, "millions": 6, "billion": 9, "billions": 9, "trillion": 12, "hundert": 2, "tausend": 3,
    "millionen": 6, "milliarde": 9, "milliarden": 9, "cent": 2, "cents": 2, "lakh": 5, "lakhs": 5, "crore": 7, "crores": 7,
    "mille": 3, "milliard": 9, "milliards": 9, "mil": 3, "millón": 6, "millones": 6, "cientos": 2,
})  # fmt: skip
"""Words behind a number that multiply it, as powers of ten."""
_SCALES_OF = {
    "en": {
        *word_set("hundred thousand million millions billion billions trillion bn mn lakh lakhs crore crores")
    },
    "de": {"hundert", "tausend", "million", "millionen", "milliarde", "milliarden", "mio", "mrd", "tsd"},
    "fr": {"cent", "cents", "mille", "million", "millions", "milliard", "milliards"},
    "es": {"mil", "millón", "millones", "cientos"},
}
LETTERS = MappingProxyType({"k": 3, "m": 6, "b": 9, "t": 12, "bn": 9, "mn": 6, "mm": 6})
"""Letters right behind a sum of money that multiply it."""
_JOINERS = {"en": {"and"}, "de": {"und"}, "fr": {"et"}, "es": {"y"}}
_SPECIAL = {
    "en": {"dozen": 12, "couple": 2},
    "de": {"dutzend": 12}, "fr": {"douzaine": 12, "vingtaine": 20}, "es": {"docena": 12},
}  # fmt: skip
_ONES = {
    "en": {"a", "an", "one"}, "de": {"ein", "eine", "einer", "einem", "einen", "eins"}, "fr": {"un", "une"},
    "es": {"un", "una", "uno"},
}  # fmt: skip
_FRACTIONS = {
    "en": {"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fifth": 5, "fifths": 5,
           "tenth": 10, "tenths": 10, "sixth": 6, "eighth": 8, "eighths": 8},
    "de": {"hälfte": 2, "halb": 2, "halbe": 2, "halben": 2, "halbes": 2, "drittel": 3, "viertel": 4, "fünftel": 5, "zehntel": 10},
    "fr": {"moitié": 2, "demi": 2, "demie": 2, "tiers": 3, "quart": 4, "quarts": 4, "cinquième": 5, "dixième": 10},
    "es": {"mitad": 2, "medio": 2, "media": 2, "tercio": 3, "tercios": 3, "cuarto": 4, "cuartos": 4, "quinto": 5, "décimo": 10},
}  # fmt: skip
_HAN_DIGIT = {each: at for at, each in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_HAN_SCALE = {"十": 1, "百": 2, "千": 3}
HAN_SCALES = MappingProxyType({"万": 4, "萬": 4, "亿": 8, "億": 8, "兆": 12})
_GROUPS = {mark: re.compile(rf"\d{{1,3}}(?:\{mark}\d{{3}})+") for mark in ".,"}
_MOST_WORDS = 12
_LONGEST_COMPOUND = 80  # letters: more than a number below a million has in German
_MOST_SCALES = 4  # Han characters that multiply one number


def _table(language: str) -> dict[str, int]:
    table = {word: value for value, word in enumerate(_UNITS[language].split())}
    table |= {word: 10 * value for value, word in enumerate(_TENS[language].split(), start=2)}
    return table | _MORE[language]


_WORDS = {language: _table(language) for language in _UNITS}
LANGUAGES = tuple(_UNITS)


def written(digits: str, language: str) -> tuple[Decimal, ...]:
    """Return what a number in digits may stand for, the likeliest first; ``()`` for a version such as ``2.3.1``."""
    if not digits or digits[-1] not in FRACTION_SIGNS:
        return _with_separators(digits, language)
    before = _with_separators(digits[:-1], language) if len(digits) > 1 else (Decimal(0),)
    over, under = unicodedata.normalize("NFKC", digits[-1]).split("\u2044")
    return tuple(each + Decimal(over) / Decimal(under) for each in before)


def _with_separators(digits: str, language: str) -> tuple[Decimal, ...]:
    """Return the readings of digits with separators.

    A mark before exactly three digits parts thousands or decimals: by language first, then the other way.
    """
    plain = digits.replace("\u00a0", "").replace("\u202f", "").replace("'", "")
    marks = [each for each in plain if each in ".,"]
    if not marks:
        return (Decimal(plain),)
    last = marks[-1]
    whole, _, rest = plain.rpartition(last)
    if len(set(marks)) > 1:
        return () if last in whole else (Decimal(f"{whole.replace(marks[0], '')}.{rest}"),)
    grouped = _GROUPS[last].fullmatch(plain) is not None
    thousands = (Decimal(plain.replace(last, "")),)
    if len(marks) > 1:
        return thousands if grouped else ()
    decimal = (Decimal(f"{whole}.{rest}"),)
    # 1.234 is no thousand where thousands have commas.
    if not grouped or plain.startswith("0") or (last == "." and language in ("", "en", "zh", "ja")):
        return decimal
    if language not in ("de", "fr", "es"):
        return thousands
    return decimal + thousands if last == "," else thousands + decimal


@lru_cache(maxsize=4096)
def number_word(word: str, language: str) -> int | None:
    """Return the value of a word such as ``twelve`` or ``fünfundzwanzig``; ``None`` for no number word, and for ones."""
    table = _WORDS.get(language)
    if table is None:
        return None
    value = table.get(word)
    if value is None and language == "de" and 6 < len(word) <= _LONGEST_COMPOUND:
        value = _german(word)
    return value


def _german(word: str) -> int | None:
    table = _WORDS["de"]
    if word in table:
        return table[word]
    for name, size in (("tausend", 1000), ("hundert", 100)):
        before, found, after = word.partition(name)
        if found:
            first = _german(before) if before else 1
            second = _german(after.removeprefix("und")) if after else 0
            return None if first is None or second is None else first * size + second
    ones, found, tens = word.partition("und")
    first, second = table.get(ones), table.get(tens)
    return first + second if found and first and second and first < 10 <= second else None


def starters(language: str) -> frozenset[str]:
    """Return all words of a language with which a number may begin, ones and compounds of German left out."""
    if language not in _WORDS:
        return frozenset()
    return frozenset(
        {*_WORDS[language], *_SCALES_OF[language], *_SPECIAL[language], *_FRACTIONS[language]}
        - _ONES[language]
    ) | ({"one"} if language == "en" else set())


class _Sum:
    """A number that is read word by word."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._scales, self._special = _SCALES_OF[language], _SPECIAL[language]
        self.joiners, self.fractions = _JOINERS[language], _FRACTIONS[language]
        self.total = self.current = Decimal(0)
        self.seen, self.last = False, 0

    @property
    def value(self) -> Decimal:
        """What was read so far."""
        return self.total + self.current

    def take(self, low: str) -> bool:
        """Add a word; returns whether it goes on with the number."""
        value = number_word(low, self._language)
        if value is not None:
            if self.seen and not _may_follow(self.last, value, self._language):
                return False
            # "quatre-vingt" is four times twenty
            self.current += 76 if self._language == "fr" and self.last == 4 and value == 20 else value
            self.seen, self.last = True, value
        elif low in self._scales:
            self._scale(SCALES[low])
        elif low in self._special:
            self.current = (self.current if self.seen else Decimal(1)) * self._special[low]
            self.seen, self.last = True, 1000
        else:
            return False
        return True

    def _scale(self, power: int) -> None:
        self.current = self.current or Decimal(1)
        if power == 2:
            self.current *= 100
        else:
            self.total, self.current = self.total + self.current * Decimal(10) ** power, Decimal(0)
        self.seen, self.last = True, 1000 if power > 2 else 100

    def part(self, low: str) -> Decimal | None:
        """Return how much "three quarters" are, with ``low`` as the last word; ``None`` for no fraction."""
        number = self.value if self.seen else Decimal(1)
        return number / self.fractions[low] if low in self.fractions and 0 < number < 10 else None

    def goes_on(self, following: str) -> bool:
        """Return whether a hyphen goes on with the number, by the word behind it."""
        return number_word(following, self._language) is not None or any(
            following in words for words in (self._scales, self.fractions, self.joiners)
        )

    def joins(self, following: str) -> bool:
        """Return whether "and" goes on with the number, by the word behind it."""
        value = number_word(following, self._language)
        if value is None or not self.seen:
            return False
        return self.last >= 100 or (self.last >= 20 and self._language != "en" and value < 20)


def read_words(
    listed: Sequence[Token], place: int, language: str, text: str
) -> tuple[Decimal, int, bool] | None:
    """Return the value of a number in words at token ``place``, the token behind it, and whether it is a fraction alone."""
    found, at = _Sum(language), place
    while at < min(len(listed), place + _MOST_WORDS):
        low = listed[at].low
        if at > place and not _adjacent(text, listed[at - 1], listed[at]):
            break
        if (part := found.part(low)) is not None:
            return part, at + 1, True
        following = _word_behind(listed, at + 1, hyphened=low in found.joiners)
        if low == "-" and found.seen:
            joined = at + 1 < len(listed) and listed[at + 1].start == listed[at].end
            taken = joined and found.goes_on(following)
        else:
            taken = found.take(low) or (low in found.joiners and found.joins(following))
        if not taken:
            break
        at += 1
    while at > place and listed[at - 1].low in ("-", *found.joiners):
        at -= 1
    return (found.value, at, False) if found.seen else None


def _word_behind(listed: Sequence[Token], place: int, *, hyphened: bool) -> str:
    """Return the word at a place, with ``hyphened`` behind a hyphen there: "vingt-et-un"."""
    place += hyphened and place < len(listed) and listed[place].low == "-"
    return listed[place].low if place < len(listed) else ""


def _may_follow(before: int, value: int, language: str) -> bool:
    if before >= 100:
        return value < before
    if language == "fr" and before == 10:
        return 7 <= value <= 9
    if language == "fr" and before in (4, 60, 20):
        return value == 20 if before == 4 else value < 20
    return 20 <= before < 100 and value < 10


def _adjacent(text: str, one: Token, other: Token) -> bool:
    return other.start - one.end <= 1 and text[one.end : other.start].strip() == ""


def is_one(word: str, language: str) -> bool:
    """Return whether a word is an article or the number one."""
    return word in _ONES.get(language, ())


@lru_cache(maxsize=4096)
def han_number(run: str) -> Decimal | None:
    """Return the value of Han numerals such as ``三千五百万`` or ``二〇二四``; ``None`` where they are no number."""
    if all(each in _HAN_DIGIT for each in run):
        return Decimal("".join(str(_HAN_DIGIT[each]) for each in run))
    total = section = Decimal(0)
    digit: int | None = None
    for each in run:
        if each in _HAN_DIGIT:
            digit = _HAN_DIGIT[each]
        elif each in _HAN_SCALE:
            section += (1 if digit is None else digit) * Decimal(10) ** _HAN_SCALE[each]
            digit = None
        else:
            section += digit or 0
            if not section and not total:
                return None
            total = (
                (total + section) * Decimal(10) ** HAN_SCALES[each]
                if total < 10 ** HAN_SCALES[each] and total
                else (total + section * Decimal(10) ** HAN_SCALES[each])
            )
            section, digit = Decimal(0), None
    return total + section + (digit or 0)


def scale_after(listed: Sequence[Token], place: int, language: str) -> int:
    """Return the power of ten of the token at ``place``, 0 where it multiplies nothing."""
    if place >= len(listed):
        return 0
    token = listed[place]
    if token.sort == WORD:
        known = _SCALES_OF.get(language) or _SCALES_OF["en"]
        return SCALES[token.low] if token.low in known or token.low in _SCALES_OF["en"] else 0
    if len(token.low) > _MOST_SCALES or token.sort != HAN_NUMBER:
        return 0
    if all(each in HAN_SCALES or each in _HAN_SCALE for each in token.low):
        return sum(HAN_SCALES.get(each, 0) or _HAN_SCALE.get(each, 0) for each in token.low)
    return 0
