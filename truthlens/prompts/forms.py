"""Ask for replies in JSON, in the strictest form that a model's server takes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from truthlens.core.errors import CallError
from truthlens.core.records.calls import Ask, Completion, ModelRequest
from truthlens.prompts.model_requests import may_be_a_member, with_members


class Structured(StrEnum):
    """How the form of a reply is asked for; ``auto`` begins with the strictest and goes down where a server refuses."""

    AUTO = "auto"
    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    NONE = "none"


_FALLBACKS = (Structured.JSON_SCHEMA, Structured.JSON_OBJECT, Structured.NONE)


class Forms:
    """Remembers what the servers of models refused, and does not try it again.

    Args:
        schema: the JSON Schema of a reply.
        mode: how it is asked for.
    """

    def __init__(self, schema: Mapping[str, object], mode: Structured = Structured.AUTO) -> None:
        self._schema, self._modes = schema, _FALLBACKS if mode is Structured.AUTO else (mode,)
        self._refused: dict[str, int] = {}

    async def ask(self, request: ModelRequest, ask: Ask) -> Completion:
        """Return the reply.

        Raises:
            CallError: it was refused for another reason, or failed.
        """
        place = self._refused.get(request.model, 0)
        while True:
            try:
                reply = await ask(with_members(request, self._members(self._modes[place])))
            except CallError as error:
                if place + 1 == len(self._modes) or not may_be_a_member(error):
                    raise
                place += 1
            else:
                self._refused[request.model] = max(place, self._refused.get(request.model, 0))
                return reply

    def _members(self, mode: Structured) -> dict[str, object]:
        if mode is Structured.NONE:
            return {}
        if mode is Structured.JSON_OBJECT:
            return {"response_format": {"type": "json_object"}}
        form = {"name": "judgement", "schema": self._schema}
        return {"response_format": {"type": "json_schema", "json_schema": form}}
