"""The options of an MCP server and of a tool that may be called there."""

from __future__ import annotations

from typing import Annotated, Self
from urllib.parse import urlsplit

import pydantic
from pydantic import Field

VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
ToolName = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_./-]+$")]
Pin = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class McpServerOptions(pydantic.BaseModel):
    """Where an MCP server is: a program that is started here (``command``), or an address (``url``)."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    command: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)] | None = Field(
        default=None, description="Program and arguments of a server that speaks over stdio."
    )
    url: str | None = Field(
        default=None, description="Address of a server that speaks streamable HTTP, http or https."
    )
    env: tuple[VariableName, ...] = Field(
        default=(), description="Environment variables that the program gets besides PATH and HOME."
    )
    api_key_env: VariableName | None = Field(
        default=None, description="Environment variable with the bearer token that `url` is asked with."
    )

    @pydantic.model_validator(mode="after")
    def _check_server(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("write one of `command` (a program, over stdio) and `url` (streamable HTTP)")
        if self.command is not None:
            if self.api_key_env is not None:
                raise ValueError("`api_key_env` belongs to `url`; a program gets its key by `env`")
            if any("\0" in word for word in self.command):
                raise ValueError("`command` contains a NUL character")
        if self.url is not None:
            if self.env:
                raise ValueError("`env` belongs to `command`; a server at a `url` gets no environment")
            parts = urlsplit(self.url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("`url` must begin with http:// or https:// and name a host")
            if parts.username is not None or parts.password is not None:
                raise ValueError("`url` must hold no password; name its variable under `api_key_env`")
        return self


class McpToolRule(pydantic.BaseModel):
    """A tool that may be called.

    ``read_only`` demands that the server calls it so (``readOnlyHint``). ``pin`` is the only fingerprint
    with which it is called; without one, the fingerprint that this process saw first. A tool with a schema of
    more than ``most_schema_chars`` is refused, because a model could not be shown it.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    name: ToolName
    read_only: bool = True
    pin: Pin | None = None
    most_schema_chars: int | None = None
