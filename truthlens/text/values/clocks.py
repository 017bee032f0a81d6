"""Read times of day, and dates written in Han characters, from tokens. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from truthlens.text.values.cursor import Cursor
from truthlens.text.values.numerals import han_number, number_word
from truthlens.text.values.tokens import BREAK, HAN, HAN_NUMBER, MARK, NUMBER
from truthlens.text.word_forms import word_set

_HAN_DAYS = {"一": 0, "二": 1, "三": 2, "四": 3, "五": 4, "六": 5, "日": 6, "天": 6}
_JA_DAYS = "月火水木金土日"
NOONS = MappingProxyType({
    "noon": 1, "midday": 1, "midnight": 0, "mittag": 1, "mitternacht": 0, "midi": 1, "minuit": 0, "mediodía": 1, "medianoche": 0,
})  # fmt: skip
_MORNING = word_set("morning matin mañana morgens früh vormittags madrugada")
_LATER = word_set("afternoon evening soir abends nachmittags tarde après-midi")
_NIGHT = word_set("night noche nuit")
_HOURS = frozenset(("heures", "heure", "h"))
_DAWN = 6  # "three at night" is before it, "nine at night" is not
_STOPS = frozenset(".,;:!?)")
CLOCK_GOES_ON = _STOPS | {""} | word_set(": ： h am pm a p uhr heures heure o'clock o in de du por at")
"""What stands behind the hour of a time of day in digits."""
_ASIDE = MappingProxyType({"before": -1, "to": -1, "after": 1, "past": 1})
_BEFORE_CLOCK = word_set("at until till um bis ab gegen")
_ROUND_MINUTES = frozenset((10, 15, 20, 30, 40, 45, 50))
_GOES_ON = word_set("on and to until instead each every sharp or when")
_HAN_HALF = dict.fromkeys(("上午", "早上", "凌晨", "午前"), 0) | dict.fromkeys(
    ("下午", "晚上", "午後", "傍晚", "中午"), 1
)
_HAN_PARTS = {
    "年": ("year", 1000, 2199), "月": ("month", 1, 12), **dict.fromkeys("日号號", ("day", 1, 31)),
    **dict.fromkeys("点點时時", ("hour", 0, 24)), "分": ("minute", 0, 59),
}  # fmt: skip
"""What the first character behind a number makes it, and from where to where it is that."""
_HAN_NEEDS = {"day": "month", "minute": "time"}
_HAN_SPANS = ("時間", "时间", "点数")


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or time from one token to before another, by parts; ``unsure`` if the words may mean something else."""

    first: int
    behind: int
    parts: dict[str, int]
    unsure: bool = False

    @property
    def is_clock(self) -> bool:
        """Whether it is a time of day alone."""
        return "time" in self.parts and not self.parts.keys() & {"year", "month", "day", "weekday"}


def clock(at: Cursor, place: int) -> Moment | None:
    """Read "9:30", "18.30 Uhr", "9 a.m.", "18h30" of French."""
    hours, point, pointed = at.lows[place].partition(".")
    if not _is_hour(hours, pointed if point else "00"):
        return None
    hour, marked = int(hours), None if point else _minutes(at, place + 1)
    minute, behind = marked or (int(pointed or 0), place + 1)
    said = _half(at, behind, hour)
    if said is not None or marked is not None:
        half, behind = said or (None, behind)
        early = marked is not None and hours.startswith("0")
        return Moment(place, behind, _clock_parts(hour, minute, half, early=early))
    # "Closes at 18.00." may be a price as well.
    is_clock = point and at.lows[place - 1] in _BEFORE_CLOCK and _ends(at, behind)
    return Moment(place, behind, _clock_parts(hour, minute, None), unsure=True) if is_clock else None


def _is_hour(hours: str, minutes: str) -> bool:
    plain = hours.isdecimal() and minutes.isdecimal() and len(hours) <= 2 == len(minutes)
    return plain and int(hours) <= 24 and int(minutes) < 60


def _minutes(at: Cursor, place: int) -> tuple[int, int] | None:
    """Return the minutes of ":30", ":30:15" and of French "h30", and the token behind them."""
    if at.lows[place] in (":", "：") and at.joined(place, 2):
        minute = at.number(place + 1)
        seconds = at.lows[place + 2] == ":" and at.joined(place + 2, 2)
        if minute is None or minute > 59 or len(at.lows[place + 1]) != 2:
            return None
        return None if seconds and at.number(place + 3) is None else (minute, place + 2 + 2 * seconds)
    if at.lows[place] == "h" and at.joined(place) and at.worded == "fr":
        found = at.number(place + 1) if at.joined(place + 1) else None
        return found or 0, place + 1 + (found is not None)
    return None


def _ends(at: Cursor, place: int) -> bool:
    """Return whether a sentence or line ends at a token, or goes on with another thing than a unit."""
    return at.sort(place) in ("", BREAK) or at.lows[place] in _GOES_ON or at.lows[place] in _STOPS


def _half(at: Cursor, place: int, hour: int) -> tuple[int | None, int] | None:
    """Return which half of the day is said, if any, and the token behind; ``None`` if no time is."""
    low, following, third = at.lows[place : place + 3]
    if low in ("am", "pm"):
        return int(low == "pm"), place + 1
    if low in ("a", "p") and (following, third) == (".", "m") and at.joined(place + 2):
        return int(low == "p"), place + 3 + (at.lows[place + 3] == "." and at.joined(place + 3))
    if low == "uhr":
        return None if hour <= 12 else 1, place + 1
    if low in _HOURS and at.worded == "fr" and at.lows[place - 2] in ("à", "vers", "dès"):
        return None, place + 1
    if low == "o" and following in ("'", "’") and third == "clock":
        return _half_behind_oclock(at, place + 3, hour)
    return _part_of_day(at, place, hour)


def _half_behind_oclock(at: Cursor, place: int, hour: int) -> tuple[int | None, int]:
    said = None if at.lows[place + 2] == "clock" else _half(at, place, hour)
    return (None, place) if said is None or said[0] is None else said


def _part_of_day(at: Cursor, place: int, hour: int) -> tuple[int | None, int] | None:
    """Return which half of the day "in the evening", "du matin" and "at night" say, and the token behind."""
    low, noun = at.lows[place], place + 1
    if low in ("in", "de", "du", "por"):
        noun += at.lows[noun] in ("the", "la", "le", "l")
    elif (low, at.lows[noun]) != ("at", "night"):
        return None
    if (part := at.lows[noun]) in _NIGHT:
        return int(_DAWN <= hour < 12), noun + 1
    return (int(part in _LATER), noun + 1) if part in _LATER or part in _MORNING else None


def worded_clock(at: Cursor, place: int) -> Moment | None:
    """Read "six in the evening", "at nine", "half past three", "a quarter to six"."""
    return _aside_of_hour(at, place) or _hour_in_words(at, place)


def _aside_of_hour(at: Cursor, place: int) -> Moment | None:
    """Read "ten past three" and "five minutes before noon"."""
    low, aside = at.lows[place], place + 1
    minutes = {"half": 30, "quarter": 15}.get(low, at.english(place))
    more = at.english(aside + 1) if at.lows[aside] == "-" else 0
    minutes, aside = minutes + more, aside + 2 * bool(more)
    aside += at.lows[aside] in ("minutes", "minute")
    word, following = at.lows[aside], at.lows[aside + 1]
    if not (0 < minutes < 60 and word in _ASIDE):
        return None
    if following in NOONS:
        whole = (720 * NOONS[following] + _ASIDE[word] * minutes) % 1440
        return Moment(place, aside + 2, _clock_parts(whole // 60 % 12, whole % 60, whole // 720))
    hour = at.english(aside + 1) or at.number(aside + 1) or 0
    if word not in ("past", "to") or not 1 <= hour <= 12:
        return None
    # "Two to four" are two numbers.
    led = low in ("half", "quarter") or at.lows[place - 1] in ("at", "until", "by")
    if word == "to" and not (led and minutes in range(5, 31, 5)):
        return None
    whole = hour * 60 + _ASIDE[word] * minutes
    half, behind = _half(at, aside + 2, whole // 60) or (None, aside + 2)
    return Moment(place, behind, _clock_parts(whole // 60 % 24 or 12, whole % 60, half))


def _hour_in_words(at: Cursor, place: int) -> Moment | None:
    """Read "six in the evening", "nine thirty a.m.", "at nine"."""
    hour = number_word(at.lows[place], at.worded or "en") or 0
    if not 1 <= hour <= 12:
        return None
    minute, behind = at.english(place + 1), place + 2
    if minute not in _ROUND_MINUTES:
        minute, behind = 0, place + 1
    if (said := _half(at, behind, hour)) is not None:
        return Moment(place, said[1], _clock_parts(hour, minute, said[0]))
    last = not minute and (_ends(at, behind) or at.sort(behind) == MARK)
    if last and at.lows[place - 1] in ("at", "until", "till", "by"):
        return Moment(place, behind, _clock_parts(hour, 0, None), unsure=True)
    return None


def han_date(at: Cursor, place: int) -> Moment | None:
    """Read "2024年3月5日", "三月", "12时30分", "下午3点" without its half."""
    parts: dict[str, int] = {}
    behind = place
    while at.joined(behind + 1) and (told := _han_part(at, behind, parts)):
        parts |= told
        behind += 2
        if len(at.lows[behind - 1]) > 1:
            break
    return Moment(place, behind, parts) if parts else None


def _han_part(at: Cursor, place: int, parts: dict[str, int]) -> dict[str, int]:
    """Return what a number with the Han characters behind it adds to a date, if anything."""
    value, mark = _han_value(at, place), at.lows[place + 1]
    name, low, high = _HAN_PARTS.get(mark[0], ("", 0, 0))
    if value is None or at.sort(place + 1) != HAN or not low <= value <= high:
        return {}
    if (name == "year" and parts) or (name in _HAN_NEEDS and _HAN_NEEDS[name] not in parts):
        return {}
    if name == "minute":
        return {"time": parts["time"] + value}
    if name != "hour":
        return {name: value} if name else {}
    half_past = 30 * at.lows[place + 2].startswith("半")
    return {} if mark.startswith(_HAN_SPANS) else _clock_parts(value, half_past, None)


def _han_value(at: Cursor, place: int) -> int | None:
    if at.sort(place) == NUMBER:
        return at.number(place, 4)
    value = han_number(at.lows[place]) if at.sort(place) == HAN_NUMBER else None
    return None if value is None else int(value)


def han_word(at: Cursor, place: int) -> Moment | None:
    """Read "下午3点", "星期三", "月曜日", "第三季度"."""
    low, following = at.lows[place], at.lows[place + 1]
    for half, noon in _HAN_HALF.items():
        found = han_date(at, place + 1) if low.endswith(half) else None
        if found is not None and "time" in found.parts:
            return Moment(place, found.behind, found.parts | {"half": noon})
    if low == "第" and at.lows[place + 2].startswith(("季度", "四半期")):
        quarter = _han_value(at, place + 1) or 0
        return Moment(place, place + 3, {"quarter": quarter}) if 1 <= quarter <= 4 else None
    if not at.joined(place + 1):
        return None
    if low.endswith(("星期", "周", "週", "礼拜")):
        day = _HAN_DAYS.get(following[:1])
    else:
        day = _JA_DAYS.find(low[-1]) if following == "曜日" else None
    return None if day is None or day < 0 else Moment(place, place + 2, {"weekday": day})


def _clock_parts(hour: int, minute: int, half: int | None, *, early: bool = False) -> dict[str, int]:
    parts = {"time": hour % 12 * 60 + minute}
    if half is None and early:
        half = 0
    if half is None and (hour > 12 or hour == 0):
        half = int(hour >= 12 and hour != 24)
    if half is not None:
        parts["half"] = half
    return parts
