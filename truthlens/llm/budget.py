"""Bound the tokens and the money that the extra calls of one exchange may use.

A bound on what is begun, not on what a backend does: calls in flight at the same time, and backends that
write more than expected, can go past it by what they write; after that nothing more is begun.
"""

from __future__ import annotations

from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, Price, Usage


class Budget:
    """What the calls of one exchange may still use. Not for several threads.

    Args:
        max_tokens: of prompts and completions together.
        max_cost_usd: of models that have a price; ``None`` for no bound.
    """

    def __init__(self, max_tokens: int, max_cost_usd: float | None = None) -> None:
        self._max_tokens = max_tokens
        self._max_cost_usd = max_cost_usd
        self._tokens = 0
        self._cost_usd = 0.0

    @property
    def tokens_left(self) -> int:
        """Tokens that are neither used nor reserved, never negative."""
        return max(0, self._max_tokens - self._tokens)

    @property
    def cost_left_usd(self) -> float | None:
        """Money that is neither spent nor reserved, never negative; ``None`` where it is not bounded."""
        return None if self._max_cost_usd is None else max(0.0, self._max_cost_usd - self._cost_usd)

    def max_completion_tokens_left(self, prompt_tokens: int, price: Price | None) -> int:
        """Return how long a completion may be after a prompt of ``prompt_tokens``, never negative."""
        tokens = self.tokens_left - prompt_tokens
        money = self.cost_left_usd
        if price is not None and money is not None and price.output > 0:
            tokens = min(tokens, int((money * 1e6 - prompt_tokens * price.input) / price.output))
        return max(0, tokens)

    def reserve(self, estimate: Usage, price: Price | None) -> Reservation:
        """Reserve the room for a call, to be settled when it has ended.

        Raises:
            CallError: ``budget``: the estimate does not fit into what is left.
        """
        if estimate.total_tokens > self.tokens_left:
            raise CallError(
                CallFailure.BUDGET,
                f"about {estimate.total_tokens} tokens are needed, {self.tokens_left} are left",
            )
        money = self.cost_left_usd
        if money is not None and price is not None and estimate.cost_usd(price) > money:
            raise CallError(
                CallFailure.BUDGET,
                f"about {estimate.cost_usd(price):.6f} USD are needed, {money:.6f} are left",
            )
        self._count(estimate, price, +1)
        return Reservation(self, estimate, price)

    def _count(self, usage: Usage, price: Price | None, sign: int) -> None:
        self._tokens += sign * usage.total_tokens
        if price is not None:
            self._cost_usd += sign * usage.cost_usd(price)


class Reservation:
    """A part of a budget that is held for one call."""

    def __init__(self, budget: Budget, estimate: Usage, price: Price | None) -> None:
        self._budget = budget
        self._held = estimate
        self._price = price
        self._settled = False

    def settle(self, actual: Usage) -> None:
        """Put what was really used in the place of the estimate.

        Raises:
            RuntimeError: it was settled before.
        """
        if self._settled:
            raise RuntimeError("a reservation is settled once")
        self._settled = True
        self._budget._count(self._held, self._price, -1)  # noqa: SLF001 - two halves of one account
        self._budget._count(actual, self._price, +1)  # noqa: SLF001
