"""Values in languages that the encoder does not read: wrong ones flag the answer at the shipped threshold, right ones do not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.engines import engine_of
from tests.fakes.tiny_encoder import write_encoder
from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.exchange import plain_exchange
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.verdict import Verdict
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.detectors.numbers.detector import NumberDetector
from truthlens.detection.detectors.numbers.options import Options
from truthlens.detection.engine import Engine

PLAN = Plan("p", timeout_s=30.0, detectors=(DetectorSpec("encoder"), DetectorSpec("numbers")))
FORMS = {
    "zh": [
        ("图书馆有{}个座位。会员费每年{}欧元。", "图书馆有{}个座位，会员费每年{}欧元。"),
        ("图书馆于{}年5月12日开放。大厅长{}米。", "图书馆于{}年5月12日开放，大厅长{}米。"),
    ],
    "ja": [
        ("図書館には{}席あります。会費は年間{}ユーロです。", "図書館には{}席あり、会費は年間{}ユーロです。"),
        ("図書館は{}年5月12日に開館しました。ホールの長さは{}メートルです。", "図書館は{}年5月12日に開館し、ホールの長さは{}メートルです。"),
    ],
    "de": [
        ("Die Bibliothek hat {} Plätze. Die Mitgliedschaft kostet {} Euro im Jahr.",
         "Die Bibliothek hat {} Plätze, und die Mitgliedschaft kostet {} Euro im Jahr."),
        ("Die Bibliothek wurde am 12. Mai {} eröffnet. Der Saal ist {} Meter lang.",
         "Die Bibliothek wurde am 12. Mai {} eröffnet, und der Saal ist {} Meter lang."),
    ],
    "fr": [
        ("La bibliothèque a {} places. L'adhésion coûte {} euros par an.", "La bibliothèque a {} places et l'adhésion coûte {} euros par an."),
        ("La bibliothèque a ouvert le 12 mai {}. La salle mesure {} mètres de long.",
         "La bibliothèque a ouvert le 12 mai {} et la salle mesure {} mètres de long."),
    ],
    "es": [
        ("La biblioteca tiene {} plazas. La cuota cuesta {} euros al año.", "La biblioteca tiene {} plazas y la cuota cuesta {} euros al año."),
        ("La biblioteca abrió el 12 de mayo de {}. La sala mide {} metros de largo.",
         "La biblioteca abrió el 12 de mayo de {} y la sala mide {} metros de largo."),
    ],
    "ru": [
        ("В библиотеке {} мест. Членство стоит {} евро в год.", "В библиотеке {} мест, а членство стоит {} евро в год."),
        ("Библиотека открылась 12 мая {} года. Длина зала {} метров.", "Библиотека открылась 12 мая {} года, длина зала {} метров."),
    ],
    "it": [
        ("La biblioteca ha {} posti. L'iscrizione costa {} euro all'anno.", "La biblioteca ha {} posti e l'iscrizione costa {} euro all'anno."),
        ("La biblioteca ha aperto il 12 maggio {}. La sala è lunga {} metri.",
         "La biblioteca ha aperto il 12 maggio {} e la sala è lunga {} metri."),
    ],
}  # fmt: skip
GOOD, BAD = (("120", "45"), ("2014", "35")), (("150", "65"), ("2016", "55"))
CASES = [
    pytest.param(parted, joined, good, bad, id=f"{language}-{place}")
    for language, pairs in FORMS.items()
    for place, ((parted, joined), good, bad) in enumerate(zip(pairs, GOOD, BAD, strict=True))
]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    """An encoder that reads English, and ``numbers`` with its defaults."""
    encoder = load_encoder(write_encoder(tmp_path / "tiny"))
    made = engine_of({None: encoder}, detectors={"numbers": NumberDetector(Options())})
    yield made
    await made.aclose()


async def verdict_on(engine: Engine, evidence: str, answer: str) -> Verdict:
    exchange, given = plain_exchange("", [evidence], answer)
    (verdict,) = await engine.detect(PLAN, exchange, [given])
    assert verdict.reason is Reason.LANGUAGE
    # Values alone tell nothing of the words around them.
    assert verdict.status is (Status.UNCHECKED if verdict.score is None else Status.PARTIAL)
    return verdict


@pytest.mark.parametrize(("parted", "joined", "good", "bad"), CASES)
async def test_two_wrong_values_flag_an_answer(
    engine: Engine, parted: str, joined: str, good: tuple[str, str], bad: tuple[str, str]
) -> None:
    """In sentences of their own and in one; two in one sentence do not hide each other."""
    for form in (parted, joined):
        assert (await verdict_on(engine, form.format(*good), form.format(*bad))).flagged
        assert not (await verdict_on(engine, form.format(*good), form.format(*good))).flagged


@pytest.mark.parametrize(("parted", "joined", "good", "bad"), CASES)
async def test_one_wrong_value_flags_an_answer(
    engine: Engine, parted: str, joined: str, good: tuple[str, str], bad: tuple[str, str]
) -> None:
    """Either of the two, beside a right one."""
    for form in (parted, joined):
        for values in ((bad[0], good[1]), (good[0], bad[1])):
            assert (await verdict_on(engine, form.format(*good), form.format(*values))).flagged


@pytest.mark.parametrize(("parted", "joined", "good", "bad"), CASES)
async def test_an_answer_may_join_what_the_evidence_says_apart(
    engine: Engine, parted: str, joined: str, good: tuple[str, str], bad: tuple[str, str]
) -> None:
    """The values that two wrong ones stand in place of are of two sentences."""
    wrong = await verdict_on(engine, parted.format(*good), joined.format(*bad))
    right = await verdict_on(engine, parted.format(*good), joined.format(*good))
    assert (wrong.flagged, right.flagged) == (True, False)


async def test_a_day_of_a_german_date_is_part_of_it(engine: Engine) -> None:
    """The full stop behind it ends no sentence: another day is another date."""
    evidence = "Die Bibliothek wurde am 12. Mai 2014 eröffnet."
    verdict = await verdict_on(engine, evidence, evidence.replace("12", "21"))
    assert verdict.flagged
    assert evidence[verdict.spans[0].start : verdict.spans[0].end] == "12. Mai 2014"
    assert not (await verdict_on(engine, evidence, evidence)).flagged
