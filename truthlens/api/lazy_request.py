"""A request whose evidence is looked for while the model is at work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from truthlens.api.requests import Request, exchange_of
from truthlens.core.limits import Limits
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.plan import EvidenceRules

_DEFAULTS = Limits()
_NO_SCOPE: Mapping[str, str] = MappingProxyType({})


class LazyRequest:
    """The request half of an exchange, whose texts are searched for evidence once, by ``read``.

    Args:
        request: with its texts.
        rules: what counts as evidence.
        limits: bounds on it.
        size: bytes of the request.
        scope: what the operator says the exchange is about.
    """

    def __init__(
        self,
        request: Request,
        rules: EvidenceRules,
        limits: Limits = _DEFAULTS,
        *,
        size: int,
        scope: Mapping[str, str] = _NO_SCOPE,
    ) -> None:
        self.size = size
        self._scope = scope
        self._unread: tuple[Request, EvidenceRules, Limits] | None = (request, rules, limits)
        self._exchange: Exchange | None = None

    def read(self) -> None:
        """Search the texts, off the event loop where they are long.

        Raises:
            BodyTooLargeError: there is more evidence than the limits allow.
            StoppedError: the result is no longer needed.
        """
        unread = self._unread
        if unread is not None:
            self._exchange = replace(exchange_of(*unread), scope=self._scope)
            self._unread = None

    def give_up(self) -> None:
        """Release the texts: they will not be searched, and there is no exchange."""
        self._unread = None

    @property
    def exchange(self) -> Exchange | None:
        """Query and passages; ``None`` where the texts were not searched (yet)."""
        return self._exchange
