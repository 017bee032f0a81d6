"""Offer the tools of a plan's sources to a run of mode agentic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import FoundPassage, SourceTool
from truthlens.mitigation.agentic.tools.interfaces import WRONG_PARAMETERS, ToolError
from truthlens.mitigation.agentic.tools.mcp import register_mcp
from truthlens.mitigation.agentic.tools.registry import ToolRegistry
from truthlens.retrieval.interfaces import SourceError, WrongArgumentsError
from truthlens.retrieval.retriever import Retriever


async def offer_tools(
    registry: ToolRegistry, retriever: Retriever, sources: Sequence[str], deadline: Deadline
) -> None:
    """Register the tools that the operator allows of ``sources`` and that their servers offer now.

    A server that fails costs its tools, or the step that uses one, never the run. No call is tried twice: a session
    that ended is opened again after a pause that is longer than the waits between tries.

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
