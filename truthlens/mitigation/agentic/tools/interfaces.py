"""Define what a tool is, what it returns, and how it is run: validated, timed, retried and bounded.

What a tool gives is data of others. It is cut to ``bounds`` before anything reads it.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar

import pydantic

from truthlens.mitigation.agentic.tools.bounds import bounded, reasons

WRONG_PARAMETERS = "wrong-parameters"
TIMEOUT = "timeout"

# Behind the n-th failed try, n times as long.
_WAIT_S = 0.1


class ToolError(Exception):
    """A tool gives no result; the message, for the model that asked, holds no text of a document or a key.

    Args:
        code: of the reason, for steps and metrics.
        message: what the model can do about it.
        transient: whether a second try may succeed.
    """

    def __init__(self, code: str, message: str = "", *, transient: bool = False) -> None:
        super().__init__(message or code)
        self.code = code
        self.transient = transient


class ToolParameters(pydantic.BaseModel):
    """Base of the parameters of tools: unknown ones are refused."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What one use of a tool came to.

    ``data`` is a ``Retrieved`` of a search, else a text; ``None`` where it failed. ``execution_time`` in
    seconds, all tries included. ``metadata`` holds figures and codes, never text of others.
    """

    tool_name: str
    success: bool
    data: Any = None
    error: str | None = None
    execution_time: float = 0.0
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def as_dict(self) -> dict[str, Any]:
        """Return the result under the names of the source."""
        return {**asdict(replace(self, metadata={})), "metadata": dict(self.metadata)}


class BaseTool(ABC):
    """A tool that a model may ask for.

    Args:
        name: what the model calls it by.
        description: shown to the model.
        timeout: seconds that one use may take, its retries included.
        retry_count: further tries where one fails.
        enabled: whether it may be used.
    """

    parameters: ClassVar[type[pydantic.BaseModel]]
    gives_evidence = False
    """Whether its results come from a source, and are not made of what the model gave to it."""

    def __init__(
        self, name: str, description: str, timeout: float = 30.0, retry_count: int = 2, enabled: bool = True
    ) -> None:
        self.name = name
        self.description = description
        self.timeout = timeout
        self.retry_count = retry_count
        self.enabled = enabled

    @property
    def schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of its parameters."""
        return self.parameters.model_json_schema()

    @abstractmethod
    async def execute(self, **kwargs: Any) -> ToolResult:
        """Return the result of one try with valid parameters. It can be cancelled at any time.

        Raises:
            ToolError: there is none. Any other exception counts as one that may pass.
        """

    async def execute_with_retry(self, /, **kwargs: Any) -> ToolResult:
        """Return the result, a failed one for wrong parameters, a timeout or failed tries; never raises."""
        began = time.monotonic()
        tries = 0
        try:
            given = dict(self.parameters.model_validate(kwargs))
            async with asyncio.timeout(self.timeout):
                while True:
                    tries += 1
                    failure = ToolError("failed")
                    try:
                        result = await self.execute(**given)
                        result = replace(result, data=bounded(result.data))
                        break
                    except ToolError as error:
                        failure = error
                    except Exception as error:  # noqa: BLE001 - a tool may be anybody's
                        failure = ToolError("failed", type(error).__name__, transient=True)
                    if not failure.transient or tries > self.retry_count:
                        result = self.failed(failure.code, str(failure))
                        break
                    await asyncio.sleep(_WAIT_S * tries)
        except pydantic.ValidationError as error:
            result = self.failed(WRONG_PARAMETERS, f"wrong parameters: {reasons(error)}")
        except TimeoutError:
            result = self.failed(TIMEOUT, f"it took more than {self.timeout:g} seconds")
        return replace(
            result,
            execution_time=time.monotonic() - began,
            metadata=MappingProxyType({**result.metadata, "tries": tries}),
        )

    def succeeded(self, data: Any, **metadata: Any) -> ToolResult:
        """Return a result with its data."""
        return ToolResult(self.name, success=True, data=data, metadata=MappingProxyType(metadata))

    def failed(self, code: str, error: str) -> ToolResult:
        """Return a result without data; ``code`` stands under ``code`` of its metadata."""
        return failed_use(self.name, code, error)


def failed_use(tool_name: str, code: str, error: str) -> ToolResult:
    """Return the result of a use that gave nothing, also of a tool that does not exist."""
    return ToolResult(tool_name, success=False, error=error, metadata=MappingProxyType({"code": code}))
