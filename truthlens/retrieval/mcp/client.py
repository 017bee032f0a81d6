"""The client of one MCP server, of which only listed tools are called."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import structlog

from truthlens.core.deadline import Deadline
from truthlens.core.errors import DetectorError
from truthlens.core.records.retrieval import SearchResult
from truthlens.retrieval.interfaces import SourceError, WrongArgumentsError
from truthlens.retrieval.mcp.allowance import Allowance
from truthlens.retrieval.mcp.http import http_transport
from truthlens.retrieval.mcp.options import McpServerOptions, McpToolRule
from truthlens.retrieval.mcp.output import ToolOutput, read_output
from truthlens.retrieval.mcp.session import McpSession
from truthlens.retrieval.mcp.stdio import stdio_transport
from truthlens.retrieval.mcp.tools import OfferedTool

log = structlog.get_logger("truthlens.retrieval")

_LIST_AGE_S = 60.0
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 60.0


class McpClient:
    """Calls the listed tools of one server, and no others.

    The connection is opened with the first call and kept. After it ended it is opened again, no sooner than
    after a pause that doubles from half a second to a minute until a call succeeds.

    A tool is refused that the server does not offer or does not call read-only (unless its rule allows
    that), and one whose name, description or schema differ from the rule's pin or, without one, from what
    this object saw first. The latter stays refused for as long as this object lives.

    Args:
        name: what logs call the server.
        server: where it is.
        rules: the tools that may be called.
        environ: where keys and the variables of a program come from.
        folder: in which a program starts.
        most_calls: calls at once; further ones wait.
        clock: seconds, monotonic.

    Raises:
        DetectorError: the SDK is not installed, or a variable that the options name is not set.
    """

    def __init__(
        self,
        name: str,
        server: McpServerOptions,
        rules: Sequence[McpToolRule],
        *,
        environ: Mapping[str, str],
        folder: Path,
        most_calls: int = 8,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _import_sdk(name)
        self._name = name
        self._transport = _transport(name, server, environ, folder)
        self._rules = {rule.name: rule for rule in rules}
        self._clock = clock
        self._most_calls = most_calls
        self._slots = asyncio.Semaphore(most_calls)
        self._session: McpSession | None = None
        self._failures = 0
        self._not_before = 0.0
        self._closed = False
        self._first_seen: dict[str, str] = {}
        self._changed: dict[str, str] = {}
        self._refused: dict[str, str] = {}

    async def tools(self, *, deadline: Deadline) -> tuple[OfferedTool, ...]:
        """Return the listed tools that can be called now; those that are refused are named in the log.

        Raises:
            SourceError: the server cannot be asked.
        """
        session = await self._open(deadline)
        offered = await session.tools(most_age_s=_LIST_AGE_S, deadline=deadline)
        self._failures = 0
        return tuple(offered[name] for name, rule in self._rules.items() if not self._refusal(rule, offered))

    async def call(self, name: str, arguments: Mapping[str, Any], *, deadline: Deadline) -> ToolOutput:
        """Return what the tool gives for ``arguments``; at most a million characters.

        It can be cancelled at any time; the session with the server goes on.

        Raises:
            WrongArgumentsError: ``refused``: the arguments do not fit the tool's schema.
            SourceError: ``refused`` (the tool), ``timeout``, ``overloaded`` (all calls were taken until the
                deadline), ``bad-response`` or ``unavailable``.
        """
        rule = self._rules.get(name)
        if rule is None:
            raise SourceError(SearchResult.REFUSED, "the tool is not among those that may be called")
        try:
            async with asyncio.timeout(deadline.remaining_s):
                await self._slots.acquire()
        except TimeoutError:
            raise SourceError(SearchResult.OVERLOADED, "all calls were taken until the deadline") from None
        try:
            session = await self._open(deadline)
            offered = await session.tools(most_age_s=_LIST_AGE_S, deadline=deadline)
            if refusal := self._refusal(rule, offered):
                raise SourceError(SearchResult.REFUSED, refusal)
            if problem := offered[name].arguments_check.problem(arguments):
                raise WrongArgumentsError(problem)
            result = await session.call(name, arguments, deadline=deadline)
        finally:
            self._slots.release()
        self._failures = 0
        return read_output(result)

    async def aclose(self) -> None:
        """End the session; nothing can be called afterwards."""
        self._closed = True
        if self._session is not None:
            await self._session.aclose()

    async def _open(self, deadline: Deadline) -> McpSession:
        session = self._session
        if session is not None and session.fault is not None:
            self._failures += 1
            pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(self._failures - 1, 10))
            self._not_before = self._clock() + pause
            log.warning(
                "a session with an MCP server ended",
                server=self._name,
                result=session.fault.result.value,
                error=str(session.fault),
                again_in_s=pause,
            )
            # Its own task ends what is left of it.
            session = self._session = None
        if self._closed:
            raise SourceError(SearchResult.UNAVAILABLE, "the client is closed")
        if session is None:
            if self._clock() < self._not_before:
                raise SourceError(SearchResult.UNAVAILABLE, "the server failed and is not asked again yet")
            session = self._session = McpSession(
                self._transport, self._rules, most_requests=2 * self._most_calls
            )
        await session.ready(deadline)
        return session

    def _refusal(self, rule: McpToolRule, offered: Mapping[str, OfferedTool]) -> str:
        tool = offered.get(rule.name)
        if tool is None:
            reason = f"the server offers no tool {rule.name!r}"
        elif rule.read_only and not tool.read_only:
            reason = (
                f"the server does not call the tool {rule.name!r} read-only; `read_only: false` allows it"
            )
        elif rule.most_schema_chars is not None and tool.schema_chars > rule.most_schema_chars:
            most = rule.most_schema_chars
            reason = f"the schema of the tool {rule.name!r} is longer than {most} characters"
        else:
            reason = self._change(rule, tool.fingerprint)
        if reason != self._refused.get(rule.name, ""):
            self._refused[rule.name] = reason
            if reason:
                log.warning("a tool of an MCP server is refused", server=self._name, reason=reason)
        return reason

    def _change(self, rule: McpToolRule, seen: str) -> str:
        if rule.pin is not None:
            if seen == rule.pin:
                return ""
            return f"the tool {rule.name!r} has the hash {seen}, and its pin is {rule.pin}"
        if seen != self._first_seen.setdefault(rule.name, seen):
            self._changed.setdefault(rule.name, seen)
        if rule.name not in self._changed:
            return ""
        return (
            f"the tool {rule.name!r} changed: its hash was {self._first_seen[rule.name]} and became "
            f"{self._changed[rule.name]}; read it, then restart or reload the policy, or write its `pin`"
        )


def _import_sdk(name: str) -> None:
    """Import the SDK now, for it takes a while, and not in a search."""
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise DetectorError(
            f"{name!r} needs the library {error.name!r}; install it: pip install 'truthlens[mcp]'"
        ) from error


def _transport(
    name: str, server: McpServerOptions, environ: Mapping[str, str], folder: Path
) -> Callable[[Allowance], AbstractAsyncContextManager[tuple[Any, Any]]]:
    if server.command is None:
        assert server.url is not None
        key = None if server.api_key_env is None else _variable(name, server.api_key_env, environ)
        return lambda allowance: http_transport(str(server.url), key=key, allowance=allowance)
    own = {each: environ[each] for each in ("PATH", "HOME") if each in environ}
    own |= {each: _variable(name, each, environ) for each in server.env}
    command = server.command
    return lambda allowance: stdio_transport(command, environ=own, folder=folder, allowance=allowance)


def _variable(name: str, variable: str, environ: Mapping[str, str]) -> str:
    if not environ.get(variable):
        raise DetectorError(f"{name!r} needs the environment variable {variable}, which is not set")
    return environ[variable]
