"""Conclude exchanges: metrics, the last exchanges, the review queue, the log line, and the headers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from truthlens.core.records.exchange import Exchange
from truthlens.core.records.outcome import Outcome
from truthlens.delivery import headers
from truthlens.exchange.ticket import Conclusion, Ticket
from truthlens.telemetry.logs import is_remarkable, log_exchange
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent
from truthlens.telemetry.tracing import ExchangeTrace

if TYPE_CHECKING:
    from truthlens.review.intake.intake import ReviewIntake
    from truthlens.telemetry.evaluations import Evaluations


class Concluder:
    """Writes down what became of exchanges.

    Args:
        signals: counts them.
        recent: keeps the last ones.
        reviews: queues some for people, ``None`` for no queue.
        evaluations: tells what answers are worth where traces are sent, ``None`` for nowhere.
        chance: gives a number of 0 to below 1, by which lines are sampled.
    """

    def __init__(
        self,
        signals: Metrics,
        recent: Recent,
        reviews: ReviewIntake | None,
        evaluations: Evaluations | None = None,
        *,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._signals, self._recent, self._reviews = signals, recent, reviews
        self._evaluations, self._chance = evaluations, chance

    def chosen(self, ticket: Ticket, outcome: Outcome) -> Outcome:
        """Return the outcome with the id under which it is queued for review, where it is."""
        return outcome if self._reviews is None else self._reviews.chosen(outcome, ticket.policy.review)

    def conclude(self, ticket: Ticket, outcome: Outcome, exchange: Exchange | None) -> Conclusion:
        """Write down ``outcome`` and return the end of the exchange; what the ticket holds is released."""
        ticket.held.release()
        request_s = ticket.request_s
        response_s = max(0.0, outcome.latency_s - request_s)
        outcome = replace(outcome, trace_id=ticket.trace.sent_id)
        self._signals.observe(outcome, request_s=request_s, response_s=response_s)
        if exchange is not None:
            self._signals.observe_evidence(exchange)
        self._recent.add(
            outcome,
            time=datetime.now(UTC),
            request_id=ticket.request_id,
            exchange=exchange,
            keep_text=ticket.policy.telemetry.log_text,
        )
        if self._reviews is not None and outcome.review_id is not None and exchange is not None:
            asked = ticket.head.headers
            self._reviews.queue(
                outcome, exchange, ticket.policy.review, query_id=ticket.request_id, headers=asked
            )
        telemetry = ticket.policy.telemetry
        kept = is_remarkable(outcome, seconds=request_s + response_s, slow_s=telemetry.log_slow_s)
        written = kept or self._chance() < telemetry.log_sample
        self._signals.log_lines.labels("written" if written else "sampled-out").inc()
        if written:
            log_exchange(
                outcome,
                endpoint=ticket.endpoint,
                request_id=ticket.request_id,
                passages=len(exchange.passages) if exchange else 0,
                stream=exchange.stream if exchange else False,
                request_bytes=ticket.size,
                request_s=request_s,
                response_s=response_s,
                trace=ticket.trace,
                sample=None if kept else telemetry.log_sample,
            )
        self.tell(outcome, ticket.trace, explain=telemetry.log_text)
        return Conclusion(outcome, headers(outcome))

    def tell(self, outcome: Outcome, trace: ExchangeTrace, *, explain: bool) -> None:
        """Send the evaluation of an answer, which quotes it with ``explain``, and end its trace."""
        if self._evaluations is not None:
            self._evaluations.tell(outcome, trace, explain=explain)
        trace.end(outcome)
