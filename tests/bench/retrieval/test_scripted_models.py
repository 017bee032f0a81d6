"""The scripted models of mode agentic's benchmark: what they say follows from the oracle, their strength and the seed."""

from __future__ import annotations

from typing import Any

import pytest

from bench.retrieval.corpus import CorpusQuestion, QuestionKind, read_corpus
from bench.retrieval.scripted_models import ScriptedModels, Truth, truth_of, write_oracle
from tests.fakes.agentic_parts import Corpus, run_with
from tests.fakes.standard_tools import ScriptedAsk
from truthlens.core.records.agentic_settings import AgenticSettings
from truthlens.core.records.calls import Completion, ModelRequest
from truthlens.core.records.retrieval import FoundPassage
from truthlens.mitigation.agentic.interfaces import AgenticTask
from truthlens.mitigation.agentic.synthesis import NO_INFORMATION
from truthlens.prompts import delimiters, render
from truthlens.prompts.model_requests import stand_alone

CORPUS = read_corpus()


def first_of(kind: QuestionKind, language: str = "en") -> CorpusQuestion:
    return next(each for each in CORPUS.questions if (each.kind, each.language) == (kind, language))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> ScriptedModels:
    path = tmp_path_factory.mktemp("oracle") / "oracle.json"
    write_oracle(path, CORPUS.questions)
    return ScriptedModels(path, seed=1)


class Asked(ScriptedAsk):
    """Asks the scripted models, and keeps what they said."""

    def __init__(self, models: ScriptedModels) -> None:
        super().__init__()
        self.models = models
        self.said: list[str] = []

    async def __call__(self, request: ModelRequest) -> Completion:
        reply = self.models.reply({**request.body, "model": request.model})
        self.said.append(reply.text)
        return Completion(reply.text, request.model, "stop")


async def ran(models: ScriptedModels, strength: str, question: CorpusQuestion) -> tuple[Any, list[str]]:
    """The run of one strength, with the pages of the question and one other as passages."""
    pages = [*question.page, *question.near, CORPUS.pages[0].path]
    passages = (
        FoundPassage(CORPUS.by_path[path].text, f"{path}#1", parent_id=path) for path in dict.fromkeys(pages)
    )
    ask = Asked(models)
    task, settings = AgenticTask(question.question, strength), AgenticSettings(model_id=strength)
    return await run_with(ask, Corpus(*passages), task=task, settings=settings), ask.said


@pytest.mark.parametrize("kind", QuestionKind)
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_strong_model_answers_what_the_pages_hold_and_declines_the_rest(
    models: ScriptedModels, kind: QuestionKind, language: str
) -> None:
    """Its answer cites the page, and it accepts it."""
    question = first_of(kind, language)
    run, _ = await ran(models, "strong", question)
    assert run.accepted
    assert truth_of(run.answer, question) is Truth.RIGHT
    cited = [each.parent_id for each in run.passages if each.cited]
    assert cited == list(question.page[:1])


async def test_replies_follow_from_the_seed(models: ScriptedModels) -> None:
    """The same again; another seed makes other mistakes."""
    questions = [each for each in CORPUS.questions if each.kind is QuestionKind.ANSWERABLE][:12]
    other = ScriptedModels(models.oracle, seed=2)

    async def said(by: ScriptedModels) -> list[list[str]]:
        return [(await ran(by, "middling", question))[1] for question in questions]

    assert await said(models) == await said(models)
    assert await said(models) != await said(other)


async def test_a_weak_model_writes_wrong_answers_and_accepts_them(models: ScriptedModels) -> None:
    """Mostly; it is what the product has to hold back."""
    questions = [each for each in CORPUS.questions if each.kind is QuestionKind.ANSWERABLE][:20]
    runs = [(await ran(models, "weak", question))[0] for question in questions]
    truths = [truth_of(run.answer, question) for run, question in zip(runs, questions, strict=True)]
    assert truths.count(Truth.WRONG) > len(questions) / 2
    assert any(run.accepted for run, truth in zip(runs, truths, strict=True) if truth is Truth.WRONG)


def test_a_judge_errs_about_each_answer_by_itself(models: ScriptedModels) -> None:
    """Whoever takes a wrong answer for a right one does not take the right one for a wrong one by that."""
    errors: list[set[str]] = []
    for question in CORPUS.questions[:80]:
        judged = {}
        for name in ("right", "wrong"):
            prompt = render.render(
                "judge_stage1",
                chinese=False,
                part="user",
                evidence="",
                question=delimiters.tag("question", question.question),
                answer=delimiters.tag("answer", getattr(question, name)),
            )
            body = stand_alone(
                system=render.render("judge_stage1", chinese=False, part="system"), user=prompt
            )
            judged[name] = models.reply({**body, "model": "middling"}).text.endswith("good")
        errors.append({name for name, good in judged.items() if good is not (name == "right")})
    assert {"right"} in errors
    assert {"wrong"} in errors
    share = sum(map(len, errors)) / (2 * len(errors))
    assert 0.15 < share < 0.35


def test_the_truth_of_every_answer_of_the_corpus_is_told() -> None:
    """Also behind a notice, and with citations in it; an answer that declines is right where no page answers."""
    for question in CORPUS.questions:
        for shown in (f"Note: please verify.\n\n{question.right}", f"{question.right} [wiki/a.md#1]"):
            assert truth_of(shown, question) is Truth.RIGHT, question.id
        assert truth_of(question.wrong, question) is Truth.WRONG, question.id
        answerable = question.kind is QuestionKind.ANSWERABLE
        assert truth_of(f"{NO_INFORMATION}.", question) is (Truth.DECLINED if answerable else Truth.RIGHT)


def test_the_clients_own_request_gets_the_answer_that_it_names(models: ScriptedModels) -> None:
    question = first_of(QuestionKind.ANSWERABLE)
    body = {"model": "weak", "messages": [{"role": "user", "content": question.question}]}
    for first in ("right", "wrong"):
        assert models.reply(body, first=first, question=question.id).text == getattr(question, first)
