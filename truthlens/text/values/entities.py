"""Numbers, dates, names and citations of a text: the things whose value two sentences may disagree on. Pure.

Reads what ``words`` found and groups it: a number with its currency, scale and unit, the parts of a date, the
words of a name. No dictionary of people or places, and no calendar: a date is compared by the parts that both
sides give.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from truthlens.core.records.explanation import DifferenceKind
from truthlens.text.scripts import HAN
from truthlens.text.values.dates import dates
from truthlens.text.words import Word, stem

_CITATION = re.compile(
    r"[A-Z][\w’'-]+(?:(?: (?:and|&) [A-Z][\w’'-]+)|,? et al\.?),? ?[(\[]?(?:1[89]|20)\d\d[a-z]?[)\]]?"
    r"|https?://[^\s)>\]]+|\bwww\.[^\s)>\]]+|\bdoi:\s?\S+|\barXiv:\s?\S+"
)
_CURRENCY_BEFORE = re.compile(r"(?:US|A|C|HK)?[$€£¥]\s?$|\b(?:USD|EUR|GBP|CHF|CNY|JPY) $")
_AFTER_NUMBER = re.compile(
    r"(?P<percent>\s?(?:%|％|percent\b|per cent\b|percentage points?\b))"
    r"|(?P<scale>\s?(?:thousand|million|billion|trillion|mn|bn)\b)?"
    r"(?:\s?(?P<degree>(?:°|degrees?\b)\s?(?:(?:[CF]|Celsius|Fahrenheit)\b)?)|[\s-](?P<unit>[^\W\d_]+)|(?P<joined>[a-zµ]{1,4})\b)?"
)
_RANGE = re.compile(r"\s?(?:[-–—]|to|or)\s?")
_LABEL = re.compile(
    r"\b(?P<label>passage|step|level|chapter|section|article|form|page|figure|table|version|grade|type|room|phase|stage"
    r"|rule|line|act|volume|part|question|number|day|week|unit|flight|route|class|category|item) (?:#|no\. ?)?$",
    re.IGNORECASE,
)
_DECIMAL = re.compile(r"\d+\.\d+(?![.\d])")
_FRACTION = re.compile(r"(?:(?P<whole>\d{1,3})[ -])?(?P<over>\d)/(?P<under>[2-9]|1[0-6])(?![\d/])")
_CURRENCIES = MappingProxyType(
    {
        "$": "dollar",
        "€": "euro",
        "£": "pound",
        "¥": "yen",
        "USD": "dollar",
        "EUR": "euro",
        "GBP": "pound",
        "美元": "dollar",
        "欧元": "euro",
        "英镑": "pound",
        "日元": "yen",
        "元": "yuan",
    }
)
_MONEY = frozenset({*_CURRENCIES.values(), "money"})
_HAN_UNITS = "个月|分钟|小时|千克|公斤|毫米|厘米|公里|千米|美元|欧元|英镑|日元|[元克米秒天周年]"
_AFTER_HAN = re.compile(
    rf"\s?(?P<scale>[十百千万亿]*)\s?(?:(?P<unit>{_HAN_UNITS})|(?P<noun>[{HAN}])(?<![的是和至到或从为有在余多]))?"
)
# Plurals, and the nouns that have none in "s": anything else behind a number is as often a verb or an adjective.
_COUNTED = re.compile(r"[a-z]+[^s\W]s|people|men|women|children|feet|teeth|mice|cup|page|time|fold")
_CURRENCY_STEMS = MappingProxyType({stem(name): name for name in ("dollar", "euro", "yen")})
# name: (what is measured, how much of its base unit)
_MEASURES: Mapping[str, tuple[str, float]] = MappingProxyType(
    {
        "µg": ("mass", 1e-6), "mcg": ("mass", 1e-6), "mg": ("mass", 1e-3), "g": ("mass", 1.0), "gram": ("mass", 1.0),
        "kg": ("mass", 1e3), "kilogram": ("mass", 1e3), "lb": ("weight", 1.0), "pound": ("weight", 1.0),
        "oz": ("weight", 1 / 16), "ounce": ("weight", 1 / 16), "ml": ("volume", 1.0), "l": ("volume", 1e3),
        "liter": ("volume", 1e3), "litre": ("volume", 1e3), "mm": ("length", 1e-3), "cm": ("length", 1e-2),
        "m": ("length", 1.0), "metre": ("length", 1.0), "meter": ("length", 1.0), "km": ("length", 1e3),
        "kilometre": ("length", 1e3), "kilometer": ("length", 1e3), "inch": ("feet", 1 / 12),
        "foot": ("feet", 1.0), "ft": ("feet", 1.0), "mile": ("feet", 5280.0), "second": ("time", 1.0),
        "sec": ("time", 1.0), "minute": ("time", 60.0), "min": ("time", 60.0), "hour": ("time", 3600.0),
        "hr": ("time", 3600.0), "day": ("time", 86400.0), "week": ("time", 604800.0), "month": ("months", 1.0),
        "year": ("months", 12.0), "decade": ("months", 120.0),
        "克": ("mass", 1.0), "千克": ("mass", 1e3), "公斤": ("mass", 1e3), "毫米": ("length", 1e-3),
        "厘米": ("length", 1e-2), "米": ("length", 1.0), "公里": ("length", 1e3), "千米": ("length", 1e3),
        "秒": ("time", 1.0), "分钟": ("time", 60.0), "小时": ("time", 3600.0), "天": ("time", 86400.0),
        "周": ("time", 604800.0), "个月": ("months", 1.0), "年": ("months", 12.0),
    }
)  # fmt: skip
_MEASURE_OF_STEM = {stem(name): measure for name, measure in _MEASURES.items()} | dict(_MEASURES)
_NO_NAMES = frozenset(
    {"passage", "passages", "step", "note", "document", "source", "context", "section", "part"}
)


@dataclass(frozen=True, slots=True)
class Mention:
    """One number, date, name or citation at characters ``start`` to ``end``.

    ``keys`` are the readings of a number, the stems of a name's words, or a citation's words. ``unit`` is the
    stem of what a number counts, ``%``, ``°C``, a currency, ``#`` and the stem of a label (``#level``), or
    ``""``. ``parts`` of a date or time of day, as far as they are given: ``year``, ``month``, ``day``,
    ``weekday``, ``quarter``, ``time``, ``half`` and the like.
    """

    kind: DifferenceKind
    start: int
    end: int
    keys: tuple[str, ...] = ()
    unit: str = ""
    parts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


def mentions(text: str, listed: Sequence[Word], *, names: frozenset[str] = frozenset()) -> list[Mention]:
    """What stands in a part of ``text``, by position; mentions do not overlap.

    Args:
        text: the whole text that the words' offsets point into.
        listed: consecutive words of it, as a rule one sentence's.
        names: stems known to be names, so that one is recognised at the start of a sentence too.
    """
    if not listed:
        return []
    start, end = listed[0].start, listed[-1].end
    found = _citations(text, start, end)
    for first, last, parts in dates(text, start, end):
        date = Mention(DifferenceKind.DATE, first, last, parts=MappingProxyType(dict(parts)))
        if not _overlaps(date, found):
            found.append(date)
    rest = [word for word in listed if not _overlaps(word, found)]
    numbers = _numbers(text, rest)
    found += numbers
    found += _names(text, [word for word in rest if not _overlaps(word, numbers)], names)
    return sorted(found, key=lambda mention: mention.start)


def same_value(one: Mention, other: Mention) -> bool | None:
    """Return whether two mentions say the same; ``None`` where they are of two sorts, so that neither contradicts.

    Units are converted where that is exact, and dates are compared by the parts that both give.
    """
    if one.kind is not other.kind:
        return None
    if one.kind is DifferenceKind.DATE:
        shared = one.parts.keys() & other.parts.keys()
        return all(one.parts[part] == other.parts[part] for part in shared) if shared else None
    if one.kind is DifferenceKind.NAME:
        few, many = sorted((set(one.keys), set(other.keys)), key=len)
        return bool(few & many) and (few <= many or one.keys[-1] == other.keys[-1])
    if one.kind is not DifferenceKind.NUMBER:
        return bool(set(one.keys) & set(other.keys))
    if one.unit == other.unit or {one.unit, other.unit} == {"%", ""}:
        same = bool(set(one.keys) & set(other.keys))
        return same or (False if one.unit == other.unit else None)
    if sort_of(one.unit) != sort_of(other.unit):
        return None
    return not readings(one).isdisjoint(readings(other))


def sort_of(unit: str) -> str:
    """Return what a number with ``unit`` measures: numbers of two sorts never contradict each other."""
    if unit.startswith(("%", "°", "#")):
        return "°" if unit.startswith("°") else unit
    if unit in _MONEY:
        return "money"
    measure = _MEASURE_OF_STEM.get(unit)
    return measure[0] if measure else "count"


def readings(mention: Mention) -> frozenset[tuple[str, str]]:
    """Return the values that a number may have, each with its unit, or with what is measured in a common unit."""
    sort, factor = _MEASURE_OF_STEM.get(mention.unit, ("", 1.0))
    unit = mention.unit if mention.unit[:1] == "°" else sort
    return frozenset((unit, f"{value * factor:.6g}") for value in _values(mention))


def _values(mention: Mention) -> list[float]:
    return [float(key) for key in mention.keys if key.replace(".", "", 1).isdigit()]


def _overlaps(place: Word | Mention, others: Sequence[Mention]) -> bool:
    return any(place.start < other.end and other.start < place.end for other in others)


def _citations(text: str, start: int, end: int) -> list[Mention]:
    # "et al." may have ended the sentence, so a citation may reach beyond it
    return [
        Mention(DifferenceKind.CITATION, *match.span(), keys=(match[0].rstrip(".,;").lower(),))
        for match in _CITATION.finditer(text, start, end + 12)
        if match.start() < end
    ]


def _numbers(text: str, listed: Sequence[Word]) -> list[Mention]:
    found: list[Mention] = []
    for word in listed:
        if not word.numbers or (found and word.start < found[-1].end):
            continue
        currency = _CURRENCY_BEFORE.search(text, max(0, word.start - 5), word.start)
        label = _LABEL.search(text, max(0, word.start - 24), word.start)
        start, end, keys, unit = word.start, word.end, word.numbers, ""
        if (whole := _whole_number(text, start)) and whole[0] > end:
            end, keys = whole[0], (f"{whole[1]:.10g}",)
        if currency is not None:
            start, (end, _) = currency.start(), _unit_after(text, end, count=False)
            unit = _CURRENCIES.get(currency[0].strip()[-1]) or _CURRENCIES.get(
                currency[0].strip()[:3], "money"
            )
        elif label is not None:
            unit = "#" + stem(label["label"].lower())
        else:
            end, unit = _unit_after(text, end)
        found.append(Mention(DifferenceKind.NUMBER, start, end, keys=keys, unit=unit))
    return [_with_unit_of_range(text, number, following) for number, following in _pairs(found)]


def _whole_number(text: str, start: int) -> tuple[int, float] | None:
    """End and value of "3.5kg" and "1 1/2", which are several words each."""
    if match := _FRACTION.match(text, start):
        return match.end(), int(match["whole"] or 0) + int(match["over"]) / int(match["under"])
    if match := _DECIMAL.match(text, start):
        return match.end(), float(match[0])
    return None


def _pairs(found: Sequence[Mention]) -> list[tuple[Mention, Mention | None]]:
    return list(zip(found, [*found[1:], None], strict=True)) if found else []


def _with_unit_of_range(text: str, number: Mention, following: Mention | None) -> Mention:
    """``4`` of ``4-6 minutes`` counts minutes too."""
    if (
        number.unit
        or following is None
        or not following.unit
        or not _RANGE.fullmatch(text, number.end, following.start)
    ):
        return number
    return Mention(number.kind, number.start, number.end, number.keys, following.unit)


def _unit_after(text: str, end: int, *, count: bool = True) -> tuple[int, str]:
    """Where a number's scale and unit end, and the unit: ``%``, ``°C``, a measure, or with ``count`` a noun's stem."""
    match = _AFTER_HAN.match(text, end)
    if match and (match["scale"] or match["unit"] or match["noun"]):
        unit = match["unit"] or match["noun"] or ""
        return match.end(), _CURRENCIES.get(unit, unit) if count else ""
    match = _AFTER_NUMBER.match(text, end)
    if match is None:
        return end, ""
    if match["percent"]:
        return match.end(), "%"
    if match["degree"]:
        scale = match["degree"].removeprefix("degree").strip(" s°")[:1]
        return end + len(match[0].rstrip()), f"°{scale}"
    bare = match.end("scale") if match["scale"] else end
    written = match["unit"] or match["joined"]
    if not written or not count:
        return bare, ""
    unit = written if written in _MEASURES else stem(written.lower())
    known = unit in _MEASURE_OF_STEM or unit in _CURRENCY_STEMS
    if not known and (match["joined"] or unit in _NOT_COUNTED or not _COUNTED.fullmatch(written)):
        return bare, ""
    return match.end(), _CURRENCY_STEMS.get(unit, unit)


_NOT_COUNTED = frozenset(
    stem(word)
    for word in """a about after all also an and are as at be before between but by can for from had has have if in
    into is it its more most must of off on or other out over per so than that the then there this through to under
    until up was were when where which while who will with within would each every st nd rd th""".split()  # noqa: SIM905  # a list to read
)


def _names(text: str, listed: Sequence[Word], known: frozenset[str]) -> list[Mention]:
    runs: list[list[Word]] = []
    before: Word | None = None
    for word in listed:
        first, before = before, word
        named = word.entity or (
            word.stem in known and not word.stop and text[word.start].isupper() and not word.numbers
        )
        if not named or word.stem in _NO_NAMES:
            continue
        if runs and text[runs[-1][-1].end : word.start] in {" ", "-", ". "}:
            runs[-1].append(word)
        elif first is not None and _begins_name(text, first, word):
            runs.append([first, word])
        else:
            runs.append([word])
    return [
        Mention(DifferenceKind.NAME, run[0].start, run[-1].end, keys=tuple(word.stem for word in run))
        for run in runs
    ]


def _begins_name(text: str, first: Word, second: Word) -> bool:
    """Whether ``first``, which stands where any word has a capital, belongs to the name ``second``."""
    capital = text[first.start].isupper() and not first.stop and first.stem not in _NO_NAMES
    return capital and text[first.end : second.start] == " "
