"""Build the registry of one run from the settings and the sources that the operator gave to each tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from truthlens.core.deadline import Deadline
from truthlens.core.records.agentic_settings import AgenticSettings, ToolName
from truthlens.mitigation.agentic.tools.calculation import CalculationTool
from truthlens.mitigation.agentic.tools.interfaces import BaseTool
from truthlens.mitigation.agentic.tools.registry import ToolRegistry
from truthlens.mitigation.agentic.tools.search import (
    InternetSearchTool,
    SearchSources,
    TextSearchTool,
    VectorSearchTool,
)
from truthlens.mitigation.agentic.tools.timestamp import TimestampTool

_SEARCHES: Mapping[ToolName, Callable[[SearchSources, Sequence[str], Deadline], BaseTool]] = {
    ToolName.VECTOR_SEARCH: VectorSearchTool,
    ToolName.TEXT_SEARCH: TextSearchTool,
    ToolName.INTERNET_SEARCH: InternetSearchTool,
}


async def builtin_tools(
    settings: AgenticSettings,
    search: SearchSources,
    sources: Mapping[ToolName, Sequence[str]],
    deadline: Deadline,
) -> ToolRegistry:
    """Return the tools that ``settings`` list; a search tool without sources is left out.

    Args:
        settings: of the plan.
        search: on behalf of the exchange.
        sources: names of the sources that each search tool may use.
        deadline: of the exchange.
    """
    registry = ToolRegistry()
    for name in settings.tools:
        tool: BaseTool | None = None
        match name:
            case ToolName.CALCULATION:
                tool = CalculationTool()
            case ToolName.TIMESTAMP:
                tool = TimestampTool()
            case _ if sources.get(name):
                tool = _SEARCHES[name](search, sources[name], deadline)
        if tool is not None:
            await registry.register(tool)
    return registry
