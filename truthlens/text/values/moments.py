"""Read dates, times of day and periods from tokens, in six languages, by parts. Pure.

Parts are those of ``values.dates``: ``year``, ``month``, ``day``, ``weekday`` (Monday is 0), ``quarter``, ``time`` (minutes of the
half day) with ``half`` (1 after noon) where it is certain, ``month_and_day`` where the order of figures is uncertain. ``values.dates``
is what models were trained beside; this reads whole passages in one pass.
"""

from __future__ import annotations

from types import MappingProxyType

from truthlens.text.values.clocks import CLOCK_GOES_ON, NOONS, ClockReader, Moment
from truthlens.text.values.dates import MONTHS
from truthlens.text.values.tokens import HAN, HAN_NUMBER, MARK, NUMBER, WORD
from truthlens.text.word_forms import word_set

WEEKDAYS = MappingProxyType({
    name: number
    for number, names in enumerate(
        ("monday mondays mon montag montags lundi lunes", "tuesday tuesdays tue tues dienstag dienstags mardi martes",
         "wednesday wednesdays wed mittwoch mittwochs mercredi miércoles",
         "thursday thursdays thu thur thurs donnerstag donnerstags jeudi jueves",
         "friday fridays fri freitag freitags vendredi viernes",
         "saturday saturdays sat samstag samstags sonnabend samedi sábado sábados",
         "sunday sundays sun sonntag sonntags dimanche domingo domingos"))
    for name in names.split()
})  # fmt: skip
_SHORT_DAYS = word_set("mon tue tues wed thu thur thurs fri sat sun")
_QUARTERS = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "1st": 1,
    "2nd": 2,
    "3rd": 3,
    "4th": 4,
    "last": 4,
}
_AFTER_DAY = frozenset(("st", "nd", "rd", "th", "er", "."))
_BEFORE_MONTH = frozenset(("of", "de", "."))
_LONGEST_YEAR = 4
# What stands behind the first number of a date or a time, months and Han characters aside.
_GOES_ON = _AFTER_DAY | _BEFORE_MONTH | CLOCK_GOES_ON | word_set("- – / to and or until bis und au et y al ,")


class Moments(ClockReader):
    """Reads the moment that begins at a token."""

    def at(self, place: int) -> Moment | None:
        """Return the moment whose first token is at ``place``."""
        token = self._listed[place]
        if token.sort == NUMBER:
            return self._numeric(place)
        if token.sort == WORD:
            return self._worded(place)
        if token.sort == HAN:
            return self._han_word(place)
        return self._han_date(place) if token.sort == HAN_NUMBER else None

    def _numeric(self, place: int) -> Moment | None:
        low, following = self._lows[place], self._lows[place + 1]
        if (
            following not in _GOES_ON
            and following.removesuffix("'s") not in MONTHS
            and len(low) != _LONGEST_YEAR
            and low.count(".") < 2
            and not (place + 1 < len(self._listed) and self._listed[place + 1].sort == HAN)
        ):
            return None
        return (
            self._iso(place)
            or self._han_date(place)
            or self._dotted(place)
            or self._clock(place)
            or self._day_first(place)
            or self._lone_year(place)
        )

    def _iso(self, place: int) -> Moment | None:
        mark = self._lows[place + 1]
        if mark not in ("-", "/", "–") or not self._joined(place + 1) or not self._joined(place + 2):
            return None
        one, two = self._number(place, 4), self._number(place + 2, 4)
        if one is None or two is None:
            return None
        third = (
            self._number(place + 4, 4)
            if self._lows[place + 3] == mark and self._joined(place + 3) and self._joined(place + 4)
            else None
        )
        if len(self._lows[place]) == _LONGEST_YEAR and mark != "–":
            if third is not None and 1 <= two <= 12 and 1 <= third <= 31:
                return self._with_clock(place, place + 5, {"year": one, "month": two, "day": third})
            if third is None and len(self._lows[place + 2]) == 2 and 1 <= two <= 12 and 1900 <= one < 2100:
                return Moment(place, place + 3, {"year": one, "month": two})
            return None
        if (
            third is not None
            and third > 1000
            and mark in "/-"
            and 1 <= min(one, two) <= 12
            and max(one, two) <= 31
        ):
            if max(one, two) > 12:
                return Moment(place, place + 5, {"year": third, "month": min(one, two), "day": max(one, two)})
            return Moment(
                place, place + 5, {"year": third, "month_and_day": min(one, two) * 100 + max(one, two)}
            )
        return None

    def _with_clock(self, place: int, behind: int, parts: dict[str, int]) -> Moment:
        """Take the time of day that follows an ISO date: "2024-05-09T18:00", "2024-05-09 18:00"."""
        at = behind + (self._lows[behind] in ("t", ","))
        if at < len(self._listed) and (clock := self._clock(at)) is not None and ":" in self._span(clock):
            return Moment(place, clock.behind, parts | clock.parts)
        return Moment(place, behind, parts)

    def _span(self, moment: Moment) -> str:
        return self._text[self._listed[moment.first].start : self._listed[moment.behind - 1].end]

    def _dotted(self, place: int) -> Moment | None:
        """Read "12.01.2024" and "1.4.2025", which are one token."""
        parts = self._lows[place].split(".")
        if (
            len(parts) == 3
            and all(each.isdigit() for each in parts)
            and len(parts[2]) == _LONGEST_YEAR
            and len(parts[0]) <= 2
        ):
            day, month, year = map(int, parts)
            if 1 <= month <= 12 and 1 <= day <= 31 and 1000 < year < 2200:
                return Moment(place, place + 1, {"year": year, "month": month, "day": day})
        return None

    def _day_first(self, place: int) -> Moment | None:
        """Read "12 April 2024", "the 3rd of May", "3 to 17 May" (its first day), "1. Mai"."""
        day = self._number(place)
        if day is None and self._lows[place].endswith("."):
            day = int(self._lows[place][:-1]) if self._lows[place][:-1].isdigit() else None
        if day is None or not 1 <= day <= 31:
            return None
        at = place + 1
        ordinal = self._lows[at] in _AFTER_DAY and self._joined(at)
        at += ordinal
        at += self._lows[at] in _BEFORE_MONTH
        month = self._month(at)
        if month is not None:
            return self._year_behind(place, at + 1, {"month": month, "day": day})
        if (
            self._lows[at] in ("-", "–", "to", "and", "or", "until", "bis", "und", "au", "et", "y", "al", ",")
            or ordinal
        ):
            other = self._number(at + 1)
            ahead = at + 2 + (self._lows[at + 2] in _AFTER_DAY)
            ahead += self._lows[ahead] in _BEFORE_MONTH
            month = self._month(ahead) if other is not None and 1 <= other <= 31 else None
            if month is not None:
                found = self._year_behind(place, ahead + 1, {"month": month, "day": day})
                return Moment(place, place + 1 + ordinal, found.parts)
        if (
            ordinal
            and self._lows[place - 1] == "the"
            and (at >= len(self._listed) or self._listed[at].sort != WORD)
        ):
            return Moment(place, at, {"day": day}, unsure=True)
        return None

    def _month(self, place: int) -> int | None:
        """Return the number of a month's name, ``None`` for another word and for "may" as a verb."""
        low = self._lows[place].removesuffix("'s")
        month = MONTHS.get(low)
        if month is None or (low in ("mars", "mai") and self._language not in ("fr", "de")):
            return None
        if low in ("may", "march", "mar") and not self._text[self._listed[place].start].isupper():
            return None
        return month

    def _year_behind(self, place: int, at: int, parts: dict[str, int]) -> Moment:
        if (
            self._lows[at] == "."
            and self._joined(at)
            and len(self._lows[at - 1]) <= 4
            and self._number(at + 1, 4) is not None
        ):
            at += 1
        ahead = at + (self._lows[at] in (",", "de", "del", "of"))
        year = self._number(ahead, 4)
        if year is not None and 1000 <= year < 2200 and self._lows[ahead + 1] != ":":
            return Moment(place, ahead + 1, parts | {"year": year})
        return Moment(place, at, parts)

    def _lone_year(self, place: int) -> Moment | None:
        year = self._number(place, 4)
        if year is None or len(self._lows[place]) != _LONGEST_YEAR or not 1500 <= year < 2100:
            return None
        behind = place + 1
        if self._lows[behind] in ("-", "–") and self._joined(behind) and self._joined(behind + 1):
            pass  # the first year of "1889–1958" and of "2023-24"
        if self._lows[behind] == "s" and self._joined(behind):
            return Moment(place, behind + 1, {"decade": year // 10})
        if self._lows[behind] in ("q1", "q2", "q3", "q4"):
            return Moment(place, behind + 1, {"year": year, "quarter": int(self._lows[behind][1])})
        if (
            self._lows[behind] == "q"
            and self._joined(behind + 1)
            and self._number(behind + 1) in (1, 2, 3, 4)
        ):
            return Moment(place, behind + 2, {"year": year, "quarter": int(self._lows[behind + 1])})
        return Moment(place, behind, {"year": year}, unsure=True)

    def _worded(self, place: int) -> Moment | None:
        low = self._lows[place]
        bare = low.removesuffix("'s")
        if low == "q" and self._joined(place + 1) and self._number(place + 1) in (1, 2, 3, 4):
            return self._year_behind(place, place + 2, {"quarter": int(self._lows[place + 1])})
        if low in _QUARTERS and self._lows[place + 1] in ("quarter", "quarters"):
            return self._year_behind(place, place + 2, {"quarter": _QUARTERS[low]})
        if bare in WEEKDAYS:
            if bare in _SHORT_DAYS and not self._text[self._listed[place].start].isupper():
                return None
            return Moment(place, place + 1, {"weekday": WEEKDAYS[bare]}, unsure=bare in ("sun", "sat", "wed"))
        if low in NOONS:
            return Moment(place, place + 1, {"time": 0, "half": NOONS[low]})
        if (month := self._month(place)) is not None:
            return self._month_first(place, month)
        return self._worded_clock(place)

    def _month_first(self, place: int, month: int) -> Moment | None:
        at = place + 1 + (self._lows[place + 1] == "." and self._joined(place + 1))
        day = self._number(at)
        if (day is not None and 1 <= day <= 31 and self._lows[at + 1] not in ("%", ":", ".")) or (
            day is not None and self._lows[at + 1] == "." and not self._joined(at + 2)
        ):
            behind = (
                at
                + 1
                + (self._lows[at + 1] in _AFTER_DAY and self._lows[at + 1] != "." and self._joined(at + 1))
            )
            return self._year_behind(place, behind, {"month": month, "day": day})
        dated = self._year_behind(place, at, {"month": month})
        low, capital = self._lows[place], self._text[self._listed[place].start].isupper()
        if "year" not in dated.parts and (len(low) <= 3 or not capital or low == "march") and low != "may":
            return None
        first_word = place == 0 or (self._listed[place - 1].sort == MARK and self._lows[place - 1] in ".!?")
        if low == "may" and "year" not in dated.parts and first_word:
            return None
        return dated
