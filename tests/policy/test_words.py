import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.core.language import LANGUAGES, language_of
from truthlens.policy.words import Examples, Terms, UserText


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
