"""Numbers in words are read as what they were written from, in every language that has them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.values.quantities import typed_values
from truthlens.text.values.typed import Bound, ValueKind

ONES = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen",
    "de": "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf",
    "es": "cero un dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete dieciocho"
    " diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve",
}
TENS = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "fr": "vingt trente quarante cinquante soixante",
    "es": "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
}
HUNDREDS_ES = (
    "ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos"
)
FRAMES = {
    "en": "There are {} books on the shelf.",
    "de": "Es sind {} Bücher in dem Regal und nicht mehr.",
    "fr": "Il y a {} livres dans la salle et sur la table.",
    "es": "Hay {} libros en la sala y en la mesa.",
}


def english(number: int) -> str:
    if number < 20:
        return ONES["en"].split()[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return TENS["en"].split()[tens - 2] + (f"-{english(ones)}" if ones else "")
    for size, name in ((1_000_000, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= size:
            many, rest = divmod(number, size)
            joined = " and " if 0 < rest < 100 else " "
            return f"{english(many)} {name}" + (f"{joined}{english(rest)}" if rest else "")
    raise AssertionError


def german(number: int) -> str:
    if number < 20:
        return ONES["de"].split()[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return (f"{german(ones)}und" if ones else "") + TENS["de"].split()[tens - 2]
    size, name = (1000, "tausend") if number >= 1000 else (100, "hundert")
    many, rest = divmod(number, size)
    return f"{german(many)}{name}" + (german(rest) if rest else "")


def french(number: int) -> str:
    if number < 20:
        return ONES["fr"].split()[number]
    if number < 100:
        base = 60 if 60 <= number < 80 else 80 if number >= 80 else number // 10 * 10
        rest = number - base
        tens = "quatre-vingt" if base == 80 else TENS["fr"].split()[base // 10 - 2]
        joined = "-et-" if rest in (1, 11) and base != 80 else "-"
        return tens + (f"{joined}{french(rest)}" if rest else "")
    size, name = (1000, "mille") if number >= 1000 else (100, "cent")
    many, rest = divmod(number, size)
    head = name if many == 1 else f"{french(many)} {name}"
    return head + (f" {french(rest)}" if rest else "")


def spanish(number: int) -> str:
    if number < 30:
        return ONES["es"].split()[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return TENS["es"].split()[tens - 2] + (f" y {spanish(ones)}" if ones else "")
    if number < 1000:
        many, rest = divmod(number, 100)
        return (
            "cien" if number == 100 else HUNDREDS_ES.split()[many - 1] + (f" {spanish(rest)}" if rest else "")
        )
    many, rest = divmod(number, 1000)
    return ("mil" if many == 1 else f"{spanish(many)} mil") + (f" {spanish(rest)}" if rest else "")


def han(number: int) -> str:
    """Chinese numerals below 100,000,000."""
    if number >= 10_000:
        many, rest = divmod(number, 10_000)
        return han(many) + "万" + (("零" if rest < 1000 else "") + han(rest) if rest else "")
    text, zero = "", False
    for size, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, size)
        if digit:
            text += ("零" if zero and text else "") + "零一二三四五六七八九"[digit] + name
        zero = not digit
    return text


WRITERS = {"en": english, "de": german, "fr": french, "es": spanish}


@pytest.mark.parametrize("language", WRITERS)
@given(number=st.one_of(st.integers(2, 120), st.integers(2, 9_999)))
def test_a_number_in_words_is_the_number(language: str, number: int) -> None:
    """Units, tens, hundreds and thousands, with the joints of each language."""
    text = FRAMES[language].format(WRITERS[language](number))
    found = [each for each in typed_values(text, language=language) if each.kind is ValueKind.COUNT]
    assert [each.amounts[0] for each in found] == [Decimal(number)], text


@given(st.integers(1, 999), st.sampled_from([("thousand", 3), ("million", 6), ("billion", 9)]))
def test_scales_multiply(number: int, scale: tuple[str, int]) -> None:
    """In words and behind digits."""
    name, power = scale
    for written in (f"{english(number)} {name}", f"{number} {name}", f"{number / 10} {name}"):
        (found,) = typed_values(f"They sold {written} tickets.")
        assert found.amounts[0] == Decimal(str(number / 10 if "." in written else number)).scaleb(power), (
            written
        )


@given(st.integers(11, 99_999_999))
def test_han_numerals(number: int) -> None:
    """As money, with the scale in the numeral; digits before a scale as well."""
    (found,) = typed_values(f"费用为{han(number)}元。")
    assert (found.kind, found.amounts[0]) == (ValueKind.CURRENCY, Decimal(number))
    (found,) = typed_values(f"费用为{number}万元。")
    assert found.amounts[0] == Decimal(number) * 10_000


@given(st.integers(1, 9), st.integers(1, 9))
def test_han_scales_behind_digits_add_up(many: int, more: int) -> None:
    """1万2千 is twelve thousand."""
    (found,) = typed_values(f"費用は{many}万{more}千円です。")
    assert found.amounts[0] == many * 10_000 + more * 1000


@given(st.integers(1, 99))
def test_han_shares(share: int) -> None:
    """百分之 before the number; 分之 between part and whole."""
    (found,) = typed_values(f"增长百分之{han(share)}。")
    assert (found.kind, found.amounts[0]) == (ValueKind.PERCENTAGE, Decimal(share))
    whole = share % 8 + 2
    (found,) = typed_values(f"大约{han(whole)}分之一的人。")
    assert (found.amounts[0], found.bound) == (Decimal(100) / whole, Bound.ABOUT)
    (found,) = typed_values(f"{whole}分之一的人。")
    assert found.amounts[0] == Decimal(100) / whole


@given(century=st.integers(16, 20), rest=st.integers(10, 99), decade=st.booleans())
def test_years_in_words(century: int, rest: int, *, decade: bool) -> None:
    """As in "nineteen eighty-four" and "the nineteen eighties"."""
    if decade and rest >= 20:
        tens = english(rest // 10 * 10)
        (found,) = typed_values(f"in the {english(century)} {tens[:-1]}ies there were")
        assert dict(found.parts) == {"decade": 10 * century + rest // 10}
    else:
        (found,) = typed_values(f"It opened in {english(century)} {english(rest)} and closed.")
        assert dict(found.parts) == {"year": 100 * century + rest}


@pytest.mark.parametrize(
    "text", ["twenty thirty-year-olds came", "sixteen people at nineteen tables", "at twenty thirty sharp"]
)
def test_two_numbers_are_no_year(text: str) -> None:
    """Where the second is part of another word, counts something, or both are a time."""
    assert not any("year" in each.parts for each in typed_values(text))
