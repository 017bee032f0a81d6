"""Wrap tools of MCP servers that the operator allows; the connection is given, this knows no protocol.

Which tools there are is the source's business: nothing of a server is offered unless the operator names it,
and nothing that the server does not mark as read-only. Descriptions and schemas are a server's own text: data
in every prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import pydantic

from truthlens.core.records.retrieval import FoundPassage, Retrieved, RetrievedPassage, SourceTool
from truthlens.mitigation.agentic.tools.interfaces import WRONG_PARAMETERS, BaseTool, ToolError, ToolResult
from truthlens.mitigation.agentic.tools.registry import MOST_TOOLS, ToolRegistry

_MOST_DESCRIPTION_CHARS = 500
_MOST_ARGUMENT_CHARS = 4_000


class CallTool(Protocol):
    """Calls a tool of a source on behalf of one exchange."""

    async def __call__(self, tool: SourceTool, arguments: Mapping[str, Any]) -> Sequence[FoundPassage]:
        """Return the texts of the result.

        Raises:
            ToolError: there is none. Any other exception counts as one that may pass.
        """


class AnyArguments(pydantic.BaseModel):
    """Arguments as they are; the server's schema says which there are."""

    model_config = pydantic.ConfigDict(extra="allow", frozen=True)


class MCPToolWrapper(BaseTool):
    """One tool of an MCP server, under the name ``source.tool``.

    What it gives is found passages of its source where the operator says that it is evidence, else a text.

    Args:
        offered: what the operator and the server say of the tool.
        call: calls it.
        timeout: seconds for one use.
    """

    parameters = AnyArguments

    def __init__(self, offered: SourceTool, call: CallTool, *, timeout: float = 30.0) -> None:
        super().__init__(
            f"{offered.source}.{offered.name}", offered.description[:_MOST_DESCRIPTION_CHARS], timeout=timeout
        )
        self.gives_evidence = offered.gives_evidence
        self._offered = offered
        self._call = call

    @property
    def schema(self) -> Mapping[str, Any]:
        """Return the server's schema."""
        return self._offered.input_schema

    async def execute(self, /, **kwargs: Any) -> ToolResult:
        """Return what the server gives.

        Raises:
            ToolError: arguments are too long, missing, or none of the tool's; or there is no result.
        """
        known, required = self.schema.get("properties"), self.schema.get("required")
        unknown = isinstance(known, Mapping) and not kwargs.keys() <= known.keys()
        missing = isinstance(required, (list, tuple)) and any(name not in kwargs for name in required)
        if unknown or missing or len(json.dumps(kwargs)) > _MOST_ARGUMENT_CHARS:
            raise ToolError(WRONG_PARAMETERS, "arguments are too long, missing, or not in the tool's schema")
        found = await self._call(self._offered, kwargs)
        if not self.gives_evidence:
            return self.succeeded("\n".join(each.text for each in found))
        passages = tuple(RetrievedPassage(self._offered.source, each) for each in found)
        return self.succeeded(Retrieved(passages), results=len(passages))


async def register_mcp(
    registry: ToolRegistry, offered: Iterable[SourceTool], call: CallTool, *, timeout_s: float = 30.0
) -> tuple[str, ...]:
    """Register tools of servers for as long as a run lasts; return their names in the registry.

    Args:
        registry: of the run.
        offered: the tools that may be used; of one name the first, and no more than the registry holds.
        call: calls one of them.
        timeout_s: seconds for one use.
    """
    names: list[str] = []
    for each in offered:
        tool = MCPToolWrapper(each, call, timeout=timeout_s)
        if await registry.get_tool(tool.name) is None and len(await registry.list_tools()) < MOST_TOOLS:
            await registry.register(tool)
            names.append(tool.name)
    return tuple(names)
