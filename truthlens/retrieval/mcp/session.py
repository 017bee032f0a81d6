"""One connection with an MCP server, run by a task of its own."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Any, TypeVar

import truthlens
from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import SearchResult
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.mcp.allowance import Allowance
from truthlens.retrieval.mcp.tools import OfferedTool, offered_tools

_T = TypeVar("_T")
Transport = Callable[[Allowance], AbstractAsyncContextManager[tuple[Any, Any]]]

_CONNECT_S = 30.0
_LISTEN_S = 5.0
_CLOSE_S = 5.0
# As many calls without an answer, one after the other, end a session: its server may hang for good.
_MOST_LATE = 3
# The SDK logs messages that it cannot read, with the server's text, and its requests, with the user's.
_SDK_LOGGERS = ("mcp", "client", "httpx2")


class McpSession:
    """A session with one server.

    Its task enters and leaves the SDK's context managers, and each request is a task, too: a search that is
    cancelled or late gives up its own request, and the session stays.

    Args:
        transport: opens the connection.
        names: the tools that matter.
        most_requests: requests at once, given up ones that have not ended yet among them.
    """

    def __init__(self, transport: Transport, names: Collection[str], *, most_requests: int) -> None:
        for name in _SDK_LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        self._names = frozenset(names)
        self._allowance = Allowance()
        self._client: Any = None
        self._tools: Mapping[str, OfferedTool] = {}
        self._listed_at: float | None = None
        self._late = 0
        self._most_requests = most_requests
        self._requests: set[asyncio.Future[Any]] = set()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(transport))

    @property
    def fault(self) -> SourceError | None:
        """Why the session ended or is about to; ``None`` while it can be used."""
        return self._allowance.fault

    @property
    def ended(self) -> asyncio.Event:
        """Set as soon as there is a fault."""
        return self._allowance.ended

    async def ready(self, deadline: Deadline) -> None:
        """Wait until the server can be asked; it goes on starting where the deadline passes first.

        Raises:
            SourceError: the session ended, or the deadline passed.
        """
        await asyncio.wait({self._ready}, timeout=deadline.remaining_s)
        self._check()
        if not self._ready.done():
            raise SourceError(SearchResult.TIMEOUT, "the server is not ready yet")

    async def tools(self, *, most_age_s: float, deadline: Deadline) -> Mapping[str, OfferedTool]:
        """Return the tools by name, asked for again where they may have changed or are older than that.

        Raises:
            SourceError: as ``request`` does.
        """
        if self._listed_at is None or time.monotonic() - self._listed_at > most_age_s:
            await self.request(self._list, deadline=deadline)
        return self._tools

    async def call(self, name: str, arguments: Mapping[str, Any], *, deadline: Deadline) -> Any:
        """Return what the tool returned, the SDK's ``CallToolResult``.

        Its structured content is not compared with the tool's own output schema, which may be made to take
        for ever.

        Raises:
            SourceError: as ``request`` does.
        """
        from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

        request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=dict(arguments)))
        return await self.request(
            lambda client: client.session.send_request(request, CallToolResult), deadline=deadline
        )

    async def request(self, work: Callable[[Any], Awaitable[_T]], *, deadline: Deadline) -> _T:
        """Return what ``work`` returns for the SDK's client.

        Raises:
            SourceError: the deadline passed, the session ended, or the server gave an error or no usable
                answer.
        """
        self._check()
        if len(self._requests) >= self._most_requests:
            raise SourceError(SearchResult.OVERLOADED, "too many requests are being given up")
        self._allowance.begin_call()
        request = asyncio.ensure_future(work(self._client))
        self._requests.add(request)
        request.add_done_callback(self._forget)
        try:
            await asyncio.wait(
                {request, self._task}, timeout=deadline.remaining_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            request.cancel()
        if not request.done():
            self._check()
            self._late += 1
            if self._late >= _MOST_LATE:
                self._allowance.fail(SearchResult.TIMEOUT, f"the server left {_MOST_LATE} calls unanswered")
            raise SourceError(SearchResult.TIMEOUT, "the server did not answer in time")
        try:
            answer = request.result()
        except asyncio.CancelledError:
            self._check()
            raise
        except Exception as error:  # noqa: BLE001  # of the SDK: each is told in our words
            self._check()
            raise self._translated(error) from None
        self._late = 0
        return answer

    async def aclose(self) -> None:
        """End the session, and the server where it is a program; takes some seconds at most."""
        self._allowance.fail(SearchResult.UNAVAILABLE, "the session was closed")
        if not self._ready.done():
            self._task.cancel()
        await asyncio.wait({self._task}, timeout=_CLOSE_S)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_CLOSE_S)

    def _check(self) -> None:
        if self.fault is not None:
            # A new one each time: an exception that is raised again grows by its traceback.
            raise SourceError(self.fault.result, str(self.fault))

    def _forget(self, request: asyncio.Future[Any]) -> None:
        self._requests.discard(request)
        self._allowance.end_call()
        if not request.cancelled():
            request.exception()  # looked at, or asyncio would log it with its text

    async def _run(self, transport: Transport) -> None:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(_CONNECT_S):
                    await self._connect(stack, transport)
                self._ready.set_result(None)
                await self._allowance.ended.wait()
        except TimeoutError:
            self._allowance.fail(SearchResult.TIMEOUT, f"the server was not ready within {_CONNECT_S:.0f} s")
        except Exception as error:  # noqa: BLE001  # a session's end is told to those who wait for it
            told = self._translated(error)
            self._allowance.fail(told.result, str(told))
        finally:
            self._allowance.fail(SearchResult.UNAVAILABLE, "the session ended")
            for request in tuple(self._requests):
                request.cancel()
            if not self._ready.done():
                self._ready.set_result(None)

    async def _connect(self, stack: AsyncExitStack, transport: Transport) -> None:
        from mcp import Client, MCPError
        from mcp.client.subscriptions import SubscriptionLost
        from mcp_types import Implementation
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        self._client = await stack.enter_async_context(
            Client(
                transport(self._allowance),
                message_handler=self._notice,
                client_info=Implementation(name="truthlens", version=truthlens.__version__),
                cache=None,
            )
        )
        await self._list(self._client)
        tools = self._client.server_capabilities.tools
        if self._client.protocol_version in MODERN_PROTOCOL_VERSIONS and tools and tools.list_changed:
            # Older versions notify unasked. Who refuses to is asked for the tools again by age.
            with suppress(MCPError, SubscriptionLost, TimeoutError):
                async with asyncio.timeout(_LISTEN_S):
                    await stack.enter_async_context(self._client.listen(tools_list_changed=True))

    async def _list(self, client: Any) -> None:
        begun = time.monotonic()
        # A change that is told of meanwhile clears it again, and the list is then asked for once more.
        self._listed_at = begun
        try:
            self._tools = await offered_tools(client, self._names)
        except BaseException:
            self._listed_at = None
            raise

    async def _notice(self, message: Any) -> None:
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._listed_at = None

    def _translated(self, error: BaseException) -> SourceError:
        """Return the error in our words: what the server or the SDK wrote may hold text of others."""
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR
        from pydantic import ValidationError

        leaves = _leaves(error)
        told = next((each for each in leaves if isinstance(each, SourceError)), None)
        if told is not None:
            return told
        first = leaves[0]
        if isinstance(first, MCPError):
            if first.code in (CONNECTION_CLOSED, INVALID_REQUEST):
                # A server that was restarted does not know the session any more.
                self._allowance.fail(SearchResult.UNAVAILABLE, f"the server ended the session ({first.code})")
            result = SearchResult.BAD_RESPONSE if first.code == PARSE_ERROR else SearchResult.UNAVAILABLE
            return SourceError(result, f"the server answered with the error {first.code}")
        if isinstance(first, ValidationError):
            return SourceError(SearchResult.BAD_RESPONSE, "the answer is not of the protocol")
        return SourceError(SearchResult.UNAVAILABLE, f"no connection ({type(first).__name__})")


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in _leaves(each)]
    return [error]
