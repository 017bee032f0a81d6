"""What travels with an exchange through the gateway and the pipeline. Pure: no clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from truthlens.api.answer_citations import awaits_citations
from truthlens.api.lazy_request import LazyRequest
from truthlens.api.paths import Kind
from truthlens.core.own_headers import DETAILS_HEADER
from truthlens.core.records.enums import Endpoint, OnUnchecked, Reason, Streaming
from truthlens.core.records.exchange import Exchange, RequestHead
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.policy.policy import Policy


class HeldBytes:
    """Bytes that are counted as held until they are released, once."""

    def __init__(self, size: int = 0, hold: Callable[[int], None] | None = None) -> None:
        self._size = 0
        self._hold = hold
        self.add(size)

    def add(self, size: int) -> None:
        """Count more of them."""
        if self._hold is not None:
            self._size += size
            self._hold(size)

    def release(self) -> None:
        """Count them no longer."""
        if self._hold is not None:
            self._hold(-self._size)
            self._hold = None


@dataclass(frozen=True, slots=True)
class Ticket:
    """What is known of an exchange after its request phase.

    ``reason`` is set where the answer will not be scored. The policy snapshot is the one that the exchange began
    with: a reload does not touch it. ``plain`` is the decoded request, kept only for modes that ask models (``held``
    counts it while it is), and ``model`` the one that answers.
    """

    policy: Policy
    head: RequestHead
    kind: Kind
    plan: Plan
    reading: LazyRequest | None = None
    reason: Reason | None = None
    request_body: bytes | None = None
    plain: bytes = b""
    held: HeldBytes = field(default_factory=HeldBytes)
    model: str = ""
    request_s: float = 0.0

    @property
    def no_answer(self) -> bool:
        """Whether no answer of a model comes back for the request."""
        return self.kind is Kind.NO_ANSWER

    @property
    def endpoint(self) -> Endpoint | None:
        """The API, as far as it is known."""
        return self.kind.endpoint if self.exchange is None else self.exchange.endpoint

    @property
    def exchange(self) -> Exchange | None:
        """Query and passages, of a request that was read."""
        return self.reading.exchange if self.reading is not None else None

    @property
    def size(self) -> int:
        """Bytes of the request, as far as it was read."""
        return self.reading.size if self.reading is not None else 0

    @property
    def more_time_s(self) -> float | None:
        """Seconds for which Envoy is asked to wait for the conclusion, or ``None`` where its own clock will do."""
        return self.plan.override_s

    @property
    def streaming(self) -> Streaming:
        """What is done with the answer if it comes as a stream."""
        return self.plan.streaming

    @property
    def unread_reason(self) -> Reason | None:
        """Why an answer need not even be read: a program reads it, and it passes whatever it says."""
        exempt = self.plan.on_unchecked is not OnUnchecked.BLOCK or self.plan.exempts_calls
        return Reason.NOT_AN_ANSWER if self._is_call and exempt else None

    @property
    def stream_reason(self) -> Reason | None:
        """Why a streamed answer will not be scored, where that is known already and needs no verdict chunk."""
        tells = self.wants_details and self.plan.on_unchecked is not OnUnchecked.BLOCK
        return None if tells else self.not_checkable

    @property
    def not_checkable(self) -> Reason | None:
        """Why the answer cannot be checked, as far as the request tells; ``None`` where its evidence may come with it."""
        exchange = self.exchange
        if exchange is None:
            return Reason.NO_CONTEXT
        return None if awaits_citations(exchange) and not self._is_call else exchange.not_checkable

    @property
    def wants_details(self) -> bool:
        """Whether the body may carry the ``truthlens`` object: by plan, or by a header that the operator allows.

        Never where a program reads the body in place of a user.
        """
        if self._is_call:
            return False
        asked = self.head.headers.get(DETAILS_HEADER, "").strip().lower() == "spans"
        return self.plan.details or (asked and DETAILS_HEADER in self.policy.trusted_headers)

    @property
    def _is_call(self) -> bool:
        """Whether a program reads the answer and no user."""
        return self.exchange is not None and self.exchange.unchecked is Reason.NOT_AN_ANSWER


@dataclass(frozen=True, slots=True)
class Conclusion:
    """An ended exchange: the outcome, and the response headers that tell of it."""

    outcome: Outcome
    headers: Mapping[str, str]
