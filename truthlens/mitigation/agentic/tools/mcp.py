"""Wrap tools of MCP servers that the operator allows; the connection is given, this knows no protocol.

Nothing of a server is offered unless the operator names it, and nothing that the server does not mark as
read-only. Names, descriptions and schemas are a server's own text: bounded here, and data in every prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import pydantic

from truthlens.mitigation.agentic.tools.interfaces import WRONG_PARAMETERS, BaseTool, ToolError, ToolResult
from truthlens.mitigation.agentic.tools.registry import ToolRegistry

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_MOST_DESCRIPTION_CHARS = 500
_MOST_SCHEMA_CHARS = 4_000
_MOST_ARGUMENT_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as its server describes it; ``input_schema`` is a JSON Schema, ``read_only`` its own word."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    read_only: bool = False


class CallServer(Protocol):
    """Calls a tool of one MCP server on behalf of one exchange."""

    async def __call__(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return the text of the result.

        Raises:
            ToolError: the server gave an error. Any other exception counts as one that may pass.
        """


class AnyArguments(pydantic.BaseModel):
    """Arguments as they are; the server's schema says which there are."""

    model_config = pydantic.ConfigDict(extra="allow", frozen=True)


class MCPToolWrapper(BaseTool):
    """One tool of an MCP server, under the name ``server.tool``.

    Args:
        server: the operator's name for the server.
        offered: what the server says of the tool.
        call: calls it.
        gives_evidence: whether what it returns counts as evidence. A tool that can repeat its arguments must
        not.
        timeout: seconds for one use.
    """

    parameters = AnyArguments

    def __init__(
        self,
        server: str,
        offered: OfferedTool,
        call: CallServer,
        *,
        gives_evidence: bool = False,
        timeout: float = 30.0,
    ) -> None:
        super().__init__(
            f"{server}.{offered.name}", offered.description[:_MOST_DESCRIPTION_CHARS], timeout=timeout
        )
        self.gives_evidence = gives_evidence
        self._offered = offered
        self._call = call

    @property
    def schema(self) -> Mapping[str, Any]:
        """Return the server's schema."""
        return self._offered.input_schema

    async def execute(self, /, **kwargs: Any) -> ToolResult:
        """Return the text that the server gives.

        Raises:
            ToolError: arguments are too long, missing, or none of the tool's.
        """
        known, required = self.schema.get("properties"), self.schema.get("required")
        unknown = isinstance(known, Mapping) and not kwargs.keys() <= known.keys()
        missing = isinstance(required, (list, tuple)) and any(name not in kwargs for name in required)
        if unknown or missing or len(json.dumps(kwargs)) > _MOST_ARGUMENT_CHARS:
            raise ToolError(WRONG_PARAMETERS, "arguments are too long, missing, or not in the tool's schema")
        return self.succeeded(await self._call(self._offered.name, kwargs))


async def register_mcp(
    registry: ToolRegistry,
    server: str,
    offered: Iterable[OfferedTool],
    call: CallServer,
    *,
    allowed: Collection[str],
    evidence: Collection[str] = (),
    timeout_s: float = 30.0,
) -> tuple[str, ...]:
    """Register the allowed read-only tools of a server; return their names in the registry.

    Args:
        registry: of a run.
        server: the operator's name for the server.
        offered: what the server lists.
        call: calls a tool of it.
        allowed: names of tools, as the server has them; others are left out.
        evidence: those of them whose results are evidence.
        timeout_s: seconds for one use.
    """
    names: list[str] = []
    for each in offered:
        if each.name not in allowed or not each.read_only or not _is_usable(each):
            continue
        tool = MCPToolWrapper(server, each, call, gives_evidence=each.name in evidence, timeout=timeout_s)
        if await registry.get_tool(tool.name) is None:
            await registry.register(tool)
            names.append(tool.name)
    return tuple(names)


def _is_usable(offered: OfferedTool) -> bool:
    try:
        schema = json.dumps(
            offered.input_schema if isinstance(offered.input_schema, dict) else {**offered.input_schema}
        )
    except (TypeError, ValueError, RecursionError):
        return False
    return _NAME.fullmatch(offered.name) is not None and len(schema) <= _MOST_SCHEMA_CHARS
