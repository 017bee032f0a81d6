"""Tools: parameters, results, retries, time, the registry, searches, MCP servers and the clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.fakes.agentic_parts import PASSAGE, Corpus, registry_of
from truthlens.core.deadline import Deadline
from truthlens.core.records.agentic_run import CollectedPassage
from truthlens.core.records.agentic_settings import AgenticSettings, ToolName
from truthlens.core.records.retrieval import FoundPassage, Retrieved, SearchResult, SourceTool
from truthlens.mitigation.agentic.collected import collect
from truthlens.mitigation.agentic.tools.builtin import TimestampTool
from truthlens.mitigation.agentic.tools.interfaces import BaseTool, ToolError, ToolParameters, ToolResult
from truthlens.mitigation.agentic.tools.mcp import register_mcp
from truthlens.mitigation.agentic.tools.registry import MOST_TOOLS, ToolRegistry


class Flaky(BaseTool):
    """Raises what it is given, in order, and then gives its data."""

    parameters = ToolParameters

    def __init__(self, *errors: Exception, data: Any = "done", **how: Any) -> None:
        super().__init__("flaky", "d", **how)
        self.errors, self.data, self.tries = list(errors), data, 0

    async def execute(self) -> ToolResult:  # type: ignore[override]
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.succeeded(self.data, figure=1)


def test_a_tool_has_the_defaults_of_the_source() -> None:
    """Thirty seconds, two retries, enabled."""
    tool = Flaky()
    assert (tool.name, tool.description, tool.timeout, tool.retry_count, tool.enabled) == (
        "flaky",
        "d",
        30.0,
        2,
        True,
    )


async def test_a_result_has_the_members_of_the_source() -> None:
    """Also as JSON."""
    result = await Flaky().execute_with_retry()
    found = result.as_dict()
    assert json.loads(json.dumps(found)) == found
    assert found.pop("execution_time") >= 0
    assert found == {
        "tool_name": "flaky",
        "success": True,
        "data": "done",
        "error": None,
        "metadata": {"figure": 1, "tries": 1},
    }


@pytest.mark.parametrize(
    ("errors", "tries", "error"),
    [
        ((OSError("a secret"),) * 2, 3, None),
        ((OSError("a secret"),) * 3, 3, "OSError"),
        ((ToolError("down", "it is down", transient=True),) * 3, 3, "it is down"),
        ((ToolError("refused", "not that"),), 1, "not that"),
        ((TimeoutError(),), 2, None),
    ],
)
async def test_what_may_pass_is_tried_again(
    errors: tuple[Exception, ...], tries: int, error: str | None
) -> None:
    """Twice more; what an exception says stays out of the result."""
    tool = Flaky(*errors)
    result = await tool.execute_with_retry()
    assert (tool.tries, result.error, result.success) == (tries, error, error is None)
    assert result.metadata["tries"] == tries


async def test_all_tries_share_one_timeout() -> None:
    """A tool that hangs is not tried again."""

    class Hanging(Flaky):
        async def execute(self) -> ToolResult:  # type: ignore[override]
            self.tries += 1
            return await asyncio.Event().wait()  # type: ignore[return-value]

    tool = Hanging(timeout=0.01)
    result = await tool.execute_with_retry()
    assert (tool.tries, result.success, result.metadata["code"]) == (1, False, "timeout")


async def test_cancellation_goes_through() -> None:
    """It is no failure of a tool."""
    corpus = Corpus(hangs=True)
    registry = await registry_of(corpus, Deadline.after(60))
    task = asyncio.create_task(registry.execute_tool("text_search", query="a"))
    await corpus.entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert corpus.cancelled


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("x" * 30_000, "x" * 19_997 + "[…]"),
        ({"a": "x" * 30_000}, '{"a": "' + "x" * 19_990 + "[…]"),
        ([1, {"a": "泵"}], '[1, {"a": "泵"}]'),
        (object(), None),
        ({"a": {1, 2}}, None),
    ],
)
async def test_data_of_any_kind_is_text_of_bounded_length_or_a_failure(data: Any, text: str | None) -> None:
    """A tool may be anybody's."""
    result = await Flaky(data=data, retry_count=0).execute_with_retry()
    assert (result.data, result.success) == (text, text is not None)


async def test_data_nested_without_end_is_a_failure() -> None:
    """Neither memory nor the stack pays for it."""
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    result = await Flaky(data=nested, retry_count=0).execute_with_retry()
    assert (result.success, result.error) == (False, "ValueError")
    while nested:  # taken apart by hand: the interpreter would recurse
        nested = nested[0]


async def test_the_registry() -> None:
    """Register, get, list, execute, unregister."""
    registry = ToolRegistry()
    tool = Flaky()
    await registry.register(tool)
    with pytest.raises(ValueError, match="flaky"):
        await registry.register(Flaky())
    assert await registry.get_tool("flaky") is tool
    (listed,) = await registry.list_tools()
    assert (listed["name"], listed["description"], listed["enabled"], listed["timeout"]) == (
        "flaky",
        "d",
        True,
        30,
    )
    assert listed["parameters"]["additionalProperties"] is False
    assert (await registry.execute_tool("flaky")).success
    tool.enabled = False
    assert (await registry.execute_tool("flaky")).metadata["code"] == "unknown-tool"
    await registry.unregister("flaky")
    await registry.unregister("flaky")
    assert await registry.get_tool("flaky") is None
    assert (await registry.execute_tool("flaky", query=1)).error == "there is no such tool; there are: none"


async def test_the_registry_is_bounded() -> None:
    """A server cannot fill a prompt with tools."""
    registry = ToolRegistry()
    for number in range(MOST_TOOLS):
        tool = Flaky()
        tool.name = str(number)
        await registry.register(tool)
    with pytest.raises(ValueError, match="too many"):
        await registry.register(Flaky())


async def test_built_in_tools_are_those_that_have_sources_and_are_listed() -> None:
    """The web is searched only where the settings say so."""
    registry = await registry_of(Corpus(), Deadline.after(60))
    listed = {tool["name"]: tool["timeout"] for tool in await registry.list_tools()}
    assert listed == {"vector_search": 60, "text_search": 30, "calculation": 5, "get_current_timestamp": 5}
    settings = AgenticSettings(tools=(ToolName.INTERNET_SEARCH,))
    registry = await registry_of(Corpus(PASSAGE), Deadline.after(60), settings)
    assert [tool["name"] for tool in await registry.list_tools()] == ["internet_search"]
    result = await registry.execute_tool("internet_search", query="pump", limit=3)
    assert (result.data.passages[0].source, result.metadata["searches"]) == ("web", ["web ok"])


async def test_a_vector_search_keeps_what_its_parameters_say() -> None:
    """A score at least, and the given documents; more is asked for where some may be left out."""
    corpus = Corpus(
        FoundPassage("a", "1", parent_id="x", score=0.9),
        FoundPassage("b", "2", parent_id="y", score=0.5),
        FoundPassage("c", "3", parent_id="x", score=0.2),
        FoundPassage("d", "4", parent_id="x"),
    )
    registry = await registry_of(corpus, Deadline.after(60))

    async def found(**parameters: Any) -> list[str]:
        result = await registry.execute_tool("vector_search", query="q", **parameters)
        assert isinstance(result.data, Retrieved)
        return [each.passage.id for each in result.data.passages]

    assert await found() == ["1", "2", "3", "4"]
    assert await found(limit="2") == ["1", "2"]
    assert await found(minimum_score=0.5) == ["1", "2", "4"]
    assert await found(notebook_ids=["x"], limit=2) == ["1", "3"]
    assert await found(notebook_ids=["2"], search_sources=["archive"]) == ["2"]
    assert corpus.asked == [
        (("vectors", "archive"), "q", 10),
        (("vectors", "archive"), "q", 2),
        (("vectors", "archive"), "q", 10),
        (("vectors", "archive"), "q", 20),
        (("archive",), "q", 20),
    ]


@pytest.mark.parametrize(
    ("result", "tries"),
    [(SearchResult.TIMEOUT, 1), (SearchResult.NO_SCOPE, 1), (SearchResult.UNAVAILABLE, 3)],
)
async def test_a_search_that_failed_is_a_failure_and_tells_how(result: SearchResult, tries: int) -> None:
    """It is tried again only where that may help."""
    corpus = Corpus(PASSAGE, result=result)
    registry = await registry_of(corpus, Deadline.after(60))
    found = await registry.execute_tool("text_search", query="q")
    assert (found.success, found.metadata["code"], len(corpus.asked)) == (False, result.value, tries)


async def test_a_search_has_the_time_of_the_exchange_at_most() -> None:
    """Its deadline is the nearer one of the tool's and the exchange's."""
    seen: list[float] = []

    class Timed(Corpus):
        async def __call__(self, sources: Any, query: str, k: int, deadline: Deadline) -> Retrieved:
            seen.append(deadline.remaining_s)
            return await super().__call__(sources, query, k, deadline)

    for seconds, most in ((600.0, 30.0), (4.0, 4.0)):
        registry = await registry_of(Timed(PASSAGE), Deadline.after(seconds, clock=lambda: 0.0))
        assert (await registry.execute_tool("text_search", query="q")).success
        assert seen[-1] == most


async def test_the_time_is_told_in_utc() -> None:
    """To the second, and it takes no parameters."""
    tool = TimestampTool(now=lambda: datetime(2026, 1, 2, 3, 4, 5, 6, UTC))
    assert (await tool.execute_with_retry()).data == "2026-01-02T03:04:05+00:00"
    assert not (await tool.execute_with_retry(zone="UTC")).success


_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


class Server:
    """Answers calls with what it was asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, Any]]] = []

    async def __call__(self, tool: SourceTool, arguments: Mapping[str, Any]) -> Sequence[FoundPassage]:
        self.calls.append((tool.name, arguments))
        return (FoundPassage(json.dumps(arguments), "1", "A file"), FoundPassage("second", "2"))


def _tool(name: str, **more: Any) -> SourceTool:
    return SourceTool("files", name, "Reads " + "x" * 9_000, _SCHEMA, **more)


async def test_tools_of_a_server_are_registered_under_its_name() -> None:
    """While the run goes on; each once, with the server's schema and the beginning of its description."""
    registry, server = ToolRegistry(), Server()
    assert await register_mcp(registry, [_tool("read"), _tool("read")], server) == ("files.read",)
    (listed,) = await registry.list_tools()
    assert (len(listed["description"]), listed["parameters"]) == (500, _SCHEMA)
    assert (await registry.execute_tool("files.read", path="a")).data == '{"path": "a"}\nsecond'
    for wrong in ({}, {"path": "a", "mode": "w"}, {"path": "x" * 5_000}):
        result = await registry.execute_tool("files.read", **wrong)
        assert (result.success, result.metadata["code"]) == (False, "wrong-parameters")
    assert server.calls == [("read", {"path": "a"})]
    many = [_tool(f"t{number}") for number in range(100)]
    assert len(await register_mcp(registry, many, server)) == MOST_TOOLS - 1


async def test_what_a_tool_gives_is_evidence_where_the_operator_says_so() -> None:
    """Passages of its source then; what others give is a text that proves nothing."""
    registry = ToolRegistry()
    await register_mcp(registry, [_tool("read", gives_evidence=True), _tool("repeat")], Server())
    collected: list[CollectedPassage] = []
    for name in ("files.read", "files.repeat"):
        tool = await registry.get_tool(name)
        assert tool is not None
        result = await registry.execute_tool(name, path="a")
        collect(collected, result, gives_evidence=tool.gives_evidence)
    assert [(each.document_id, each.source, each.title, each.computed) for each in collected] == [
        ("1", "files", "A file", False),
        ("2", "files", "", False),
        ("files.repeat-1", "files.repeat", "", True),
    ]
