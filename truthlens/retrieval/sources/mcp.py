"""The source ``mcp``: a tool of an MCP server that searches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Self

import pydantic
from pydantic import Field

from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult
from truthlens.core.registry import SourceContext, SourceOptions, SourceType
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.mcp.client import McpClient
from truthlens.retrieval.mcp.options import McpServerOptions, McpToolRule, Pin, ToolName

_Argument = Annotated[str, Field(min_length=1, max_length=128)]


class McpSourceOptions(McpServerOptions, SourceOptions):
    """The server, its one tool that may be called, and the arguments that the tool gets.

    The keys of ``filter`` are arguments of the tool, here: each gets the value of the scope.
    """

    tool: ToolName = Field(description="The tool that may be called; no other is.")
    arguments: dict[_Argument, pydantic.JsonValue] = Field(
        default_factory=dict, description="Arguments that the tool gets with every search."
    )
    query_argument: _Argument = Field(default="query", description="The argument that gets the query.")
    k_argument: _Argument | None = Field(
        default=None, description="The argument that gets the number of passages wanted."
    )
    read_only: bool = Field(
        default=True, description="Refuse the tool unless its annotation readOnlyHint is true."
    )
    pin: Pin | None = Field(
        default=None,
        description="SHA-256 of the tool's name, description and schema, with which alone it is called.",
    )

    @pydantic.model_validator(mode="after")
    def _check_arguments(self) -> Self:
        named = [*self.arguments, self.query_argument, *self.filter]
        named += [] if self.k_argument is None else [self.k_argument]
        twice = [name for name, times in Counter(named).items() if times > 1]
        if twice:
            raise ValueError(f"the argument {twice[0]!r} gets two values; write it once")
        if self.auth != "none":
            raise ValueError(
                "`auth: passthrough` cannot be used: one session with the server serves everybody"
            )
        return self


class McpSource:
    """A tool that is called with each query."""

    def __init__(self, client: McpClient, options: McpSourceOptions) -> None:
        self._client = client
        self._options = options

    @property
    def revision(self) -> str:
        """Return ``""``: a tool does not tell when its contents change."""
        return ""

    async def search(self, search: Search, *, k: int, deadline: Deadline) -> Sequence[FoundPassage]:
        """Return the first ``k`` passages that the tool gives for the query, in its order.

        Raises:
            SourceError: the tool, its arguments or the filter are refused, or the call failed.
        """
        options = self._options
        if search.filter.keys() != options.filter.keys():
            raise SourceError(SearchResult.REFUSED, "the filter is not that of the options")
        # The SDK cannot send halves of surrogate pairs, which JSON of clients may hold.
        query = search.text.encode(errors="replace").decode()
        arguments: dict[str, Any] = {**options.arguments, **search.filter, options.query_argument: query}
        if options.k_argument is not None:
            arguments[options.k_argument] = k
        output = await self._client.call(options.tool, arguments, deadline=deadline)
        return output.passages[:k]

    async def aclose(self) -> None:
        """End the session, and the server where it is a program."""
        await self._client.aclose()


def _build(context: SourceContext) -> McpSource:
    options: McpSourceOptions = context.options
    rule = McpToolRule(name=options.tool, read_only=options.read_only, pin=options.pin)
    client = McpClient(
        context.name,
        options,
        (rule,),
        environ=context.environ,
        folder=context.folder,
        most_calls=options.max_concurrency,
    )
    return McpSource(client, options)


SOURCE = SourceType(name="mcp", build=_build, options=McpSourceOptions)
