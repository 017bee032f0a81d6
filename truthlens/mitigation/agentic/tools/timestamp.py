"""The tool ``get_current_timestamp``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from truthlens.core.records.agentic_settings import ToolName
from truthlens.mitigation.agentic.tools.interfaces import BaseTool, ToolParameters, ToolResult


def _now() -> datetime:
    return datetime.now(UTC)


class TimestampTool(BaseTool):
    """Tells the time, in UTC."""

    parameters = ToolParameters

    def __init__(self, *, enabled: bool = True, now: Callable[[], datetime] = _now) -> None:
        super().__init__(
            ToolName.TIMESTAMP.value, "Tells the date and the time, in UTC.", timeout=5.0, enabled=enabled
        )
        self._now = now

    async def execute(self) -> ToolResult:  # type: ignore[override]
        """Return the time as ISO 8601 has it, to the second."""
        return self.succeeded(self._now().isoformat(timespec="seconds"))
