"""Build the registry of one run, its clock included, from the settings and the sources of each tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from truthlens.core.deadline import Deadline
from truthlens.core.records.agentic_settings import AgenticSettings, ToolName
from truthlens.mitigation.agentic.tools.calculation import CalculationTool
from truthlens.mitigation.agentic.tools.interfaces import BaseTool, ToolParameters, ToolResult
from truthlens.mitigation.agentic.tools.registry import ToolRegistry
from truthlens.mitigation.agentic.tools.search import (
    InternetSearchTool,
    SearchSources,
    TextSearchTool,
    VectorSearchTool,
)

_SEARCHES: Mapping[ToolName, Callable[[SearchSources, Sequence[str], Deadline], BaseTool]] = {
    ToolName.VECTOR_SEARCH: VectorSearchTool,
    ToolName.TEXT_SEARCH: TextSearchTool,
    ToolName.INTERNET_SEARCH: InternetSearchTool,
}


def _now() -> datetime:
    return datetime.now(UTC)


class TimestampTool(BaseTool):
    """Tells the time, in UTC."""

    parameters = ToolParameters

    def __init__(self, *, enabled: bool = True, now: Callable[[], datetime] = _now) -> None:
        super().__init__(
            ToolName.TIMESTAMP.value, "Tells the date and the time, in UTC.", timeout=5.0, enabled=enabled
        )
        self._now = now

    async def execute(self) -> ToolResult:  # type: ignore[override]
        """Return the time as ISO 8601 has it, to the second."""
        return self.succeeded(self._now().isoformat(timespec="seconds"))


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
