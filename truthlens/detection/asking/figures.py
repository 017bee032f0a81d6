"""Ask for log probabilities, and for as many as a model's server gives."""

from __future__ import annotations

from truthlens.core.errors import CallError
from truthlens.core.records.calls import Ask, Completion, ModelRequest
from truthlens.core.records.enums import Endpoint
from truthlens.prompts.model_requests import may_be_a_member, with_members

_STEPS = (20, 5, 0)
"""How many of the likeliest tokens are asked for, the next where a server refuses; 0 is the token that was said alone."""


class Figures:
    """Remembers what the servers of models refused, and does not try it again.

    Args:
        most: how many of the likeliest tokens are asked for at most.
    """

    def __init__(self, most: int = _STEPS[0]) -> None:
        self._steps = tuple(dict.fromkeys(min(each, most) for each in _STEPS))
        self._step: dict[str, int] = {}

    def forget(self, model: str) -> None:
        """Try everything again of a model's server."""
        self._step.pop(model, None)

    async def ask(self, request: ModelRequest, ask: Ask) -> Completion:
        """Return the reply, with log probabilities where the server gives any.

        Raises:
            CallError: it was refused for another reason, or failed.
        """
        model = request.model
        while True:
            place = self._step.get(model, 0)
            top = self._steps[place] if place < len(self._steps) else None
            try:
                return await ask(with_members(request, _members(request.endpoint, top)))
            except CallError as error:
                if top is None or not may_be_a_member(error):
                    # Refused for another reason: nothing was learnt of the figures.
                    if top is None:
                        self.forget(model)
                    raise
                # Others that ask at the same time have learnt the same.
                self._step[model] = max(self._step.get(model, 0), place + 1)


def _members(endpoint: Endpoint, top: int | None) -> dict[str, object]:
    if top is None:
        return {}
    if endpoint is Endpoint.COMPLETIONS:
        return {"logprobs": max(top, 1)}
    return {"logprobs": True, "top_logprobs": top} if top else {"logprobs": True}
