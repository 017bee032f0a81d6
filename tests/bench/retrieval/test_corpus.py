"""The retrieval corpus keeps its rules, and the loader notices where it does not."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from bench.retrieval.corpus import FOLDER, CorpusError, Language, QuestionKind, read_corpus

ANSWERABLE = "oncall-second-page"
PAGE = "wiki/oncall-rota.md"


def test_the_corpus_keeps_its_rules() -> None:
    """Reading checks everything; half of the questions are answerable, in three languages, on many topics."""
    corpus = read_corpus()
    kinds = Counter(each.kind for each in corpus.questions)
    total = len(corpus.questions)
    assert 0.45 <= kinds[QuestionKind.ANSWERABLE] / total <= 0.55
    assert 0.2 <= kinds[QuestionKind.NEAR_MISS] / total <= 0.3
    assert (
        {page.language for page in corpus.pages}
        == {each.language for each in corpus.questions}
        == set(Language)
    )
    assert len({page.topic for page in corpus.pages}) >= 12
    assert len(list((FOLDER / "pages").rglob("*"))) == len(corpus.pages) + len(
        {page.topic for page in corpus.pages}
    )


def test_the_readme_gives_the_counts() -> None:
    """Each row of its table of topics, and each number of questions, is the corpus's."""
    corpus = read_corpus()
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \|", readme, re.MULTILINE)
    topics = {topic: [int(count) for count in counts] for topic, *counts in rows}
    found = Counter((page.topic, page.language) for page in corpus.pages)
    order = (Language.ENGLISH, Language.CHINESE, Language.GERMAN)
    assert topics == {
        page.topic: [found[page.topic, language] for language in order] for page in corpus.pages
    }
    kinds = Counter(each.kind.value for each in corpus.questions)
    assert {
        kind: int(count) for kind, count in re.findall(r"^\| `(\w+)` \| (\d+) \| [A-Z]", readme, re.MULTILINE)
    } == kinds


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the corpus, to be spoilt."""
    return Path(shutil.copytree(FOLDER, tmp_path / "retrieval"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "12 minutes.\n  wrong:",
            "13 minutes.\n  wrong:",
            rf"{ANSWERABLE}: no page has the numbers \['13'\]",
        ),
        (
            "20 minutes.\n  wrong_kind",
            "12 minutes.\n  wrong_kind",
            f"{ANSWERABLE}: the two answers are the same",
        ),
        (f"- {PAGE}", "- wiki/nowhere.md", f"{ANSWERABLE}: there is no page wiki/nowhere.md"),
        (
            f"- {PAGE}",
            "- hr/yunfan-leave.zh.md",
            f"{ANSWERABLE}: hr/yunfan-leave.zh.md is in another language",
        ),
        ("kind: answerable\n", "kind: absent\n", f"{ANSWERABLE}: `page` belongs to answerable"),
        ("kind: answerable\n", "kind: easy\n", "Input should be 'answerable', 'near_miss' or 'absent'"),
        ("- id: rollback-approval", f"- id: {ANSWERABLE}", f"two questions have the id {ANSWERABLE}"),
        ("  right:", "  answer: yes\n  right:", "Extra inputs are not permitted"),
        ("- id:", "id", "Input should be a valid tuple|while|mapping"),
    ],
)
def test_a_wrong_question_is_refused(copy: Path, old: str, new: str, message: str) -> None:
    """The first place of the file is spoilt, and the error names what is wrong there."""
    file = copy / "questions.yaml"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(CorpusError, match=message):
        read_corpus(copy)


def test_wrong_pages_are_refused(copy: Path) -> None:
    """All mistakes are told at once: no title, too short, a title twice, too few pages and questions."""
    pages = copy / "pages"
    (pages / PAGE).write_text("On call is 12 minutes.\n", encoding="utf-8")
    shutil.copy(pages / "api" / "errors.md", pages / "api" / "errors-again.md")
    shutil.rmtree(pages / "recipes")
    questions = copy / "questions.yaml"
    text = questions.read_text(encoding="utf-8")
    questions.write_text(text.partition("\n- id: absent-")[0], encoding="utf-8")
    with pytest.raises(CorpusError) as told:
        read_corpus(copy)
    for message in (
        f"{PAGE}: the first line is no title",
        f"{PAGE}: 5 words, not 80 to 400",
        "two pages have the title 'Errors'",
        "pages, fewer than 200",
        "0 questions of kind absent, fewer than 33",
        "there is no page recipes/",
    ):
        assert message in str(told.value)
