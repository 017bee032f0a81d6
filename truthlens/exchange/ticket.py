"""What travels with an exchange through the gateway and the pipeline. Pure: no clock, no I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from truthlens.api.answer_citations import awaits_citations
from truthlens.api.paths import RequestKind
from truthlens.api.requests import LazyRequest
from truthlens.core.errors import OverloadedError
from truthlens.core.limits import Limits
from truthlens.core.own_headers import DETAILS_HEADER
from truthlens.core.records.enums import Endpoint, OnUnchecked, Reason
from truthlens.core.records.exchange import Exchange, RequestHead
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import unchecked
from truthlens.delivery.warning import lacks_check
from truthlens.policy.policy import Policy
from truthlens.telemetry.tracing import ExchangeTrace

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class HeldBytes:
    """Bytes that are counted as held until they are released, once."""

    def __init__(self, hold: Callable[[int], None] | None = None) -> None:
        self._size = 0
        self._hold = hold

    def add(self, size: int) -> None:
        """Count more of them."""
        if size and self._hold is not None:
            self._size += size
            self._hold(size)

    def release(self) -> None:
        """Count them no longer."""
        if self._size and self._hold is not None:
            self._hold(-self._size)
        self._hold = None


class HeldTotal:
    """The bytes of all bodies that are held at one time; ``show`` is told of each change."""

    def __init__(self, show: Callable[[int], None]) -> None:
        self._bytes = 0
        self._show = show

    def hold(self, size: int) -> None:
        """Count ``size`` more bytes, or fewer where it is negative."""
        self._bytes += size
        self._show(self._bytes)

    def part(self) -> HeldBytes:
        """Return what counts the bytes of one exchange in this."""
        return HeldBytes(self.hold)

    def has_room(self, limits: Limits, size: int = 0) -> bool:
        """Return whether ``size`` more bytes may be held."""
        return self._bytes + size <= limits.max_held_bytes

    def check_room(self, limits: Limits, size: int) -> None:
        """Raise ``OverloadedError`` where ``size`` more bytes may not be held."""
        if not self.has_room(limits, size):
            raise OverloadedError("limits.max_held_bytes is reached")


@dataclass(frozen=True, slots=True)
class Ticket:
    """What is known of an exchange after its request phase.

    ``reason`` is set where the answer will not be scored. The policy snapshot is the one that the exchange began
    with: a reload does not touch it. ``plain`` is the decoded request, kept only for modes that ask models (``held``
    counts it while it is), and ``model`` the one that answers. ``retrieved`` is the exchange with the evidence that was retrieved for its question.
    ``trace`` lasts as long as the exchange.
    """

    policy: Policy
    head: RequestHead
    kind: RequestKind
    plan: Plan
    reading: LazyRequest | None = None
    reason: Reason | None = None
    request_body: bytes | None = None
    plain: bytes = b""
    held: HeldBytes = field(default_factory=HeldBytes)
    model: str = ""
    retrieved: Exchange | None = None
    request_s: float = 0.0
    trace: ExchangeTrace = field(default_factory=ExchangeTrace)

    @property
    def no_answer(self) -> bool:
        """Whether no answer of a model comes back for the request."""
        return self.kind is RequestKind.NO_ANSWER

    @property
    def endpoint(self) -> Endpoint | None:
        """The API, as far as it is known."""
        return self.kind.endpoint if self.exchange is None else self.exchange.endpoint

    @property
    def exchange(self) -> Exchange | None:
        """Query and passages, of a request that was read, with what was retrieved for it."""
        if self.retrieved is not None:
            return self.retrieved
        return self.reading.exchange if self.reading is not None else None

    @property
    def size(self) -> int:
        """Bytes of the request, as far as it was read."""
        return self.reading.size if self.reading is not None else 0

    @property
    def request_id(self) -> str:
        """Envoy's request id, if it looks like one: a client may have chosen it."""
        given = self.head.headers.get("x-request-id", "")
        return given if _REQUEST_ID.fullmatch(given) else ""

    @property
    def unread_reason(self) -> Reason | None:
        """Why an answer need not even be read: a program reads it, and it passes whatever it says."""
        exempt = self.plan.on_unchecked is not OnUnchecked.BLOCK or self.plan.exempts_calls
        return Reason.NOT_AN_ANSWER if self._is_call and exempt else None

    @property
    def stream_reason(self) -> Reason | None:
        """Why a streamed answer will not be scored, where that is known already and needs no verdict chunk and no disclaimer."""
        reason = self.not_checkable
        owes = reason is not None and lacks_check(self.plan, unchecked(reason))
        tells = (self.wants_details or owes) and self.plan.on_unchecked_for(reason) is not OnUnchecked.BLOCK
        return None if tells else reason

    @property
    def not_checkable(self) -> Reason | None:
        """Why the answer cannot be checked, as far as the request tells; ``None`` where evidence may still come."""
        exchange = self.exchange
        if exchange is None:
            return Reason.NO_CONTEXT
        if awaits_citations(exchange) and not self._is_call:
            return None
        if self.plan.lacks_evidence(exchange.not_checkable):
            return None
        return self.plan.not_checkable(exchange)

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
