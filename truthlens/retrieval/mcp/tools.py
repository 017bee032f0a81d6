"""The tools that a server offers: their records, and the fingerprint by which a changed one is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from truthlens.core.records.retrieval import SearchResult
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.mcp.arguments import ArgumentsCheck

_MOST_PAGES = 20
_MOST_SCHEMA_BYTES = 256 << 10


@dataclass(frozen=True)
class OfferedTool:
    """A tool as its server describes it.

    ``description`` and ``input_schema`` are text of others: in a prompt they stand between tags, nowhere
    else. ``read_only`` is what the server says of it.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any] = field(hash=False)
    read_only: bool = False

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of name, description and schema, in hexadecimal digits."""
        described = [self.name, self.description, self.input_schema]
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()

    @cached_property
    def schema_chars(self) -> int:
        """How long its schema is, as JSON."""
        return len(json.dumps(self.input_schema))

    @cached_property
    def arguments_check(self) -> ArgumentsCheck:
        """The check of its arguments.

        Raises:
            SourceError: its schema cannot be used.
        """
        try:
            return ArgumentsCheck(self.input_schema)
        except ValueError as error:
            raise SourceError(SearchResult.REFUSED, f"the tool {self.name!r}: {error}") from None


async def offered_tools(client: Any, names: Collection[str]) -> dict[str, OfferedTool]:
    """Return the tools of these names that the server offers now, by name.

    Raises:
        SourceError: the list has too many pages, or a schema is too large.
        Exception: what the SDK raises.
    """
    found: dict[str, OfferedTool] = {}
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            if tool.name in names:
                found[tool.name] = _offered(tool)
        cursor = page.next_cursor
        if cursor is None:
            return found
    raise SourceError(SearchResult.BAD_RESPONSE, f"the list of tools has more than {_MOST_PAGES} pages")


def _offered(tool: Any) -> OfferedTool:
    described = len(json.dumps(tool.input_schema)) + len(tool.description or "")
    if described > _MOST_SCHEMA_BYTES:
        raise SourceError(
            SearchResult.BAD_RESPONSE,
            f"the description of the tool {tool.name!r} is larger than {_MOST_SCHEMA_BYTES} bytes",
        )
    hints = tool.annotations
    return OfferedTool(
        name=tool.name,
        description=tool.description or "",
        input_schema=tool.input_schema,
        read_only=hints is not None and hints.read_only_hint is True,
    )
