"""Values of answers against passages: what is verified, contradicted, derived, and what nothing can be told of."""

from __future__ import annotations

import pytest

from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.detectors.numbers.detector import NumberDetector
from truthlens.detection.detectors.numbers.options import Options

NOI = "The NOI for the property was $1,200,000 in Q3 2024."
WIRES = "Transfers. A domestic wire costs 25 dollars; an international wire costs 40 dollars. Wires sent before 3 p.m. leave the same day."
PLANS = "| Plan | Price | Seats |\n|---|---|---|\n| Basic | $10 | 3 |\n| Pro | $40 | 12 |"
SITE = '{"site": "Kiln House", "energy": {"electricity_mwh": 284, "district_heat_mwh": 246}, "peak_demand": {"kw": 142}}'
LIST = "building: Kiln House\nfloor_area_m2: 3150\nbuilt: 1932\npeak_demand:\n  kw: 142\n  when: 2023-01-18 08:30"
SHEET = "shelter,elevation_m,bunks,fee_nok\nSkardbu,1120,18,320\nVasshytta,860,32,450\nDalstein,640,24,380"
LIBRARY = "The library opened in 1990. It holds 52,000 books and lends 1,234,567 items a year. It opens at 9:30 and closes at 18:00."
LEASE = "The rent is $1,500 a month. The lease runs from 1 April 2024 to 31 March 2026. A third of the deposit is kept."
DE = "Die Miete beträgt 1.200 Euro im Monat. Die Kündigungsfrist beträgt drei Monate. Das Büro öffnet um 9 Uhr."
FR = (
    "Le loyer est de 1 200 euros par mois. Le contrat commence le 3 mai 2024 et le préavis est de trois mois."
)
ES = "El alquiler es de 1.200 euros al mes. El contrato empieza el 3 de mayo de 2024 con un aviso de tres meses."
ZH = "公司第三季度营收为1200万元，入住率为85%。会议在星期二下午3点举行。"
JA = "家賃は月12万円です。会議は3月5日火曜日の午後3時に始まります。"


def result(passages: str | list[str], answer: str, query: str = "", **options: object) -> DetectorResult:
    """The result of the detector on one answer."""
    listed = [passages] if isinstance(passages, str) else passages
    exchange = Exchange(Endpoint.CHAT, "m", query, tuple(Passage(each, Provenance.TOOL) for each in listed))
    (found,) = NumberDetector(Options.model_validate(options)).detect_all(
        exchange, [Answer(0, AnswerKind.TEXT, answer)], aggregation=None, stop=lambda: False
    )
    return found


MILL = "Harlow Mill was built in 1912 and ran for 20 years. On 3 May 1944 a fire destroyed the mill."
SUPPORTED = [
    (MILL, "The mill burnt down in the 1940s."),
    (MILL, "The mill was built in the 20th century."),
    (MILL, "The mill burnt down on May 3, 1944, 32 years after it was built."),
    (MILL, "The mill burnt down on May 3, 1944, 32 years after its completion."),
    ("Die Mühle brannte am 3. Mai 1944 ab.", "Die Mühle brannte in den 1940er Jahren ab."),
    ("Die Mühle wurde 1850 gebaut.", "Die Mühle wurde im 19. Jahrhundert gebaut."),
    ("Le moulin a brûlé le 3 mai 1944.", "Le moulin a brûlé dans les années 1940."),
    ("The sale was on 3 May 2024, the audit on 7 July 2023.", "The sale was on a Friday."),
    ("No more than six hens may be kept.", "No more than six hens may be kept (118)."),
    ("No more than six hens may be kept.", "No more than six hens may be kept [118]."),
    ("第四条 工作日加班按工资的 150% 计算,休息日按 200% 计算。", "休息日加班按工资的 200% 计算。"),
    (NOI, "The NOI was $1.2M."),
    (NOI, "The NOI was $1.25M."),
    (NOI, "The NOI was $1.26M."),
    (NOI, "In Q3 2024 the NOI came to 1.2 million dollars."),
    ("The property has 1.25x coverage.", "Coverage stands at 1.25x."),
    ("Occupancy was 85% in the quarter.", "Occupancy was 85 percent."),
    ("Occupancy was 85% in the quarter.", "Occupancy was 86.7%."),
    ('{"occupancy_rate": 0.85}', "The occupancy rate was 85%."),
    (WIRES, "A domestic wire costs 25 dollars."),
    (WIRES, "An international wire costs forty dollars."),
    (WIRES, "Both wires together cost 65 dollars."),
    (PLANS, "The Pro plan costs $40 and has 12 seats."),
    (PLANS, "The Basic plan costs ten dollars."),
    (SITE, "The building used 284 MWh of electricity."),
    (SITE, "Peak demand was 142 kW."),
    (LIST, "Built in 1932, it has 3,150 square metres."),
    (LIST, "The peak of 142 kilowatts came on 18 January 2023 at half past eight in the morning."),
    (SHEET, "Vasshytta, at 860 m, has 32 bunks."),
    (SHEET, "A night at Dalstein costs NOK 380."),
    (LIBRARY, "The library holds more than fifty thousand books."),
    (LIBRARY, "It lends 1.2 million items a year."),
    (LIBRARY, "It is open for eight and a half hours a day."),
    (LIBRARY, "It opens at half past nine."),
    (LEASE, "The rent is 1,500 dollars."),
    ("02:35 Alarm on panel.", "The alarm came at twenty-five to three in the night."),
    ("The group ticket is good until 03:00.", "The ticket is good until three at night."),
    ("The trip takes 1.5 hours.", "The trip takes 90 minutes."),
    ("The pool is 25 metres long.", "The pool is 82 feet long."),
    (
        ["Of the 312 applications 268 were approved."],
        "44 applications were not approved, out of 312 in total.",
    ),
    (DE, "Die Miete ist 1200 Euro."),
    (DE, "Das Büro öffnet um 9 Uhr."),
    (FR, "Le loyer est de 1200 euros."),
    (ES, "El alquiler es de 1200 euros."),
    (ZH, "入住率为百分之八十五。"),
    (ZH, "营收为1200万元。"),
    (JA, "家賃は12万円です。"),
]
SUPPORTED += [
    ("The library opens at nine and closes at six in the evening.", '{"opens": 9, "closes": 18}'),
    ("The library opens at nine and closes at six in the evening.", '{"opens": "09:00", "closes": "18:00"}'),
    (
        "The library opens at nine and closes at six in the evening.",
        "| Opens | Closes |\n|---|---|\n| 9:00 | 18:00 |",
    ),
]
# Equal by arithmetic alone.
SUPPORTED += [
    (one, other)
    for first, second in [
        ("5 % of the labels are wrong.", "One label in twenty is wrong."),
        ("5 % of the labels are wrong.", "One in twenty labels is wrong."),
        ("75 % of the members voted.", "Three out of four members voted."),
        ("Buses leave every 15 minutes.", "Buses leave four times an hour."),
        ("Buses leave every quarter of an hour.", "Buses leave every 15 minutes."),
        ("Trains run twice a day.", "Trains run every 12 hours."),
        ("Loans last a fortnight.", "Loans last 14 days."),
        ("Loans last three weeks.", "Loans last 21 days."),
        ("Half of the seats are taken.", "50 % of the seats are taken."),
        ("The form has a dozen pages.", "The form has 12 pages."),
        ("Loans can be renewed twice.", "Loans can be renewed two times."),
        ("The meeting lasts an hour and a half.", "The meeting lasts 90 minutes."),
        ("The parcel weighs 5-7 kg.", "The parcel weighs 5000 to 7000 g."),
        ("The city has 1.5m people.", "The city has 1.5 million people."),
        ("The fee is 5 dollars a year.", "The fee is about 42 cents a month."),
        ("He pays $1,200 a year.", "He pays 100 dollars per month."),
        ("The dose is <b>5</b> mg.", "The dose is **0.005** g."),
        ("The bottle holds 2 l.", "The bottle holds 2000 ml!"),
    ]
    for one, other in ((first, second), (second, first))
]
WRONG = [
    ("The mill burnt down on 3 May 1944.", "The mill burnt down in the 1950s.", "1950s"),
    ("The mill was built in 1850.", "The mill was built in the 18th century.", "18th century"),
    ("Die Mühle wurde 1850 gebaut.", "Die Mühle wurde im 18. Jahrhundert gebaut.", "18. Jahrhundert"),
    ("The mill ran for 20 years. It was built in 1912 and burnt down in 1944.", "The mill ran for 25 years after it was built.", "25 years"),
    ("5 % of the labels are wrong.", "10 % of the labels are wrong.", "10 %"),
    ("One label in twenty is wrong.", "10 % of the labels are wrong.", "10 %"),
    ("5 % of the labels are wrong.", "One label in ten is wrong.", "One label in ten"),
    ("Buses leave every 15 minutes.", "Buses leave three times an hour.", "three times an hour"),
    ("Loans last a fortnight.", "Loans last three weeks.", "three weeks"),
    ("Loans can be renewed twice.", "Loans can be renewed three times.", "three"),
    ("The fee is 5 dollars a year.", "The fee is 5 dollars a month.", "5 dollars"),
    ("The dose is 5 mg.", "The dose is 5 g.", "5 g"),
    ("The bottle holds 2 l.", "The bottle holds 2 ml.", "2 ml"),
    ("The path is 3 km.", "The path is 3 m.", "3 m"),
    ("It uses 60 W, they say.", "It uses 60 kW, they say.", "60 kW"),
    ("The parcel weighs 5-7 kg.", "The parcel weighs 5-9 kg.", "9 kg"),
    ("Members may borrow eight books for three weeks.", "Members may borrow nine books for three weeks.", "nine"),
    ("A lost card costs 25 dollars.", "<p>A lost card costs <b>$45</b>.</p>", "$45"),
    ("The club had 250 members in June.", "The club had more members in June (400).", "400"),
    ("Basel sold 250 bicycles in June.", "Basel sold fewer bicycles in June (110).", "110"),
    ("The plant employs 430 people.", "The plant employs many people (620).", "620"),
    ("Units sold: 250", "Units sold (620)", "620"),
    ("The bridge of Orlop was built in 1998.", "The bridge of Orlop (built in 1999) is old.", "1999"),
    ("The fee is 40 dollars.", "The fee is small (45 dollars).", "45 dollars"),
    (NOI, "The NOI was $1.5M for the property.", "$1.5M"),
    (NOI, "The NOI for Q4 2024 was $1.2M.", "Q4 2024"),
    ("Occupancy of the property was 85% in the quarter.", "Occupancy was 95%.", "95%"),
    ("The DSCR was 1.25 in Q3 2024.", "The DSCR was 1.5.", "1.5"),
    ("The meeting is on Tuesday.", "The meeting is on Wednesday.", "Wednesday"),
    ("The sales forecast for Q3 2024 is $3 million.", "The sales forecast for Q4 2024 is $3 million.", "Q4 2024"),
    (WIRES, "A domestic wire costs 40 dollars.", "40 dollars"),
    (WIRES, "An international wire costs 25 dollars.", "25 dollars"),
    (WIRES, "A domestic wire costs 30 dollars.", "30 dollars"),
    (SITE, "The peak demand was 124 kW.", "124 kW"),
    (LIST, "The peak demand was 124 kW.", "124 kW"),
    ("The current version is 2.3.1.", "The current version is 2.3.4.", "2.3.4"),
    ("The conference room is Room 204.", "The conference is in Room 402.", "402"),
    ("The trip takes 1.5 hours.", "The trip takes 80 minutes.", "80 minutes"),
    ("The fly sheet withstands a water column of 3,000 mm.", "The fly sheet withstands a water column of 3,000 cm.", "3,000 cm"),
    ("Boxes must be emptied by 30 May 2025.", "Boxes must be emptied by 13 May 2025.", "13 May 2025"),
    ("Steam trains run from 12 April to 26 October.", "Steam trains run from 12 April to 26 September.", "26 September"),
    ("A wire costs 25 dollars.", "A wire costs 25 euros.", "25 euros"),
    ("We pay for dental treatment up to 650 euros.", "The limit for dental treatment is 400 euros.", "400 euros"),
    ("The siege of Halmar lasted from 3 May to 9 August 1641.", "The siege of Halmar ended on 19 July 1641.", "19 July 1641"),
    (DE, "Die Miete beträgt 1.500 Euro im Monat.", "1.500 Euro"),
    (FR, "Le loyer est de 1 500 euros par mois.", "1 500 euros"),
    (ES, "El alquiler es de 1.500 euros al mes.", "1.500 euros"),
    (ZH, "营收为1500万元。", "1500万元"),
    (JA, "家賃は月15万円です。", "15万円"),
]  # fmt: skip
UNTOLD = [
    (WIRES, "Put it in by three in the afternoon."),
    (NOI, "The property is well kept."),
    (NOI, "One of the tenants left."),
    (NOI, "1. Read the report [1].\n2. Sign it."),
    (NOI, "The bridge has 7 lanes."),
    (LEASE, "A year's rent would be $18,000 in total."),
    (LEASE, "The lease lasts two years."),
    ("Phones stay in the lockers until noon.", "At nine in the morning, phones have to be in the lockers."),
    ("The museum pays for a hotel up to 110 euros.", "A hotel for 90 euros is paid for by the museum."),
]


@pytest.mark.parametrize(("passages", "answer"), SUPPORTED)
def test_what_the_evidence_gives_is_not_flagged(passages: str | list[str], answer: str) -> None:
    """As it stands, in other words and units, rounded, or as what follows from it."""
    found = result(passages, answer)
    assert (found.score, found.spans) == (0.0, ())
    assert found.details["verified_claims"] == found.details["total_claims"] > 0


@pytest.mark.parametrize(("passages", "answer", "value"), WRONG)
def test_a_value_that_the_evidence_gives_otherwise_is_flagged(
    passages: str | list[str], answer: str, value: str
) -> None:
    """At the white paper's threshold, with the value as its span."""
    found = result(passages, answer)
    assert [answer[span.start : span.end] for span in found.spans] == [value]
    assert found.score is not None
    assert found.score >= 0.6


FARES = "| Ticket | Price |\n|---|---|\n| Child | 6 euros |\n| Adult | 12 euros |"
FARES_OF_OBJECTS = '[{"name": "child", "price": 6}, {"name": "adult", "price": 12}]'
FARES_IN_PROSE = "A child pays 6 euros and an adult 12 euros."
HOTEL = "The hotel has 40 rooms and 3 floors."
SUPPORTED += [
    ("The store runs at -5 °C.", "The store runs at −5 °C."),
    ("The store runs at -5 °C.", "The store runs at five degrees below zero."),
    ("The balance was -200 euros.", "The balance was −€200."),
    (HOTEL, "The hotel has 40 rooms on 3 floors."),
    ("The tool needs Python 3.10.", "The tool needs Python 3.10."),
    ("The battery holds 5 Ah.", "The battery holds 5000 mAh."),
    ("The line carries 1 Gbit/s.", "The line carries 1000 Mbit/s."),
    ("The dose is 5 mg/kg.", "The dose is 5 mg per kg."),
    ("The fund holds 5 crore rupees.", "The fund holds 50 million rupees."),
    ("The fee is 500 yuan.", "The fee is ¥500."),
    ("The rate rose by 25 bps.", "The rate rose by 0.25 percentage points."),
    (FARES, FARES_IN_PROSE),
    (FARES, "- Child: 6 euros\n- Adult: 12 euros"),
    (FARES, '{"child": 6, "adult": 12}'),
    (FARES_IN_PROSE, FARES),
    (FARES_OF_OBJECTS, FARES_OF_OBJECTS),
    ("The library closes at six in the evening.", "It closes at 18.00."),
    ("Monday: 9:00–18:00\nTuesday: 10:00–16:00", "- Monday: 9–18 h"),
    (
        "| Flat | Rent per week |\n|---|---|\n| A | 47.00 |\n| B | 45.00 |",
        "The rent per week of flat A is £47.00.",
    ),
]
WRONG += [
    ("The firm opened in 1998 and has 200 staff.", "It has 2000 staff.", "2000"),
    ("The store runs at -5 °C.", "The store runs at 5 °C.", "5 °C"),
    ("The tool has version 3.10 of the format.", "The tool has version 3.1 of the format.", "3.1"),
    ("The team has 12 engineers and 4 designers.", "The team has 4 engineers.", "4"),
    ("The ticket costs 12 euros.", "It costs 12 dollars.", "12 dollars"),
    ("Charging takes 5 h.", "It takes 5 min.", "5 min"),
    ("The rate rose by 25 bps.", "The rate rose by 25%.", "25%"),
    ("The rate rose by 2 percentage points.", "The rate rose by 2 percent.", "2 percent"),
    ("The fund holds 5 crore rupees.", "The fund holds 5 lakh rupees.", "5 lakh rupees"),
    ("The fee is 500 yuan.", "The fee is 500 yen.", "500 yen"),
    ("It closes at 18:00.", "It closes at 19.00.", "19.00"),
    ("The cellar is 14.2 m² large.", "The cellar is 14.2 m³ large.", "14.2 m³"),
]
UNIT_PAIRS = [
    ("The battery holds {}.", "5 Ah", "5 mAh"),
    ("The reaction gives off {}.", "5 kJ", "5 J"),
    ("The fuse takes {}.", "5 A", "5 mA"),
    ("The line carries {}.", "100 Mbps", "100 Gbps"),
    ("The pump takes {}.", "5 mW", "5 MW"),
    ("The log is {} long.", "4.8 m", "4.8 yd"),
    ("The limit is {}.", "6 knots", "6 km/h"),
    ("The box weighs {}.", "12 lb", "12 kg"),
]


@pytest.mark.parametrize(("form", "one", "other"), UNIT_PAIRS)
def test_the_figure_with_another_unit_is_a_wrong_value(form: str, one: str, other: str) -> None:
    """Either way, at the score of an exchanged value."""
    for given, said in ((one, other), (other, one)):
        assert result(form.format(given), form.format(said)).score == 0.9
        assert result(form.format(given), form.format(given)).score == 0.0


SWAPPED = [
    (HOTEL, "The hotel has 3 rooms and 40 floors."),
    ("The flat has 3 bedrooms and 2 bathrooms.", "The flat has 2 bedrooms and 3 bathrooms."),
] + [
    (evidence, answer)
    for evidence in (FARES, FARES_OF_OBJECTS, FARES_IN_PROSE, '{"child": 6, "adult": 12}', "Child: 6 euros\nAdult: 12 euros")
    for answer in (
        "A child pays 12 euros and an adult 6 euros.",
        "| Ticket | Price |\n|---|---|\n| Child | 12 euros |\n| Adult | 6 euros |",
        "- Child: 12 euros\n- Adult: 6 euros",
        '{"child": 12, "adult": 6}',
    )
]  # fmt: skip


@pytest.mark.parametrize(("evidence", "answer"), SWAPPED)
def test_exchanged_values_of_two_things_are_both_flagged(evidence: str, answer: str) -> None:
    """In prose, tables, lists and JSON, whichever of them the evidence is."""
    found = result(evidence, answer)
    assert (found.score, len(found.spans)) == (0.9, 2)
    assert found.details["verified_claims"] == 0


OTHER_THINGS = [
    f"Hall {number} has {number} doors and {number + 40} lamps. It opened in {1900 + number}; entry costs {number} dollars."
    for number in range(1, 40)
]
NOT_PROVED = [
    ("A lost card costs 25 dollars.", "| Fee |\n|---|\n| > $45 |"),
    ("A lost card costs 25 dollars.", "<table><tr><td>$45</td></tr></table>"),
    ("Members may borrow eight books for three weeks.", "Members may borrow nine books for three weeks."),
    ("Members may borrow eight books for three weeks.", "Members keep books for 20 days."),
    ("Members may borrow eight books for three weeks.", "In total, members may borrow eleven books."),
    ("The library has 412 seats and 96 lockers.", "Altogether 508 people work in the library."),
    ("The library opens at nine. Members may borrow eight books.", '{"opens": 8}'),
    ("The library opens at nine and closes at six in the evening.", '{"opens": 8, "closes": 17}'),
    ("The dose is 5 mg.", "The dose is 5 g."),
    ("The plan has 3 seats and costs 40 dollars.", "The plan has 40 seats."),
    ("The balance was -200 euros.", "The balance was 200 euros."),
    ("The balance was -$200.", "The balance was $200."),
    ("Growth was -3%.", "Growth was 3%."),
    ("The team has 4 designers.", "The team has 4 engineers."),
    ("The Arid 20 takes 9 litres.", "The Arid 20 takes 20 litres."),
    ("Give 5 ml/kg of the syrup.", "Give 5 ml/day of the syrup."),
]


@pytest.mark.parametrize(("passage", "answer"), NOT_PROVED)
@pytest.mark.parametrize("more", [[], OTHER_THINGS])
def test_a_value_of_something_else_proves_nothing(passage: str, answer: str, more: list[str]) -> None:
    """A value is verified and derived only of the thing that the sentence names, however many other values there are."""
    found = result([passage, *more], answer)
    assert [
        answer[each.start : each.end]
        for each in found.claims
        if each.verified and "three weeks" not in answer and answer[each.start - 5 : each.start] != "Arid "
    ] == []


@pytest.mark.parametrize(("passages", "answer"), UNTOLD)
def test_an_answer_without_values_that_can_be_compared_abstains(passages: str, answer: str) -> None:
    """Nothing to check is no finding."""
    found = result(passages, answer)
    assert (found.abstained, found.score) == (True, None)


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [("The fee is $105.", False), ("The fee is $105.01.", True), ("The fee is $95.", False), ("The fee is $94.99.", True)],
)  # fmt: skip
def test_item_30_the_bounds_are_inclusive_and_decimal(answer: str, flagged: bool) -> None:
    """Five percent of the evidence's value, neither a cent more nor less."""
    assert (result("The fee is $100.", answer).score or 0.0) >= 0.6 or not flagged
    assert bool(result("The fee is $100.", answer).spans) is flagged


def test_item_30_a_difference_within_the_tolerance_is_told() -> None:
    """In the explanation and as a count."""
    found = result("The fee is 40 dollars.", "The fee is 41 dollars.")
    assert found.score == 0.0
    assert found.details["within_tolerance"] == 1
    assert "within its tolerance" in found.explanation


def test_tolerances_are_options() -> None:
    """Zero means that sums are exact."""
    assert result("The fee is 40 dollars.", "The fee is 41 dollars.", currency_tolerance=0.0).spans
    assert not result("The fee is 40 dollars.", "The fee is 44 dollars.", currency_tolerance=10.0).spans


def test_values_of_the_question_are_no_claims() -> None:
    """What the user supposed is not the answer's."""
    assert result(NOI, "For $9M there is no figure.", query="Was the NOI $9M?").abstained


def test_a_strict_policy_flags_what_stands_nowhere() -> None:
    """The rule of the source to the letter."""
    assert result(NOI, "The bridge has 70 lanes.").abstained
    assert result(NOI, "The bridge has 70 lanes.", strict=True).score == 0.7
