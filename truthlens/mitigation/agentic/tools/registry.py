"""Hold the tools of a run by name, and run them; tools may come and go while it runs."""

from __future__ import annotations

from typing import Any

from truthlens.mitigation.agentic.tools.interfaces import BaseTool, ToolResult, failed_use

UNKNOWN_TOOL = "unknown-tool"
MOST_TOOLS = 64


class ToolRegistry:
    """The tools that a model may use; a tool that it does not hold, or that is not enabled, is never run."""

    def __init__(self) -> None:
        self._tools: dict[str, BaseTool] = {}

    async def register(self, tool: BaseTool) -> None:
        """Add a tool.

        Raises:
            ValueError: its name is taken, or there are 64 already.
        """
        if tool.name in self._tools or len(self._tools) >= MOST_TOOLS:
            raise ValueError(
                f"the tool {tool.name!r} cannot be registered: its name is taken, or there are too many"
            )
        self._tools[tool.name] = tool

    async def unregister(self, tool_name: str) -> None:
        """Remove a tool, if it is there."""
        self._tools.pop(tool_name, None)

    async def get_tool(self, tool_name: str) -> BaseTool | None:
        """Return the tool of that name, ``None`` where there is none."""
        return self._tools.get(tool_name)

    async def list_tools(self) -> list[dict[str, Any]]:
        """Return name, description, parameters (JSON Schema), timeout and ``enabled`` of every tool."""
        return [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
                "timeout": tool.timeout,
                "enabled": tool.enabled,
            }
            for tool in self._tools.values()
        ]

    async def execute_tool(self, tool_name: str, /, **kwargs: Any) -> ToolResult:
        """Return what the tool gives, a failed result where there is no such tool; never raises."""
        tool = self._tools.get(tool_name)
        if tool is None or not tool.enabled:
            names = ", ".join(name for name, each in self._tools.items() if each.enabled)
            return failed_use(tool_name, UNKNOWN_TOOL, f"there is no such tool; there are: {names or 'none'}")
        return await tool.execute_with_retry(**kwargs)
