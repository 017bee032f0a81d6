"""In which texts sentences can be told."""

from __future__ import annotations

import pytest

from truthlens.text.sentence_marks import has_known_sentences


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("", True),
        ("It opens at nine.", True),
        ("Die Gebühr beträgt zwölf Euro.", True),
        ("国内电汇费用为七十五美元。", True),
        ("料金は十二ユーロです。", True),
        ("요금은 십이 유로입니다.", True),
        ("Плата составляет двенадцать евро.", True),
        ("الرسوم هي اثنا عشر يورو.", True),
        ("فیس بارہ یورو ہے۔ معاہدہ ختم ہوتا ہے۔", False),
        ("शुल्क बारह यूरो है। अनुबंध समाप्त होता है।", False),
        ("ค่าธรรมเนียมคือสิบสองยูโร สัญญาสิ้นสุด", False),
        ("The word शुल्क means fee, as every reader of the leaflet knows.", True),
    ],
)
def test_sentences_are_known_by_script(text: str, known: bool) -> None:
    """By most of its letters, and where a mark says that it ends its sentences otherwise."""
    assert has_known_sentences(text) is known
