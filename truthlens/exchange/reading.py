"""A request whose evidence is looked for while the model is at work."""

from __future__ import annotations

from truthlens.core.plan import EvidenceRules
from truthlens.core.records import Exchange
from truthlens.exchange.chat import Request, exchange_of


class Reading:
    """The request half of an exchange: its texts are searched for evidence once, when that is first asked for.

    Args:
        request: with its texts.
        rules: what counts as evidence.
        size: bytes of the request.
    """

    def __init__(self, request: Request, rules: EvidenceRules, *, size: int) -> None:
        self.size = size
        self._unread: tuple[Request, EvidenceRules] | None = (request, rules)
        self._exchange: Exchange | None = None

    @property
    def exchange(self) -> Exchange:
        """Query and passages."""
        unread = self._unread
        if unread is not None:
            # In this order: another thread may look.
            self._exchange = exchange_of(*unread)
            self._unread = None
        assert self._exchange is not None
        return self._exchange
