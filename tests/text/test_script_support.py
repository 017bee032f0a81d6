"""Tests of ``truthlens.text.script_support``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.script_support import readable
from truthlens.text.sentences import is_chinese


@pytest.mark.parametrize(
    ("text", "languages", "expected"),
    [
        ("The fee is 40 euros.", ["en"], True),
        ("费用为四十欧元。", ["en"], False),
        ("费用为四十欧元。", ["en", "zh"], True),
        ("费用为四十欧元。", ["zh-CN"], True),
        ("The fee is 40 euros.", ["zh"], False),
        ("The tower (东京塔) stands in Tokyo, in the ward of Minato.", ["en"], True),
        ("Плата составляет 40 евро.", ["en"], False),
        ("Плата составляет 40 евро.", ["ru"], True),
        ("الرسوم ٤٠ يورو", ["en"], False),
        ("料金は四十ユーロです。", ["zh"], False),
        ("料金は四十ユーロです。", ["ja"], True),
        ("요금은 40유로입니다.", ["ko"], True),
        ("ค่าธรรมเนียม 40 ยูโร", ["en"], False),
        ("ამინდი კარგია", ["en"], False),
        ("Größe und Gebühr", ["de"], True),
        ("42 %, 17:30", ["en"], True),
        ("", ["en"], True),
        ("Плата составляет 40 евро.", ["*"], True),
    ],
)
def test_a_model_reads_the_scripts_of_its_languages(text: str, languages: list[str], expected: bool) -> None:
    """A text counts as readable where at least half of it is in a script of the model's languages."""
    assert readable(text, languages) is expected


@given(st.text(alphabet="abc 中文12答案,xyz", max_size=40))
def test_chinese_in_english_follows_the_common_rule(text: str) -> None:
    """An English model does not read what the product calls Chinese, but for a tie of the two scripts."""
    if not is_chinese(text):
        assert readable(text, ["en"])
    if not readable(text, ["en"]):
        assert is_chinese(text)
