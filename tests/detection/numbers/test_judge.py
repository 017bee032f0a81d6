"""Values of answers against passages: what is verified, contradicted, derived, and what nothing can be told of."""

from __future__ import annotations

import pytest

from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.numbers.detector import NumberDetector
from truthlens.detection.numbers.options import Options

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


SUPPORTED = [
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
    (WIRES, "Put it in by three in the afternoon."),
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
WRONG = [
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
