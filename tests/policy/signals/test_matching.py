import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.policy.signals.matching import Examples, Terms, UserText
from truthlens.text.language import LANGUAGES, language_of


@pytest.mark.parametrize(
    ("term", "text", "found"),
    [
        ("dose", "What DOSE do I take?", True),
        ("dose", "an overdose", False),
        ("dose", "a doser", False),
        ("dose", "dose-dependent", True),
        ("dos*", "all dosages", True),
        ("dos*", "kudos", False),
        ("blood pressure", "my blood\n  pressure is high", True),
        ("blood pressure", "bloodpressure", False),
        ("剂量", "这种药的剂量是多少", True),
        ("dosage", "请问dosage是多少", True),
        ("etf", "ＥＴＦ 是什么", True),
        ("nda", "agenda", False),
        ("c++", "I like C++!", True),
        ("cat", "concatenate a cat", True),
    ],
)
def test_terms(term: str, text: str, found: bool) -> None:
    """A term stands for whole words in any case and width; among CJK characters it stands anywhere."""
    assert Terms([term]).found_in(UserText(text)) is found


@pytest.mark.parametrize(
    "text",
    [
        "_butcher_",
        "**butcher**",
        "bu**tch**er",
        "bu*t*cher",
        "~~butcher~~",
        "`butcher`",
        r"but\cher",
        "[but](https://example.org/a)cher",
        "but<b>c</b>her",
        "but<!-- a note -->cher",
        "<b>butcher</b>",
        "&#98;ut&#x63;her",
        "but&shy;cher",
        "but&zwnj;cher",
        f"but&#{'9' * 5000};cher",
        f"&#x{'f' * 5000};butcher",
        "but\u200bcher",
        "but\u200ccher",
        "but\u2060cher",
        "\ufeffbut\ufeffcher",
        "but\u00adcher",
        "but\u034fcher",
        "but\ufe0fcher",
        "but\U000e0020cher",
        "but\u202echer",
        "but\x08cher",
        "but-\ncher",
        "b\u0336u\u0336t\u0336c\u0336h\u0336e\u0336r\u0336",
        "b\u0301u\u0308tcher",
        "bütchér",
        "ḃutcher",
        "ƀutcher",
        "butсher",
        "bυtcһеr",
        "Ьυtсһеr",
        "ＢＵＴＣＨＥＲ",
        "𝐛𝐮𝐭𝐜𝐡𝐞𝐫",
        "𝖻𝗎𝗍𝖼𝗁𝖾𝗋",
        "ⓑⓤⓣⓒⓗⓔⓡ",
        "BUTCΗER",
        "ʙᴜᴛᴄʜᴇʀ",
        "🅱🆄🆃🅲🅷🅴🆁",
        "\U0001f1e7\U0001f1fa\U0001f1f9\U0001f1e8\U0001f1ed\U0001f1ea\U0001f1f7",
        "\u202erehctub\u202c",
        "but\u202erehc\u202c",
        "\u202e\u202dbutcher\u202c\u202c",
        "bu\u2066tc\u2069her",
        "bu\u3164tch\U000e0101er",
        "b u t c h e r",
        "b.u.t.c.h.e.r",
        "b-u-t-c-h-e-r",
        "_b\u200bu<i>t</i>сh&#101;r_",
    ],
)
def test_terms_are_found_as_a_reader_sees_them(text: str) -> None:
    """Markup, invisible characters, marks and look-alikes do not hide a word, alone or in a sentence."""
    assert Terms(["butcher"]).found_in(UserText(text))
    assert Terms(["butch*"]).found_in(UserText(f"Where is the {text} in town?"))


def test_whole_words_of_look_alikes() -> None:
    """A word of which no letter is Latin is read as it looks, too."""
    assert Terms(["dose"]).found_in(UserText("Is the ԁоѕе safe?"))


@pytest.mark.parametrize(
    "text",
    [
        "dia\ngnosis",
        "my\ndia\ngno\nsis\nplease",
        "dia\r\ngnosis",
        "dia-\ngnosis",
        "dia-\r\n  gnosis",
        "dia\u2011\ngnosis",
        "dia\u00ad\ngnosis",
        "dia\u200b\ngnosis",
        "dia\u2028gnosis",
        "dia\n\ngnosis",
        "⒟⒤⒜⒢⒩⒪⒮⒤⒮",
        "🄓⒤⒜ⓖⓝⓞⓢⓘⓢ",
    ],
)
def test_a_word_over_two_lines_or_in_brackets_is_found(text: str) -> None:
    """A line end, with or without a hyphen, parts no word for who looks for it, and letters in brackets are letters."""
    assert Terms(["diagnos*"]).found_in(UserText(f"Is the {text} right?"))
    assert Terms(["diagnosis"]).found_in(UserText(f"Is the {text} right?"))


def test_a_text_of_one_long_word_is_read_once() -> None:
    """A word that no line end follows is not looked at again from each of its letters, which would take hours."""
    assert not Terms(["insulin"]).found_in(UserText("a" * 1_000_000))


def test_a_long_list_of_words_is_put_together_in_linear_time() -> None:
    """Each line end costs a few words and no more."""
    assert not Terms(["diagnos*"]).found_in(UserText("word\n" * 200_000))
    assert Terms(["诊断"]).found_in(UserText("诊\n断"))


@pytest.mark.parametrize(
    ("term", "text", "found"),
    [
        ("café", "a cafe\u0301", True),
        ("café", "a café", True),
        ("café", "a c\u0336afé", True),
        ("café", "a cafe", False),
        ("cafe", "a café", True),
        ("butcher", "but cher", False),
        ("butcher", "a butchery", False),
        ("butcher", "but<br>cher", True),
        ("dose", "the headache<br>dose", True),
        ("dose", "my_dose_id", False),
        ("dose", "2*dose", True),
        ("dose", "a < b dose > c", True),
        ("nda", "a n d a b", False),
        ("bot", "вот это", False),
        ("cat", "кат", False),
        ("c++", "in C++", True),
        ("a*b", "a*b", True),
        ("剂量", "剂\u200b量", True),
        ("剂量", "**剂**量", True),
        ("がく", "か\u3099く", True),
    ],
)
def test_reading_keeps_the_borders_of_words(term: str, text: str, found: bool) -> None:
    """What is joined is what a reader joins, and accents that a term has are asked for."""
    assert Terms([term]).found_in(UserText(text)) is found


def test_words_are_found_across_the_pieces_of_a_long_text() -> None:
    """Long texts are worked on in pieces, which end between words."""
    for word in ("butcher", "but\u200bcher", "a butcher"):
        text = UserText(f"{'word ' * 13_106}{word} {'word ' * 40_000}")
        assert Terms([word.replace("\u200b", "")]).found_in(text)
    assert Terms(["butcher"]).found_in(UserText("é" * 70_000 + " but\u00adcher " + "é" * 200_000))


def test_examples_are_compared_as_a_reader_sees_them() -> None:
    """A question in look-alikes is as near as the plain one."""
    examples = Examples(["What dose of ibuprofen is safe?"], min_similarity=0.5)
    assert examples.near(
        UserText("Hello.\nWhat d_o_se of ib\u00aduprofеn is _safe_?".replace("d_o_se", "do<b>se</b>"))
    )


def test_other_messages_have_languages_of_their_own() -> None:
    """Beginning and end of every message count, so that no padding hides the language of a question."""
    text = UserText("Hello there, what is this?", more=("Die Frage ist: was kostet das und wie geht es?",))
    assert text.languages == {"en", "de"}
    padded = (
        "What is the best way to do this? " * 200
        + "Das ist die Frage, und was kostet das, und wie ist es? " * 80
    )
    assert UserText("", more=(padded,)).languages == {"en", "de"}


@settings(deadline=None)
@given(st.text(), st.text(alphabet="abc字 _-*", max_size=4))
def test_terms_never_fail(text: str, term: str) -> None:
    """Any text can be searched for any term, and a text of the term alone is found."""
    Terms([term]).found_in(UserText(text))
    if term.strip(" *"):
        assert Terms([term]).found_in(UserText(term.rstrip("*")))


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("What dose of ibuprofen is safe?", True),
        ("Hello. I am new here. Which doses of ibuprofen are safe for me?", True),
        ("What is the capital of France?", False),
        ("Is it safe to swim here in winter with children?", False),
        ("布洛芬的安全剂量是多少", True),
        ("今天天气怎么样", False),
        ("", False),
    ],
)
def test_examples(text: str, near: bool) -> None:
    """A sentence is near an example when they share most of their content words."""
    examples = Examples(["What dose of ibuprofen is safe?", "布洛芬的安全剂量是多少？"], min_similarity=0.5)
    assert examples.near(UserText(text)) is near


def test_example_threshold() -> None:
    """A higher similarity asks for more of the same words."""
    text = UserText("Is ibuprofen safe?")
    assert Examples(["What dose of ibuprofen is safe?"], min_similarity=0.5).near(text)
    assert not Examples(["What dose of ibuprofen is safe?"], min_similarity=0.95).near(text)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What is the best way to do this?", "en"),
        ("Wie ist das Wetter, und was kann ich tun?", "de"),
        ("Quel est le prix du billet pour les enfants ?", "fr"),
        ("¿Cuál es la dosis para los niños?", "es"),
        ("药物剂量是多少？", "zh"),
        ("これは何ですか", "ja"),
        ("이것은 무엇입니까", "ko"),
        ("请解释 transformer 的 attention 机制是什么", "zh"),
        ("xyzzy", ""),
        ("", ""),
    ],
)
def test_language(text: str, language: str) -> None:
    """The language is told by script or function words, and left open where neither says it."""
    assert language_of(text) == language


@settings(deadline=None)
@given(st.text())
def test_language_is_known_or_open(text: str) -> None:
    """Whatever the text, the code is one that a policy may name, or empty."""
    assert language_of(text) in {*LANGUAGES, ""}


def test_given_language_wins() -> None:
    """A language that the caller knows is not told anew from the text."""
    assert UserText("What is this?", "zh").languages == {"zh"}
