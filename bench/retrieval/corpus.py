"""Read and check ``data/retrieval``: pages to search in, and questions with a right and a wrong answer.

A page is a Markdown file ``pages/TOPIC/NAME.md``; the name ends in ``.zh.md`` or ``.de.md`` where it is
Chinese or German. ``questions.yaml`` is a list; ``data/retrieval/README.md`` says what its fields mean.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

FOLDER = Path(__file__).parents[2] / "data" / "retrieval"
FEWEST_PAGES = 200
WORDS = (80, 400)
"""The shortest and the longest page, in words; three Chinese characters count as two words."""
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_WORD = re.compile(r"[^\W\u4e00-\u9fff]+")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


class CorpusError(ValueError):
    """The corpus breaks its rules; the message has one mistake a line."""


class QuestionKind(StrEnum):
    """Whether the pages answer a question; ``near_miss``: no page does, and one is about nearly the same."""

    ANSWERABLE = "answerable"
    NEAR_MISS = "near_miss"
    ABSENT = "absent"


class WrongKind(StrEnum):
    """What the wrong answer gets wrong."""

    NUMBER = "number"
    ROLE = "role"
    CONDITION = "condition"
    NEGATION = "negation"
    PLACE = "place"
    TIME = "time"
    ATTRIBUTE = "attribute"
    QUANTIFIER = "quantifier"
    OTHER = "other"


class Language(StrEnum):
    """The language of a page or a question."""

    ENGLISH = "en"
    CHINESE = "zh"
    GERMAN = "de"


FEWEST_QUESTIONS: Mapping[QuestionKind, int] = MappingProxyType(
    {QuestionKind.ANSWERABLE: 66, QuestionKind.NEAR_MISS: 33, QuestionKind.ABSENT: 33}
)


@dataclass(frozen=True, slots=True)
class CorpusPage:
    """One page; ``path`` is relative to the folder ``pages``, with forward slashes."""

    path: str
    text: str

    @property
    def topic(self) -> str:
        """The folder that the page lies in."""
        return self.path.split("/")[0]

    @property
    def title(self) -> str:
        """The first line, without its mark."""
        return self.text.split("\n", 1)[0].removeprefix("# ")

    @property
    def language(self) -> Language:
        """The language, by the end of the file's name."""
        parts = self.path.rsplit(".", 2)
        return Language(parts[1]) if len(parts) == 3 else Language.ENGLISH

    @property
    def words(self) -> int:
        """The length in words; three Chinese characters count as two."""
        return len(_WORD.findall(self.text)) + 2 * len(_CHINESE.findall(self.text)) // 3


class CorpusQuestion(BaseModel):
    """One question. ``page`` has the pages that answer it, ``near`` those that seem to and do not."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1)
    language: Language
    question: str = Field(min_length=1)
    kind: QuestionKind
    page: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    right: str = Field(min_length=1)
    wrong: str = Field(min_length=1)
    wrong_kind: WrongKind


@dataclass(frozen=True)
class RetrievalCorpus:
    """All pages, in the order of their paths, and all questions, in the order of the file."""

    pages: tuple[CorpusPage, ...]
    questions: tuple[CorpusQuestion, ...]

    @cached_property
    def by_path(self) -> Mapping[str, CorpusPage]:
        """The pages by their paths."""
        return MappingProxyType({page.path: page for page in self.pages})


def read_corpus(folder: Path = FOLDER) -> RetrievalCorpus:
    """Read the corpus.

    Raises:
        CorpusError: a file is not as it should be, or the corpus breaks one of its rules.
    """
    root = folder / "pages"
    pages = tuple(
        CorpusPage(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(root.glob("*/*.md"))
    )
    try:
        loaded = yaml.safe_load((folder / "questions.yaml").read_text(encoding="utf-8"))
        questions = TypeAdapter(tuple[CorpusQuestion, ...]).validate_python(loaded)
    except (yaml.YAMLError, ValidationError) as error:
        raise CorpusError(f"questions.yaml: {error}") from error
    corpus = RetrievalCorpus(pages, questions)
    if found := [*_of_pages(corpus), *_of_counts(corpus), *_of_questions(corpus)]:
        raise CorpusError("\n".join(found))
    return corpus


def _of_pages(corpus: RetrievalCorpus) -> Iterator[str]:
    shortest, longest = WORDS
    for page in corpus.pages:
        if not page.text.startswith("# "):
            yield f"{page.path}: the first line is no title"
        if not shortest <= page.words <= longest:
            yield f"{page.path}: {page.words} words, not {shortest} to {longest}"
    for title in _doubled(page.title for page in corpus.pages):
        yield f"two pages have the title {title!r}"


def _of_counts(corpus: RetrievalCorpus) -> Iterator[str]:
    if len(corpus.pages) < FEWEST_PAGES:
        yield f"{len(corpus.pages)} pages, fewer than {FEWEST_PAGES}"
    counts = Counter(each.kind for each in corpus.questions)
    for kind, fewest in FEWEST_QUESTIONS.items():
        if counts[kind] < fewest:
            yield f"{counts[kind]} questions of kind {kind.value}, fewer than {fewest}"
    for ident in _doubled(each.id for each in corpus.questions):
        yield f"two questions have the id {ident}"
    for text in _doubled(each.question for each in corpus.questions):
        yield f"asked twice: {text}"


def _of_questions(corpus: RetrievalCorpus) -> Iterator[str]:
    for each in corpus.questions:
        for mistake in (*_of_paths(each, corpus), *_of_answers(each, corpus)):
            yield f"{each.id}: {mistake}"


def _of_paths(each: CorpusQuestion, corpus: RetrievalCorpus) -> Iterator[str]:
    expected = (each.kind is QuestionKind.ANSWERABLE, each.kind is QuestionKind.NEAR_MISS)
    if (bool(each.page), bool(each.near)) != expected:
        yield "`page` belongs to answerable questions and `near` to near misses, and to no others"
    for path in each.page + each.near:
        page = corpus.by_path.get(path)
        if page is None:
            yield f"there is no page {path}"
        elif page.language is not each.language:
            yield f"{path} is in another language"


def _of_answers(each: CorpusQuestion, corpus: RetrievalCorpus) -> Iterator[str]:
    """What is wrong with the answers: where there are pages, one of the two says only numbers of those."""
    if each.right == each.wrong:
        yield "the two answers are the same"
    pages = [corpus.by_path[path].text for path in each.page + each.near if path in corpus.by_path]
    known = _numbers(each.question, *pages)
    taken = each.wrong if each.kind is QuestionKind.NEAR_MISS else each.right
    if strange := _numbers(taken) - known:
        yield f"no page has the numbers {sorted(strange)}"


def _numbers(*texts: str) -> set[str]:
    return {number for text in texts for number in _NUMBER.findall(text)}


def _doubled(values: Iterable[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]
