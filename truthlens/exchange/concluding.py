"""Conclude exchanges: metrics, the last exchanges, the review queue, the log line, and the headers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from truthlens.core.records.exchange import Exchange
from truthlens.core.records.outcome import Outcome
from truthlens.delivery import headers
from truthlens.exchange.ticket import Conclusion, Ticket
from truthlens.telemetry.logs import log_exchange
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

if TYPE_CHECKING:
    from truthlens.review.intake.intake import ReviewIntake


class Concluder:
    """Writes down what became of exchanges; ``reviews`` queues some for people, ``None`` for no queue."""

    def __init__(self, signals: Metrics, recent: Recent, reviews: ReviewIntake | None) -> None:
        self._signals, self._recent, self._reviews = signals, recent, reviews

    def chosen(self, ticket: Ticket, outcome: Outcome) -> Outcome:
        """Return the outcome with the id under which it is queued for review, where it is."""
        return outcome if self._reviews is None else self._reviews.chosen(outcome, ticket.policy.review)

    def conclude(self, ticket: Ticket, outcome: Outcome, exchange: Exchange | None) -> Conclusion:
        """Write down ``outcome`` and return the end of the exchange; what the ticket holds is released."""
        ticket.held.release()
        request_s = ticket.request_s
        response_s = max(0.0, outcome.latency_s - request_s)
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
        log_exchange(
            outcome,
            endpoint=ticket.endpoint,
            request_id=ticket.request_id,
            passages=len(exchange.passages) if exchange else 0,
            stream=exchange.stream if exchange else False,
            request_s=request_s,
            response_s=response_s,
        )
        return Conclusion(outcome, headers(outcome))
