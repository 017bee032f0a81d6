"""Find how the evidence writes values: numbers, dates and currencies that equal those of a JSON answer.

Pure.

The evidence is read when the first value is asked for, once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from truthlens.text.values.quantities import typed_values
from truthlens.text.words import Word, words

_MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
_SCALE = re.compile(
    r"\s?(?:%|％|percent\b|per cent\b|thousand\b|million\b|billion\b|trillion\b|mn\b|bn\b|[十百千万亿]+)",
    re.IGNORECASE,
)
_ISO = re.compile(
    r"(?<![\w-])(?P<date>(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01]))"
    r"(?:[T ](?P<time>\d{2}:\d{2})(?P<seconds>:00(?:\.0+)?)?(?P<zone>Z|[+-]\d{2}:?\d{2})?)?(?![\w:-])"
)
_CODE = re.compile(r"\b(?:EUR|USD|GBP|JPY|CNY|RMB|CHF|INR|KRW|AUD|CAD|SEK|NOK|DKK)\b")
_CURRENCY = {
    "EUR": r"euros?\b|€|欧元", "USD": r"(?:us |u\.s\. )?dollars?\b|\$|美元", "GBP": r"pounds?\b|£|英镑",
    "JPY": r"yen\b|¥|日元", "CNY": r"yuan\b|renminbi\b|元|¥", "RMB": r"yuan\b|renminbi\b|元|¥",
    "CHF": r"(?:swiss )?francs?\b", "INR": r"rupees?\b|₹", "KRW": r"won\b|₩",
    "AUD": r"(?:australian )?dollars?\b|\$", "CAD": r"(?:canadian )?dollars?\b|\$",
    "SEK": r"kron(?:a|or)\b", "NOK": r"kroner?\b", "DKK": r"kroner?\b",
}  # fmt: skip


class ValueWordings:
    """The wording of values in some evidence.

    Args:
        passages: the evidence.
    """

    def __init__(self, passages: Sequence[str]) -> None:
        self._passages = passages

    def number(self, written: str) -> str:
        """Return the number ``written`` as the evidence writes it, or unchanged."""
        sign, bare = ("-", written[1:]) if written.startswith("-") else ("", written)
        try:
            value = f"{float(bare):.10g}"
        except ValueError:
            return written
        if bare in self._figures:
            return written
        return sign + self._numbers.get(value, bare)

    def values(self, text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        """Yield where between ``start`` and ``end`` the evidence writes an equal value otherwise, and how."""
        for match in sorted(
            [*_ISO.finditer(text, start, end), *_CODE.finditer(text, start, end)],
            key=lambda found: found.start(),
        ):
            if match.re is _CODE:
                if (word := self._currency(match[0])) != match[0]:
                    yield *match.span(), word
                continue
            yield *match.span("date"), self._date(int(match["year"]), int(match["month"]), int(match["day"]))
            if match["time"]:
                yield match.end("date"), match.start("time"), " "
                if match.end() > match.end("time"):
                    yield match.end("time"), match.end(), ""

    def _date(self, year: int, month: int, day: int) -> str:
        return self._dates.get((year, month, day)) or f"{day} {_MONTHS[month - 1]} {year}"

    def _currency(self, code: str) -> str:
        for passage in self._passages:
            if code in passage:
                return code
        for passage in self._passages:
            if found := re.search(_CURRENCY[code], passage, re.IGNORECASE):
                return found[0]
        return code

    @cached_property
    def _listed(self) -> list[tuple[str, list[Word]]]:
        return [(passage, words(passage)) for passage in self._passages]

    @cached_property
    def _figures(self) -> frozenset[str]:
        """Numbers just as the evidence writes them."""
        return frozenset(
            passage[word.start : word.end]
            for passage, listed in self._listed
            for word in listed
            if word.numbers
        )

    @cached_property
    def _numbers(self) -> dict[str, str]:
        """By value, how the evidence writes a number first, with its percent sign or scale."""
        found: dict[str, str] = {}
        for passage, listed in self._listed:
            for word in listed:
                if not word.numbers:
                    continue
                scale = _SCALE.match(passage, word.end)
                written = passage[word.start : scale.end() if scale else word.end]
                found.setdefault(word.numbers[-1], written)
        return found

    @cached_property
    def _dates(self) -> dict[tuple[int, int, int], str]:
        """By year, month and day, how the evidence writes a date first."""
        found: dict[tuple[int, int, int], str] = {}
        for passage in self._passages:
            for value in typed_values(passage):
                if value.parts.keys() >= {"year", "month", "day"}:
                    written = passage[value.start : value.end]
                    # Only an ISO date takes its time of day along: "2024-03-05T14:30".
                    written = re.split("[T ,]", written)[0] if "time" in value.parts else written
                    day = (value.parts["year"], value.parts["month"], value.parts["day"])
                    found.setdefault(day, written)
        return found
