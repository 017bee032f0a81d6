"""The scripted models behind ``Ask``: who answers what, what it costs, and how long it would have taken.

The verification models say what they really answered. Everything else is written by the scripts of ``editor``
and ``panel`` from the prompt that the mode wrote. Nothing waits: seconds are simulated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from bench.mitigation.data import Case
from bench.mitigation.simulation.panel import Script
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, Completion, ModelRequest, Role, Usage


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a model is: seconds a call, prompt tokens a second, completion tokens a second."""

    call_s: float = 0.2
    prompt_rate: float = 4000.0
    completion_rate: float = 60.0

    def seconds(self, usage: Usage) -> float:
        """Return how long a call takes."""
        return (
            self.call_s
            + usage.prompt_tokens / self.prompt_rate
            + usage.completion_tokens / self.completion_rate
        )


class Backend:
    """Answers the calls of one exchange; counts them.

    Args:
        case: the exchange.
        script: writes what is no real answer.
        speed: of every model.
        max_tokens: a call is refused once so many tokens were spent.
    """

    def __init__(self, case: Case, script: Script, *, speed: Speed, max_tokens: int) -> None:
        self._answers = {given.model: given.text for given in case.prompt.answers}
        self._script = script
        self._speed = speed
        self._max_tokens = max_tokens
        self.calls: list[Role] = []
        self.usage = Usage(estimated=True)

    async def __call__(self, request: ModelRequest) -> Completion:
        """Return the answer of a model.

        Raises:
            CallError: the budget is spent, or the script has nothing to say.
        """
        prompt_tokens = tokens(request.body)
        if self.usage.total_tokens + prompt_tokens > self._max_tokens:
            raise CallError(CallFailure.BUDGET)
        self.calls.append(request.role)
        text = self._answers[request.model] if request.role is Role.VERIFIER else self._script.reply(request)
        usage = Usage(prompt_tokens, -(-len(text) // 4), estimated=True)
        self.usage += usage
        await asyncio.sleep(self._speed.seconds(usage))
        if not text.strip():
            raise CallError(CallFailure.EMPTY)
        return Completion(text, request.model, "stop", usage)


def tokens(body: Mapping[str, object]) -> int:
    """Return the prompt tokens of a request: a quarter of the characters of its messages."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return -(-len(str(body.get("prompt", ""))) // 4)
    return -(-sum(len(str(message["content"])) for message in messages) // 4)
