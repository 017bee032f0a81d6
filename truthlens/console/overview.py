"""The first page: is it healthy, what is flagged, what is unchecked and why, what it costs; then the last exchanges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response

from truthlens.console.pages import Pages
from truthlens.console.reasons import described
from truthlens.policy import PolicyHolder
from truthlens.telemetry.drift import DRIFT_LIMIT
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

_SHOWN = 25


class Overview:
    """``GET /``; ``reviews_waiting`` gives how many reviews wait, ``None`` where that is not known."""

    def __init__(
        self,
        pages: Pages,
        policy: PolicyHolder,
        signals: Metrics,
        recent: Recent,
        *,
        addresses: Callable[[], Sequence[tuple[str, str]]],
        reviews_waiting: Callable[[], int | None] | None,
    ) -> None:
        self._pages, self._policy, self._signals, self._recent = pages, policy, signals, recent
        self._addresses, self._reviews_waiting = addresses, reviews_waiting

    async def page(self, request: Request) -> Response:
        """Return the page."""
        policy, hour = self._policy.current, self._signals.last_hour.figures()
        return self._pages.page(
            request,
            "index.html.j2",
            plans=[*policy.plans, policy.default],
            recent=self._recent.entries()[:_SHOWN],
            addresses=self._addresses(),
            drifts=[drift for drift in self._signals.detectors.drift.figures() if drift.beyond],
            drift_limit=DRIFT_LIMIT,
            hour=hour,
            unchecked=[(reason, described(reason), count) for reason, count in hour.unchecked.items()],
            reviews=self._reviews_waiting() if self._reviews_waiting is not None else None,
        )
