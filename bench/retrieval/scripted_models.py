"""Models for mode agentic that follow a script: they know the truth from a file, and err as often as they are told to.

The file (``write_oracle``) is the benchmark's alone; the product never sees it. A model answers every prompt of the
loop: it decides, writes and judges. What it does is drawn by seed, strength, question and step, so that a second run
gives the same replies.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter

from bench.retrieval.corpus import CorpusQuestion, QuestionKind
from truthlens.mitigation.agentic.synthesis import no_information
from truthlens.prompts import delimiters, render
from truthlens.text.claims.non_claims import is_abstention
from truthlens.text.sentences import sentences
from truthlens.text.word_forms import STOP_WORDS

_QUESTIONS = TypeAdapter(tuple[CorpusQuestion, ...])
_SOURCE = re.compile(
    r'<truthlens:source document_id="([^"]*)"[^>\n]*>\n(.*?)\n</truthlens:source>', re.DOTALL
)
_CITATION = re.compile(r"\s*\[[^\]\s]+\]")
_ENDING = re.compile(r"[.!?。！？]*$")
_WORD = re.compile(r"[^\W_]+")
_CASE = re.compile(r"case ([\w-]+): (\w+)")


class Truth(StrEnum):
    """What an answer is, by the oracle; ``declined`` claims nothing, where the pages hold the answer."""

    RIGHT = "right"
    DECLINED = "declined"
    WRONG = "wrong"


class Prompt(StrEnum):
    """What a request asks for; the names are those of the templates, and the first is the client's own."""

    ANSWER = "answer"
    DECISION = "decision"
    REFINEMENT = "refinement"
    SYNTHESIS = "synthesis"
    FALLBACK = "fallback_answer"
    CRITIQUE = "judge_stage1"
    FIELDS = "judge_stage2"


@dataclass(frozen=True, slots=True)
class Strength:
    """How often a model errs, as shares from 0 to 1.

    ``writes_wrong``: of its answers are the wrong one of the data, which cites another page than the right one.
    ``invents``: of these have other figures than the right answer instead. ``miscites``: of its answers cite any source, or
    one that there is not. ``misjudges``: of its judgements are the contrary of the truth. ``unusable``: of its replies that
    must be JSON are none. ``accepts_all``: it finds every answer good.
    """

    name: str
    writes_wrong: float = 0.0
    invents: float = 0.0
    miscites: float = 0.0
    misjudges: float = 0.0
    unusable: float = 0.0
    accepts_all: bool = False


STRENGTHS = (
    Strength("strong"),
    Strength("middling", writes_wrong=0.3, misjudges=0.25),
    Strength("weak", writes_wrong=0.8, invents=0.5, miscites=0.5, unusable=0.15, accepts_all=True),
)


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """A reply, and the question that it belongs to."""

    text: str
    question: str


def write_oracle(path: Path, questions: Sequence[CorpusQuestion]) -> None:
    """Write what the models know."""
    path.write_bytes(_QUESTIONS.dump_json(tuple(questions)))


def truth_of(text: str, question: CorpusQuestion) -> Truth:
    """Return what an answer to ``question`` is; a notice before or behind it and its citations do not count."""
    given = _bare(text)
    if _bare(question.right) in given:
        return Truth.RIGHT
    declines = (no_information(chinese=chinese) for chinese in (False, True))
    if is_abstention(_CITATION.sub("", text)) or any(_bare(each) in given for each in declines):
        return Truth.DECLINED if question.kind is QuestionKind.ANSWERABLE else Truth.RIGHT
    return Truth.WRONG


@dataclass
class ScriptedModels:
    """All strengths; the model's name in a request says which one answers.

    Args:
        oracle: the file that ``write_oracle`` wrote.
        seed: of all draws.
    """

    oracle: Path
    seed: int = 0
    questions: Mapping[str, CorpusQuestion] = field(init=False)

    def __post_init__(self) -> None:
        found = _QUESTIONS.validate_json(self.oracle.read_bytes())
        self.questions = MappingProxyType({each.id: each for each in found})
        self._by_text = {each.question.strip(): each for each in found}
        self._strengths = {each.name: each for each in STRENGTHS}

    def reply(self, body: Mapping[str, Any], *, first: str = "", question: str = "") -> ScriptedReply:
        """Return the reply to a chat request.

        Args:
            body: of the request.
            first: which answer of the data, ``right`` or ``wrong``, the client's own request gets.
            question: the id of the question that the client's own request asks.
        """
        strength = self._strengths[body["model"]]
        system, prompt = body["messages"][0]["content"], body["messages"][-1]["content"]
        kind = _prompts().get(system, Prompt.ANSWER)
        if kind is Prompt.ANSWER:
            asked = self.questions[question]
            return ScriptedReply(asked.right if first == "right" else asked.wrong, asked.id)
        case = _CASE.search(prompt) if kind is Prompt.FIELDS else None
        asked = self.questions[case[1]] if case else self._by_text[_between(prompt, "question")]
        # By the number of tags, so that a prompt that is worded anew draws the same, and one that is asked again another.
        place = f"{self.seed}/{strength.name}/{asked.id}/{kind}/{prompt.count('<truthlens:')}"
        if kind is Prompt.CRITIQUE:
            # A mistake about one answer is none about another.
            place += f"/{_between(prompt, 'answer')}"
        drawn = random.Random(place)
        return ScriptedReply(self._said(kind, strength, asked, prompt, drawn), asked.id)

    def _said(
        self, kind: Prompt, strength: Strength, asked: CorpusQuestion, prompt: str, drawn: random.Random
    ) -> str:
        sources = _SOURCE.findall(prompt)
        if kind in (Prompt.SYNTHESIS, Prompt.FALLBACK):
            return _written(strength, asked, sources, drawn)
        if kind is Prompt.CRITIQUE:
            return f"case {asked.id}: {_judged(strength, asked, _between(prompt, 'answer'), drawn)}"
        if drawn.random() < strength.unusable:
            return "Let me think about what would be best here."
        if kind is Prompt.FIELDS:
            case = _CASE.search(prompt)
            assert case is not None
            return _fields(accepted=case[2] == "good", answer=_between(prompt, "answer"))
        if kind is Prompt.REFINEMENT:
            return json.dumps({"query": _key_words(asked.question), "reasoning": "other words"})
        return _decided(asked, prompt, sources)


@cache
def _prompts() -> Mapping[str, Prompt]:
    """Return what is asked for by the system message of a prompt."""
    kinds = [kind for kind in Prompt if kind is not Prompt.ANSWER]
    return {
        render.render(kind.value, chinese=chinese, part="system"): kind
        for kind in kinds
        for chinese in (False, True)
    }


def _decided(asked: CorpusQuestion, prompt: str, sources: Sequence[tuple[str, str]]) -> str:
    """Search for the question, then for its key words; write where a page that answers is there, else finish."""
    searches = prompt.count("<truthlens:search ")
    step: dict[str, Any] = {"action": "finish", "tool_name": None, "parameters": None}
    if "the answer was not accepted" in prompt:
        pass
    elif searches and _supporting(asked, sources):
        step["action"] = "synthesize"
    elif searches < 2:
        query = _key_words(asked.question) if searches else asked.question
        step |= {"action": "use_tool", "tool_name": "text_search", "parameters": {"query": query, "limit": 5}}
    return json.dumps({**step, "reasoning": f"{searches} searches so far"}, ensure_ascii=False)


def _written(
    strength: Strength, asked: CorpusQuestion, sources: Sequence[tuple[str, str]], drawn: random.Random
) -> str:
    """Write the right answer where a source holds it, or the wrong one, or that nothing is known."""
    wrong, invents, miscites, unknown = (drawn.random() for _ in range(4))
    supporting = _supporting(asked, sources)
    if wrong < strength.writes_wrong and sources:
        others = [each for each, _ in sources if each != supporting]
        near = [each for each in others if _page(each) in asked.near]
        text, cites = asked.wrong, next(iter(near or others or [sources[0][0]]))
        if invents < strength.invents:
            text = re.sub(r"\d+", lambda found: str(int(found[0]) + drawn.randint(1, 9)), asked.right)
            text = asked.wrong if text == asked.right else text
    elif supporting:
        text, cites = asked.right, supporting
    else:
        return no_information(chinese=render.in_chinese(asked.question)) + "."
    if miscites < strength.miscites:
        cites = "handbook-99" if unknown < 0.5 else drawn.choice([each for each, _ in sources])
    return _cited(text, cites)


def _judged(strength: Strength, asked: CorpusQuestion, answer: str, drawn: random.Random) -> str:
    is_good = truth_of(answer, asked) is Truth.RIGHT
    if drawn.random() < strength.misjudges:
        is_good = not is_good
    return "good" if is_good or strength.accepts_all else "bad"


def _fields(*, accepted: bool, answer: str) -> str:
    """Return the form that the judge's second stage asks for."""
    risk, score = (0.05, 0.95) if accepted else (0.9, 0.1)
    lists = ("unsupported_claims", "invalid_citations", "contradictory_info", "over_extrapolation")
    scores = ("completeness_score", "relevance_score", "citation_quality_score", "consistency_score")
    hallucination = {"has_risk": not accepted, "risk_score": risk, **{name: [] for name in lists}}
    if not accepted:
        hallucination["unsupported_claims"] = [answer]
    told = {"score": score, "reasoning": "as the critique says", "confidence": 0.9}
    decision = "synthesize" if accepted else "reject"
    form = {**told, "decision": decision, "hallucination": hallucination, **dict.fromkeys(scores, score)}
    return json.dumps(form, ensure_ascii=False)


def _supporting(asked: CorpusQuestion, sources: Sequence[tuple[str, str]]) -> str:
    """Return the id of the source of a page that answers, the one nearest to the right answer; ``""`` for none."""
    right = _pairs(asked.right)
    fitting = [(len(right & _pairs(text)), name) for name, text in sources if _page(name) in asked.page]
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else ""


def _page(document_id: str) -> str:
    return document_id.rpartition("#")[0]


def _key_words(question: str) -> str:
    return " ".join(each for each in _WORD.findall(question) if each.casefold() not in STOP_WORDS) or question


def _cited(text: str, document_id: str) -> str:
    """Return ``text`` with the citation at the end of each sentence, before its full stop."""
    pieces: list[str] = []
    done = 0
    for start, end in sentences(text):
        sentence = text[start:end].rstrip()
        ending = _ENDING.search(sentence)
        place = start + (ending.start() if ending else len(sentence))
        pieces += (text[done:place], f" [{document_id}]")
        done = place
    return "".join((*pieces, text[done:]))


def _between(prompt: str, name: str) -> str:
    """Return the data between the last tags of that name, as it was before it was escaped."""
    begin, end = f"<truthlens:{name}>\n", f"\n</truthlens:{name}>"
    return delimiters.unmarked(prompt.rpartition(begin)[2].partition(end)[0]).strip()


def _pairs(text: str) -> set[str]:
    """Return the pairs of characters of a text, which tell in every language what two texts share."""
    bare = _bare(text)
    return {bare[place : place + 2] for place in range(len(bare) - 1)}


def _bare(text: str) -> str:
    return "".join(_CITATION.sub("", text).casefold().split())
