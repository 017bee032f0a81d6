"""A scripted model, a small corpus and the real citations and judge detectors, for runs of mode agentic."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from tests.fakes.standard_tools import Clock, HangingAsk, Reply, ScriptedAsk
from truthlens.core.deadline import Deadline
from truthlens.core.records.agentic_run import AgenticRun
from truthlens.core.records.agentic_settings import AgenticSettings, ToolName
from truthlens.core.records.calls import Ask
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.retrieval import (
    FoundPassage,
    Retrieved,
    RetrievedPassage,
    SearchRecord,
    SearchResult,
)
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.detectors.citations.detector import CitationDetector
from truthlens.detection.detectors.citations.report import Options as CitationOptions
from truthlens.detection.detectors.judge.detector import JudgeDetector
from truthlens.detection.detectors.judge.options import Options as JudgeOptions
from truthlens.llm.token_estimate import prompt_tokens
from truthlens.mitigation.agentic.interfaces import AgenticTask, AgenticTools
from truthlens.mitigation.agentic.loop import AgenticLoop
from truthlens.mitigation.agentic.models import models_of
from truthlens.mitigation.agentic.tools.builtin import builtin_tools
from truthlens.mitigation.agentic.tools.registry import ToolRegistry

QUESTION = "How fast does the pump run?"
PASSAGE = FoundPassage("The pump runs at 600 rpm.", "doc-7", "Data sheet", "manual")
CITED = "The pump runs at 600 rpm [doc-7]."


class Corpus:
    """Gives its passages for every query; keeps what it was asked."""

    def __init__(
        self, *passages: FoundPassage, result: SearchResult | None = None, hangs: bool = False
    ) -> None:
        self.passages = passages
        self.result = result
        self.hangs = hangs
        self.asked: list[tuple[tuple[str, ...], str, int]] = []
        self.entered = asyncio.Event()
        self.cancelled = False

    async def __call__(self, sources: Sequence[str], query: str, k: int, deadline: Deadline) -> Retrieved:
        self.asked.append((tuple(sources), query, k))
        self.entered.set()
        if self.hangs:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
        found = self.passages[:k]
        result = self.result or (SearchResult.OK if found else SearchResult.EMPTY)
        record = SearchRecord(sources[0], result, 0.0, len(found))
        if result.is_failure:
            return Retrieved((), (record,))
        return Retrieved(tuple(RetrievedPassage(sources[0], each) for each in found), (record,))


def use(tool: str, reasoning: str = "because", **parameters: Any) -> str:
    """The reply that asks for a tool."""
    return json.dumps(
        {"action": "use_tool", "tool_name": tool, "parameters": parameters, "reasoning": reasoning}
    )


def search(query: str = "pump speed") -> str:
    """The reply that searches the corpus by its words."""
    return use("text_search", query=query)


def act(action: str) -> str:
    """The reply of an action without a tool."""
    return json.dumps({"action": action, "tool_name": None, "parameters": None, "reasoning": "because"})


def refined(query: str = "speed of the pump in rpm") -> str:
    """The reply with a better query."""
    return json.dumps({"query": query, "tool_name": None, "reasoning": "because"})


def judged(risk: float = 0.0, score: float = 1.0, **lists: list[str]) -> tuple[str, str]:
    """The replies of the judge's two stages."""
    names = ("unsupported_claims", "invalid_citations", "contradictory_info", "over_extrapolation")
    scores = ("completeness_score", "relevance_score", "citation_quality_score", "consistency_score")
    fields = {
        "score": score,
        "reasoning": "r",
        "confidence": 0.9,
        "decision": "synthesize",
        "hallucination": {
            "has_risk": risk > 0.3,
            "risk_score": risk,
            **{name: lists.get(name, []) for name in names},
        },
        **dict.fromkeys(scores, score),
    }
    return "A critique.", json.dumps(fields)


async def check_citations(exchange: Exchange, answer: Answer) -> DetectorResult:
    """The detector ``citations`` with its defaults."""
    (found,) = CitationDetector(CitationOptions()).detect_all(
        exchange, (answer,), aggregation=None, stop=lambda: False
    )
    return found


async def registry_of(
    corpus: Corpus, deadline: Deadline, settings: AgenticSettings | None = None
) -> ToolRegistry:
    """The tools that the settings list, each search tool with a source of its own."""
    sources = {
        ToolName.TEXT_SEARCH: ("handbook",),
        ToolName.VECTOR_SEARCH: ("vectors", "archive"),
        ToolName.INTERNET_SEARCH: ("web",),
    }
    return await builtin_tools(settings or AgenticSettings(), corpus, sources, deadline)


async def run_with(
    ask: Ask,
    corpus: Corpus,
    *,
    question: str = QUESTION,
    settings: AgenticSettings | None = None,
    seconds: float = 600.0,
    clock: Clock | None = None,
    registry: ToolRegistry | None = None,
    task: AgenticTask | None = None,
) -> AgenticRun:
    """What a run comes to, with the real detectors."""
    settings = settings or AgenticSettings()
    deadline = Deadline.after(seconds, clock=clock) if clock else Deadline.after(seconds)
    models = models_of(settings, own="m")
    judge = JudgeDetector(
        JudgeOptions(
            model=models.evaluation,
            formatting_model=models.formatting,
            two_stage=settings.evaluation_use_two_stage,
        )
    )
    tools = AgenticTools(
        ask,
        registry or await registry_of(corpus, deadline, settings),
        check_citations,
        judge.examine,
        deadline,
        prompt_tokens,
    )
    return await AgenticLoop(settings).run(task or AgenticTask(question, "m"), tools)


async def scripted(
    *replies: Reply, corpus: Corpus | None = None, **how: Any
) -> tuple[AgenticRun, ScriptedAsk]:
    """A run whose models give these replies in order, and no further ones."""
    ask = ScriptedAsk(*replies)
    return await run_with(ask, corpus or Corpus(PASSAGE), **how), ask


__all__ = ["Clock", "HangingAsk", "ScriptedAsk"]
