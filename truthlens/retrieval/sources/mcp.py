"""The source ``mcp``: a tool of an MCP server that searches, and further ones for models of mode agentic."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

import pydantic
from pydantic import Field

from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult, SourceTool
from truthlens.core.registry import SourceContext, SourceOptions, SourceType
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.mcp.client import McpClient
from truthlens.retrieval.mcp.options import McpServerOptions, McpToolRule, Pin, ToolName

_Argument = Annotated[str, Field(min_length=1, max_length=128)]
# What a decision can show of it.
_MOST_SCHEMA_CHARS = 1_400


class McpFurtherTool(pydantic.BaseModel):
    """A tool of the server that models of mode agentic may use, only while the server calls it read-only."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$", description="The tool's name, as the server has it."
    )
    evidence: bool = Field(
        default=False,
        description="Whether what it returns is evidence. A tool that can repeat its arguments gives none.",
    )
    pin: Pin | None = Field(
        default=None,
        description="SHA-256 of the tool's name, description and schema, with which alone it is used.",
    )

    @property
    def rule(self) -> McpToolRule:
        """Return by what it may be called."""
        return McpToolRule(name=self.name, pin=self.pin, most_schema_chars=_MOST_SCHEMA_CHARS)


class McpSourceOptions(McpServerOptions, SourceOptions):
    """The server, its tool that searches, the arguments that this gets, and further tools for models.

    The keys of ``filter`` are arguments of the tool, here: each gets the value of the scope.
    """

    tool: ToolName = Field(description="The tool that searches.")
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

    tools: Annotated[tuple[McpFurtherTool, ...], Field(max_length=16)] = Field(
        default=(), description="Further tools, which models of mode agentic may use; no others are called."
    )

    @pydantic.model_validator(mode="after")
    def _check_tools(self) -> Self:
        times = Counter([self.tool, *(each.name for each in self.tools)])
        if twice := [name for name, number in times.items() if number > 1]:
            raise ValueError(f"the tool {twice[0]!r} is written twice under `tool` and `tools`; keep one")
        if self.tools and self.filter:
            raise ValueError(
                "`tools` and `filter` exclude each other: models choose the arguments of further tools, and "
                "no filter would tell tenants apart there; use a source of its own for them"
            )
        return self

    @pydantic.model_validator(mode="after")
    def _check_arguments(self) -> Self:
        named = [*self.arguments, self.query_argument, *self.filter]
        named += [] if self.k_argument is None else [self.k_argument]
        twice = [name for name, times in Counter(named).items() if times > 1]
        if twice:
            raise ValueError(f"the argument {twice[0]!r} gets two values; write it once")
        return self


class McpSource:
    """A tool that is called with each query, and further ones (``ToolSource``)."""

    def __init__(self, name: str, client: McpClient, options: McpSourceOptions) -> None:
        self._name = name
        self._client = client
        self._options = options
        self._further = {each.name: each for each in options.tools}

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

    async def tools(self, *, deadline: Deadline) -> Sequence[SourceTool]:
        """Return the further tools that can be used now; those that are refused are named in the log.

        Raises:
            SourceError: the server cannot be asked.
        """
        if not self._further:
            return ()
        return [
            SourceTool(
                self._name,
                each.name,
                each.description,
                each.input_schema,
                gives_evidence=self._further[each.name].evidence,
            )
            for each in await self._client.tools(deadline=deadline)
            if each.name in self._further
        ]

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], *, deadline: Deadline
    ) -> Sequence[FoundPassage]:
        """Return what a further tool gives, each part that is text a passage.

        Raises:
            WrongArgumentsError: the arguments do not fit the tool's schema.
            SourceError: the tool is none of them or is refused, or the call failed.
        """
        if name not in self._further:
            raise SourceError(SearchResult.REFUSED, "the tool is not among those that models may use")
        written = json.dumps(dict(arguments), ensure_ascii=False).encode(errors="replace").decode()
        output = await self._client.call(name, json.loads(written), deadline=deadline)
        return output.passages

    async def aclose(self) -> None:
        """End the session, and the server where it is a program."""
        await self._client.aclose()


def _build(context: SourceContext) -> McpSource:
    options: McpSourceOptions = context.options
    rule = McpToolRule(name=options.tool, read_only=options.read_only, pin=options.pin)
    client = McpClient(
        context.name,
        options,
        (rule, *(each.rule for each in options.tools)),
        environ=context.environ,
        folder=context.folder,
        most_calls=options.max_concurrency,
    )
    return McpSource(context.name, client, options)


SOURCE = SourceType("mcp", _build, McpSourceOptions, filters=True)
