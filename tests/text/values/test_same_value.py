"""A table of pairs of values: the same, different, or not to be compared; each pair in both directions."""

from __future__ import annotations

import pytest

from truthlens.core.records.explanation import DifferenceKind
from truthlens.text.values.mentions import Mention, mentions, same_mention
from truthlens.text.words import words


def _rows(table: str) -> list[tuple[str, str]]:
    pairs = (line.split(" | ") for line in table.strip().splitlines())
    return [(one.strip(), other.strip()) for one, other in pairs]


SAME = _rows("""
1 1/2 cups | 1.5 cups
2 1/4 cups | 2.25 cups
1/2 cup | 0.5 cup
1,000 people | 1000 people
12,500 books | 12500 books
1,234,567 rows | 1234567 rows
2 books | two books
twelve books | 12 books
twenty books | 20 books
ninety rows | 90 rows
a hundred books | 100 books
1.5 million people | 1,500,000 people
2 billion people | 2,000,000,000 people
3 thousand books | 3000 books
5k users | 5000 users
1.2 trillion rows | 1200 billion rows
40 percent | 40%
40 per cent | 40 %
12.5% | 12.5 percent
12 % | 0.12
$5 million | 5 million dollars
$5,000,000 | 5 million dollars
1.2 million euros | €1,200,000
USD 40 | $40
EUR 40 | €40
40 euros | €40
£12 | GBP 12
500 mg | 0.5 g
1 kg | 1000 g
2 kilograms | 2000 grams
3.5kg | 3.5 kg
5 g. | 5000 mg
1.250,50 Euro | 1250.50 euros
twenty-five pounds | £25
6'2" | 6 ft 2 in
6 feet 2 inches | 74 inches
1½ cups | 1.5 cups
2h30 | 150 minutes
1 hour 20 minutes | 80 minutes
3 pounds and 20 pence | £3.20
1.5m people | 1.5 million people
half a dozen eggs | 6 eggs
2-year plan | 24 months
nineteen ninety-four | in 1994
the nineteen nineties | the 1990s
3:1 here | 3x
20 degrees | 68 °F
1 km | 1000 m
2 km | 2000 metres
1.5 litres | 1500 ml
12 inches | 1 foot
1 mile | 5280 feet
16 ounces | 1 lb
60 minutes | 1 hour
90 minutes | 1.5 hours
24 hours | 1 day
14 days | 2 weeks
24 months | 2 years
120 months | 1 decade
180 °C | 180 degrees Celsius
350 °F | 350 degrees Fahrenheit
level 3 | level 3
on 3 March 2024 | on 2024-03-03
March 3, 2024 | 3 March 2024
March 3rd, 2024 | 2024-03-03
3 Mar 2024 | 2024/03/03
on 3/30/2024 | on 30/3/2024
on 3/30/2024 | on 2024-03-30
at 5 pm | at 17:00
at 5:30 pm | at 17:30
at 12 pm | at 12:00
on Monday | on Mondays
Q3 2024 | Q3
Q3 2024 | third quarter of 2024
in the first quarter | in Q1
第三季度 | Q3
于2024年3月5日 | 2024-03-05
2024年3月 | March 2024
1990年 | in 1990
3月5日 | March 5
am 3. März 2024 | 2024-03-03
am 1. Oktober 2023 | October 1, 2023
le 14 juillet 1789 | July 14, 1789
le 1er mai 2020 | May 1, 2020
el 5 de enero de 2021 | January 5, 2021
12 de octubre de 1492 | October 12, 1492
3万元 | 30000元
3.5万元 | 35000元
2亿人 | 200000000人
40美元 | $40
40欧元 | €40
24个月 | 2年
60分钟 | 1小时
1公斤 | 1000克
2公里 | 2000米
300人 | 300人
5 km | 5公里
20 minutes | 20分钟
by Keller there | by Anna Keller there
""")
DIFFERENT = _rows("""
1 1/2 cups | 1.25 cups
1/2 cup | 1/3 cup
1,000 people | 10,000 people
two books | three books
twenty books | 12 books
1.5 million people | 1.5 billion people
5k users | 500 users
40 percent | 45%
12.5% | 14%
$5 million | $5 billion
$40 | $45
€40 | €14
1.2 million euros | 1.2 euros
500 mg | 500 g
5 mg. | 5 g.
20 degrees | 75 °F
2 hours 30 minutes | 2 hours 3 minutes
45 mg | 54 mg
1 kg | 100 g
1 km | 100 m
1.5 litres | 150 ml
1 foot | 1 inch
20 minutes | 20 hours
60 minutes | 2 hours
14 days | 3 weeks
24 months | 700 days
24 months | 3 years
180 °C | 180 °F
180 °C | 190 °C
level 3 | level 4
step 1 of 3 rounds | step 1 of 4 rounds
chapter 7 | chapter 9
version 2 | version 3
on 3 March 2024 | on 4 March 2024
on 2024-03-03 | on 2024-04-03
in May 2019 | in June 2019
in March 2024 | in March 2023
in 1990 | in 1985
in the 1990s | in 1985
at 5 pm | at 5 am
at 5 pm | at 6 pm
at 17:00 | at 17:30
on Monday | on Tuesday
Q1 | Q2
Q3 2024 | Q3 2023
first quarter | Q2
第一季度 | 第三季度
于2024年3月5日 | 于2024年3月6日
1990年 | 1985年
3月5日 | 3月6日
am 3. März 2024 | am 3. Mai 2024
le 14 juillet 1789 | le 14 juin 1789
el 5 de enero de 2021 | el 5 de febrero de 2021
3万元 | 3亿元
40美元 | 45美元
24个月 | 3年
60分钟 | 2小时
1公斤 | 100克
300人 | 500人
by Anna Keller there | by Paul Meyer there
by Anna Keller there | by Anna Brandt there
""")
NOT_COMPARABLE = _rows("""
45 mg | 45 minutes
12 % | 13 books
$12 | 12 books
in 1999 | on Monday
45 | in 1999
20 minutes | 20 km
180 °C | 180 grams
level 3 | 3 books
level 3 | chapter 3
at 5 pm | in March 2024
Q3 | on Monday
3万元 | 3公里
24个月 | 24公斤
1 pound of flour | 454 grams
by Anna Keller there | in 1999
12 % | 5 minutes
$40 | 40%
""")


def _only(text: str) -> Mention:
    (mention,) = mentions(text, words(text), names=frozenset())
    return mention


def test_the_table_is_long_enough() -> None:
    """One hundred and fifty pairs at least."""
    assert len(SAME) + len(DIFFERENT) + len(NOT_COMPARABLE) >= 150


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        *((*pair, True) for pair in SAME),
        *((*pair, False) for pair in DIFFERENT),
        *((*pair, None) for pair in NOT_COMPARABLE),
    ],
)
def test_two_values_are_the_same_differ_or_cannot_be_compared(
    one: str, other: str, expected: bool | None
) -> None:
    """In either order, and each is the same as itself."""
    first, second = _only(one), _only(other)
    assert same_mention(first, second) is expected
    assert same_mention(second, first) is expected
    assert same_mention(first, first) is True
    assert first.kind in DifferenceKind
