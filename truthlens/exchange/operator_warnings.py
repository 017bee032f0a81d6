"""Warn operators, once each, of what would otherwise be passed over in silence."""

from __future__ import annotations

import structlog

from truthlens.core.records.exchange import RequestHead
from truthlens.policy.policy import Policy

log = structlog.get_logger("truthlens.exchange.operator_warnings")

_MOST_ROUTE_WARNINGS = 100


class OperatorWarnings:
    """What one process has warned of."""

    def __init__(self) -> None:
        self._of_mark = False
        self._route_values: set[str] = set()

    def of_unknown_route(self, policy: Policy, head: RequestHead) -> None:
        """Say once of each name on an Envoy route that the policy does not know it: it would be ignored."""
        if not head.route:
            return
        for value in policy.unknown_route_values(head):
            if value not in self._route_values and len(self._route_values) < _MOST_ROUTE_WARNINGS:
                self._route_values.add(value)
                log.warning("the Envoy route names something that the policy does not know", metadata=value)

    def of_unknown_mark(self) -> None:
        """Say once that a mark was not known: a client made it up, or another process of this fleet did."""
        if not self._of_mark:
            self._of_mark = True
            log.warning(
                "a call carries a mark that this process does not know and is assessed like any other",
                remedy="if models are reached through the gateway, give processes on all machines one"
                " --secret-file",
            )
