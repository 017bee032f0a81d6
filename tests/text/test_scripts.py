"""Tests of ``truthlens.text.scripts``."""

from __future__ import annotations

import re

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.scripts import CJK, CJK_MARKS, HAN, HANGUL, KANA, SCRIPTS, UNSPACED


@pytest.mark.parametrize(
    ("inside", "held", "free"),
    [
        (HAN, "中々〇㐀豈𠀀", "aあア한、"),
        (KANA, "あアーｱﾞ・", "中a한、"),
        (HANGUL, "한ᄀㄱ", "中あa"),
        (CJK, "中あア", "한ก"),
        (UNSPACED, "中あกລကក", "한aд"),
        (CJK_MARKS, "、。「！", "a中."),
        (SCRIPTS["latin"], "aÀßĀạ", "α1д"),
    ],
)
def test_a_class_holds_its_scripts_and_no_other(inside: str, held: str, free: str) -> None:
    """Rare blocks are among them, which ranges by hand forget."""
    assert re.fullmatch(f"[{inside}]+", held)
    assert not re.search(f"[{inside}]", free)


@given(st.characters(), st.sampled_from(sorted(set(SCRIPTS) - {"kana"})))
def test_a_class_agrees_with_the_unicode_property(character: str, name: str) -> None:
    """For any character whatever, surrogates and unassigned ones too."""
    expected = bool(regex.match(rf"\p{{{name}}}", character))
    assert bool(re.match(f"[{SCRIPTS[name]}]", character)) == expected
