"""Compose a run of mode agentic: the loop with its judge, its check of citations, its searches and its tools.

The gateway's mode and questions without an exchange (``process.ask``) run it in the same way.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from truthlens.core.deadline import Deadline
from truthlens.core.records.agentic_run import AgenticRun, AgenticStep
from truthlens.core.records.agentic_settings import AgenticSettings, ToolName
from truthlens.core.records.calls import Ask
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.retrieval import FoundPassage, SourceTool
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.detectors.citations.detector import CitationDetector
from truthlens.detection.detectors.citations.report import Options as CitationOptions
from truthlens.detection.detectors.judge.detector import JudgeDetector
from truthlens.detection.detectors.judge.options import Options as JudgeOptions
from truthlens.llm.token_estimate import prompt_tokens
from truthlens.mitigation.agentic.asking import AgenticForms
from truthlens.mitigation.agentic.interfaces import AgenticTask, AgenticTools
from truthlens.mitigation.agentic.loop import FALLBACK_S, AgenticLoop
from truthlens.mitigation.agentic.models import models_of
from truthlens.mitigation.agentic.tools.builtin import builtin_tools
from truthlens.mitigation.agentic.tools.interfaces import WRONG_PARAMETERS, ToolError
from truthlens.mitigation.agentic.tools.mcp import register_mcp
from truthlens.mitigation.agentic.tools.registry import ToolRegistry
from truthlens.mitigation.agentic.tools.search import SearchSources
from truthlens.retrieval.interfaces import SourceError, WrongArgumentsError
from truthlens.retrieval.retriever import Retriever

_SHARE_TO_FALL_BACK = 0.1


def loop_within(time_s: float, settings: AgenticSettings, forms: AgenticForms) -> AgenticLoop:
    """Return a loop whose own time leaves room for a fallback answer within ``time_s``.

    Args:
        time_s: seconds that a run may take altogether.
        settings: of the plan.
        forms: what is known of how servers take the forms of replies under these settings.
    """
    own_s = min(settings.max_duration_s, time_s - min(FALLBACK_S, time_s * _SHARE_TO_FALL_BACK))
    loop = AgenticLoop(settings.model_copy(update={"max_duration_s": own_s}))
    loop.forms = forms
    return loop


async def run_loop(
    loop: AgenticLoop,
    task: AgenticTask,
    *,
    ask: Ask,
    search: SearchSources,
    sources: Sequence[str],
    retriever: Retriever,
    deadline: Deadline,
    observe: Callable[[AgenticStep], None] = lambda step: None,
) -> AgenticRun:
    """Return what a run of ``loop`` came to; cancellation goes through.

    Args:
        loop: with the settings of the run.
        task: the question.
        ask: asks models.
        search: searches sources by name.
        sources: names of those that may be searched.
        retriever: has these sources, and calls the tools that they offer.
        deadline: of the run and all that follows it.
        observe: told of every step that ended.
    """
    settings = loop.settings
    judge = judge_of(settings, own=task.model)
    registry = await builtin_tools(settings, search, _by_tool(sources, retriever, settings.tools), deadline)
    await offer_tools(registry, retriever, sources, deadline)
    tools = AgenticTools(ask, registry, _citations, judge.examine, deadline, prompt_tokens, observe)
    return await loop.run(task, tools)


async def offer_tools(
    registry: ToolRegistry, retriever: Retriever, sources: Sequence[str], deadline: Deadline
) -> None:
    """Register the tools that the operator allows of ``sources`` and that their servers offer now.

    A server that fails costs its tools, or the step that uses one, never the run. No call is tried twice: a
    session that ended is opened again after a pause that is longer than the waits between tries.

    Args:
        registry: of the run.
        retriever: has the sources.
        sources: names of those that the run may search.
        deadline: of the run.
    """

    async def call(tool: SourceTool, arguments: Mapping[str, Any]) -> Sequence[FoundPassage]:
        try:
            return await retriever.call_tool(tool, arguments, deadline=deadline)
        except WrongArgumentsError as error:
            raise ToolError(WRONG_PARAMETERS, str(error)) from None
        except SourceError as error:
            raise ToolError(error.result.value, "the call failed") from None

    await register_mcp(registry, await retriever.tools(sources, deadline=deadline), call)


def judge_of(settings: AgenticSettings, *, own: str) -> JudgeDetector:
    """Return the judge of answers under ``settings``; ``own`` is the model where they name none."""
    names = models_of(settings, own=own)
    options = JudgeOptions(
        model=names.evaluation,
        formatting_model=names.formatting,
        two_stage=settings.evaluation_use_two_stage,
    )
    return JudgeDetector(options)


def _by_tool(
    sources: Sequence[str], retriever: Retriever, tools: Sequence[ToolName]
) -> Mapping[ToolName, tuple[str, ...]]:
    """Return the sources that each of ``tools`` searches, as their types declare it.

    Pages of the web are searched by ``text_search`` where ``internet_search`` is not among the tools.
    """
    found: dict[ToolName, tuple[str, ...]] = {}
    for name in sources:
        tool = retriever.tool_of(name)
        if tool is ToolName.INTERNET_SEARCH and tool not in tools:
            tool = ToolName.TEXT_SEARCH
        found[tool] = (*found.get(tool, ()), name)
    return found


async def _citations(exchange: Exchange, answer: Answer) -> DetectorResult:
    """Check citations on a thread, which ends with whoever waits for it."""
    gone = threading.Event()
    detector = CitationDetector(CitationOptions())
    try:
        (found,) = await asyncio.to_thread(
            detector.detect_all, exchange, (answer,), aggregation=None, stop=gone.is_set
        )
    finally:
        gone.set()
    return found
