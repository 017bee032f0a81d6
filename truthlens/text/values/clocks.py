"""Read times of day, and dates written in Han characters, from tokens. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from truthlens.text.values.numerals import han_number, number_word
from truthlens.text.values.tokens import HAN, HAN_NUMBER, MARK, NUMBER, Token
from truthlens.text.word_forms import word_set

_HAN_DAYS = {"一": 0, "二": 1, "三": 2, "四": 3, "五": 4, "六": 5, "日": 6, "天": 6}
_JA_DAYS = "月火水木金土日"
NOONS = MappingProxyType({
    "noon": 1, "midday": 1, "midnight": 0, "mittag": 1, "mitternacht": 0, "midi": 1, "minuit": 0, "mediodía": 1, "medianoche": 0,
})  # fmt: skip
_MORNING = word_set("morning matin mañana morgens früh vormittags madrugada")
_LATER = word_set("afternoon evening soir abends nachmittags tarde après-midi")
_NIGHT = word_set("night noche nuit")
_DAWN = 6  # "three at night" is before it, "nine at night" is not
CLOCK_GOES_ON = word_set(": ： h am pm a p uhr heures heure o'clock o in de du por at")
"""What stands behind the hour of a time of day in digits."""
_HAN_HALF = {
    "上午": 0,
    "早上": 0,
    "凌晨": 0,
    "午前": 0,
    "下午": 1,
    "晚上": 1,
    "午後": 1,
    "傍晚": 1,
    "中午": 1,
}


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


class ClockReader:
    """Reads times of day.

    Args:
        text: all of it.
        listed: its tokens.
        language: its language, for number words.
        small: what ``tokens.lows`` gives of them.
    """

    def __init__(self, text: str, listed: Sequence[Token], language: str, small: Sequence[str]) -> None:
        self._text, self._listed, self._language, self._lows = text, listed, language, small

    def _number(self, place: int, digits: int = 2) -> int | None:
        low = self._lows[place]
        return int(low) if low.isascii() and low.isdecimal() and len(low) <= digits else None

    def _joined(self, place: int) -> bool:
        """Return whether the token at ``place`` stands right behind the one before."""
        return 0 < place < len(self._listed) and self._listed[place].start == self._listed[place - 1].end

    def _clock(self, place: int) -> Moment | None:
        low, behind, minute = self._lows[place], place + 1, 0
        hour_text, point, minute_text = low.partition(".")
        unsure_point = bool(point)
        if not (hour_text.isdecimal() and len(hour_text) <= 2 and int(hour_text) <= 24):
            return None
        if point and not (len(minute_text) == 2 and minute_text.isdecimal() and int(minute_text) < 60):
            return None
        hour = int(hour_text)
        marked = False
        if point:
            minute = int(minute_text)
        elif self._lows[behind] in (":", "：") and self._joined(behind) and self._joined(behind + 1):
            found = self._number(behind + 1)
            if found is None or found > 59 or len(self._lows[behind + 1]) != 2:
                return None
            if (
                self._lows[behind + 2] == ":"
                and self._joined(behind + 2)
                and self._number(behind + 3) is None
            ):
                return None
            minute, behind, marked = found, behind + 2, True
            if (
                self._lows[behind] == ":"
                and self._joined(behind)
                and self._joined(behind + 1)
                and self._number(behind + 1) is not None
            ):
                behind += 2
        elif self._lows[behind] == "h" and self._joined(behind) and self._language == "fr":
            found = self._number(behind + 1) if self._joined(behind + 1) else None
            minute, behind, marked = found or 0, behind + 1 + (found is not None), True
        half, behind, named = self._half(behind, hour)
        if not marked and not named:
            return None
        if unsure_point and not named:
            return None
        early = marked and hour_text.startswith("0") and half is None
        return Moment(place, behind, _clock_parts(hour, minute, half, early=early))

    def _half(self, place: int, hour: int) -> tuple[int | None, int, bool]:
        """Return whether a time of day is after noon, the token behind, and whether anything said that it is a time."""
        low = self._lows[place]
        if low in ("am", "pm"):
            return int(low == "pm"), place + 1, True
        if (
            low in ("a", "p")
            and self._lows[place + 1] == "."
            and self._lows[place + 2] == "m"
            and self._joined(place + 2)
        ):
            return (
                int(low == "p"),
                place + 3 + (self._lows[place + 3] == "." and self._joined(place + 3)),
                True,
            )
        if low == "uhr":
            return None if hour <= 12 else 1, place + 1, True
        if (
            low in ("heures", "heure", "h")
            and self._language == "fr"
            and self._lows[place - 2] in ("à", "vers", "dès")
        ):
            return None, place + 1, True
        if low == "o'clock" or (
            low == "o" and self._lows[place + 1] in ("'", "’") and self._lows[place + 2] == "clock"
        ):
            behind = place + (1 if low == "o'clock" else 3)
            half, at, _ = self._half(behind, hour)
            return half, at if half is not None else behind, True
        for ahead in (1, 2):
            word = self._lows[place + ahead]
            if self._lows[place] in ("in", "de", "du", "por") and (
                ahead == 1 or self._lows[place + 1] in ("the", "la", "le", "l")
            ):
                if word in _MORNING:
                    return 0, place + ahead + 1, True
                if word in _NIGHT:
                    return _half_at_night(hour), place + ahead + 1, True
                if word in _LATER:
                    return 1, place + ahead + 1, True
        if low == "at" and self._lows[place + 1] == "night":
            return _half_at_night(hour), place + 2, True
        return None, place, False

    def _worded_clock(self, place: int) -> Moment | None:
        """Read "six in the evening", "at nine", "half past three", "a quarter to six"."""
        low = self._lows[place]
        at = place + 1
        minutes = {"half": 30, "quarter": 15}.get(low) or number_word(low, "en") or 0
        if self._lows[at] == "-" and (more := number_word(self._lows[at + 1], "en")):
            minutes, at = minutes + more, at + 2
        at += self._lows[at] in ("minutes", "minute")
        if (
            0 < minutes < 60
            and self._lows[at] in ("past", "to")
            and (minutes in (15, 30) or self._lows[at] == "past" or minutes in (5, 10, 20, 25))
        ):
            hour = number_word(self._lows[at + 1], "en") or self._number(at + 1)
            spelled_to = self._lows[at] == "to" and low not in ("half", "quarter")
            if (
                hour is not None
                and 1 <= hour <= 12
                and not (spelled_to and self._lows[place - 1] not in ("at", "until", "by"))
            ):
                half, behind, _ = self._half(at + 2, hour)
                whole = hour * 60 + (minutes if self._lows[at] == "past" else -minutes)
                return Moment(place, behind, _clock_parts(whole // 60 % 24, whole % 60, half))
        hour = number_word(low, self._language or "en")
        if hour is None or not 1 <= hour <= 12:
            return None
        minute = number_word(self._lows[place + 1], "en") or 0
        at = place + 2 if minute in (10, 15, 20, 30, 40, 45, 50) else place + 1
        half, behind, named = self._half(at, hour)
        if named:
            return Moment(place, behind, _clock_parts(hour, minute if at == place + 2 else 0, half))
        last = (
            at >= len(self._listed)
            or self._listed[at].sort in (MARK, "b")
            or self._lows[at]
            in ("on", "and", "to", "until", "instead", "each", "every", "sharp", "or", "when")
        )
        if self._lows[place - 1] in ("at", "until", "till", "by") and last and at == place + 1:
            return Moment(place, at, _clock_parts(hour, 0, None), unsure=True)
        return None

    def _han_date(self, place: int) -> Moment | None:
        """Read "2024年3月5日", "三月", "12时30分", "下午3点" without its half."""
        parts: dict[str, int] = {}
        at = place
        while at + 1 < len(self._listed) and self._joined(at + 1):
            value = self._han_value(at)
            mark = self._listed[at + 1].low
            if value is None or self._listed[at + 1].sort != HAN:
                break
            if mark.startswith(("年", "年度")) and 1000 <= value < 2200 and not parts:
                parts["year"] = value
            elif mark.startswith("月") and 1 <= value <= 12:
                parts["month"] = value
            elif mark[0] in "日号號" and 1 <= value <= 31 and "month" in parts:
                parts["day"] = value
            elif mark[0] in "点點时時" and value <= 24 and not mark.startswith(("時間", "时间", "点数")):
                parts |= _clock_parts(value, 30 if mark[1:2] == "半" else 0, None)
            elif mark[0] == "分" and "time" in parts and value < 60:
                parts["time"] += value
            else:
                break
            at += 2
            if len(mark) > 1:
                break
        return Moment(place, at, parts) if parts else None

    def _han_value(self, place: int) -> int | None:
        token = self._listed[place]
        if token.sort == NUMBER:
            return self._number(place, 4)
        value = han_number(token.low) if token.sort == HAN_NUMBER else None
        return None if value is None else int(value)

    def _han_word(self, place: int) -> Moment | None:
        low = self._lows[place]
        for half, noon in _HAN_HALF.items():
            found = (
                self._han_date(place + 1) if low.endswith(half) and place + 1 < len(self._listed) else None
            )
            if found is not None and "time" in found.parts:
                return Moment(place, found.behind, found.parts | {"half": noon})
        if low.endswith(("星期", "周", "週", "礼拜")) and self._joined(place + 1):
            day = _HAN_DAYS.get(self._lows[place + 1][:1])
            return None if day is None else Moment(place, place + 2, {"weekday": day})
        if self._lows[place + 1] == "曜日" and low[-1] in _JA_DAYS and self._joined(place + 1):
            return Moment(place, place + 2, {"weekday": _JA_DAYS.index(low[-1])})
        if (
            low == "第"
            and self._lows[place + 2].startswith(("季度", "四半期"))
            and (value := self._han_value(place + 1))
        ):
            return Moment(place, place + 3, {"quarter": value}) if 1 <= value <= 4 else None
        return None


def _half_at_night(hour: int) -> int:
    return int(_DAWN <= hour < 12)


def _clock_parts(hour: int, minute: int, half: int | None, *, early: bool = False) -> dict[str, int]:
    parts = {"time": hour % 12 * 60 + minute}
    if half is None and early:
        half = 0
    if half is None and (hour > 12 or hour == 0):
        half = int(hour >= 12 and hour != 24)
    if half is not None:
        parts["half"] = half
    return parts
