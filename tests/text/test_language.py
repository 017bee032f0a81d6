"""Tests of ``truthlens.text.language``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.language_table import SENTENCES
from truthlens.text.language import has_known_sentences, is_read, language_of, readable, unread
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


# Short ones without a word that tells; a German or Swedish neighbour tells of them.
MOST_UNPLACED = 16


def test_most_short_sentences_are_told_and_hardly_one_wrongly() -> None:
    """Of 200 sentences of 18 languages; unknown is no error, another language is one."""
    told = [(code, language_of(text)) for code, texts in SENTENCES.items() for text in texts]
    assert sum(code == found for code, found in told) >= 160
    assert sum(found not in {code, ""} for code, found in told) <= 2


def test_no_english_sentence_is_taken_for_another_language() -> None:
    """Names, titles, code, orders and short answers among them."""
    assert [text for text in SENTENCES["en"] if unread(text, ["en"])] == []


@pytest.mark.parametrize("code", sorted(SENTENCES.keys() - {"en"}))
def test_an_answer_in_another_language_is_not_read_by_an_english_model(code: str) -> None:
    """As a whole, and as a rule each of its sentences alone."""
    text = " ".join(SENTENCES[code])
    assert not is_read(text, unread(text, ["en"]))
    assert is_read(text, unread(text, [code]))
    assert is_read(text, unread(text, ["*"]))
    alone = [each for each in SENTENCES[code] if not unread(each, ["en"])]
    assert len(alone) * 2 <= len(SENTENCES[code])


def test_a_sentence_that_says_nothing_of_its_language_is_in_that_of_the_one_before() -> None:
    """Or in that of the question, where it is the first."""
    assert unread("Ja.", ["en"]) == ()
    assert unread("Ja.", ["en"], before="Wie viel kostet eine Überweisung im Inland?") == ((0, 3),)
    assert len(unread("Die Gebühr beträgt zwölf Euro. Ja.", ["en"])) == 2
    assert unread("The fee is twelve euros. Ja.", ["en"]) == ()


@pytest.mark.parametrize("code", ["de", "fr", "zh"])
def test_of_a_mixed_answer_only_what_is_foreign_is_left_out(code: str) -> None:
    """Each sentence by itself; what follows changes nothing."""
    english, foreign = "The fee is paid by the sender of the parcel.", max(SENTENCES[code], key=len)
    text = f"{english} {foreign} {english}"
    at = len(english) + 1
    assert unread(text, ["en"]) == ((at, at + len(foreign)),)
    assert unread(text[: at + len(foreign)], ["en"]) == ((at, at + len(foreign)),)


@given(st.lists(st.sampled_from([text for texts in SENTENCES.values() for text in texts]), max_size=6))
def test_what_follows_never_changes_what_was_read(texts: list[str]) -> None:
    """A growing answer does not flip."""
    whole = unread("\n".join(texts), ["en"])
    for count in range(len(texts)):
        start = "\n".join(texts[:count])
        assert unread(start, ["en"]) == tuple(each for each in whole if each[1] <= len(start))


@pytest.mark.parametrize(
    "text",
    [
        "| Mannschaft | Spiele | Tore |\n| --- | --- | --- |\n| Bayern München | 34 | 99 |",
        "title: Giza\nMayor: Faud\nHeadquarters: Ōita",
        '{"name": "Kraków", "stadt": "Berlin"}',
        "v1/comments/context/eaf17efe-2773",
        "U.S. Bank",
    ],
)
def test_tables_records_and_names_are_no_foreign_document(text: str) -> None:
    """Only whole sentences tell the language of a document."""
    assert readable(text, ["en"])


def test_a_german_document_is_not_readable() -> None:
    """However long."""
    text = " ".join(SENTENCES["de"])
    assert not readable(text, ["en"])
    assert not readable(text * 30, ["en"])
    assert readable(text, ["de"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["a", "a@", "a.", "“", "`", "(", "a'", "ä", "的", "!", "a=", '"', "</", "9a"]
)
def test_long_runs_cost_no_square(unit: str) -> None:
    """A client decides how long a word is: a megabyte of it is read in one go (the square would take hours)."""
    text = "The library opens at four in the morning. " + unit * (1_000_000 // len(unit))
    assert isinstance(unread(text, ["en"]), tuple)


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
