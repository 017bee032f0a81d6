"""The console's routes. It reads the gateway's state and never changes it.

GET  /                 status page               GET  /healthz     the process answers
GET  /exchanges/{id}   one exchange              GET  /readyz      model and policy are loaded and warm
GET  /decisions        thresholds and scores     GET  /metrics     Prometheus text
GET  /playground       a form for an answer      POST /v1/detect   score one answer
POST /playground       what is found in it       POST /v1/evidence what of a request is evidence
GET  /evidence         a form for a request      GET  /static/...  styles and scripts
POST /evidence         what is its evidence      GET, POST /login, /logout   see ``access``
     /reviews, /api/reviews   see ``reviews``

Who may ask is decided before any of them: ``access``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from truthlens.console.access import AccessControl, AccessError, Security, refusal
from truthlens.console.api import Api, Bodies
from truthlens.console.decisions import DecisionsPage
from truthlens.console.evidence_page import EvidencePage
from truthlens.console.overview import Overview
from truthlens.console.pages import FOLDER, Pages
from truthlens.console.playground import Playground
from truthlens.console.reviews import review_routes
from truthlens.console.reviews.thresholds import ThresholdsPage
from truthlens.console.views import shown_entry
from truthlens.pipeline import Pipeline
from truthlens.policy import PolicyHolder
from truthlens.review.store.queue import ReviewQueue
from truthlens.settings import Access
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent


@dataclass(slots=True)
class Readiness:
    """What ``/readyz`` answers; the composition root keeps it up to date."""

    models: list[str] = field(default_factory=list)
    warm: bool = False
    draining: bool = False


class _Console:
    """What probes, Prometheus and the page of one exchange ask for."""

    def __init__(
        self, *, policy: PolicyHolder, signals: Metrics, recent: Recent, readiness: Readiness
    ) -> None:
        self._policy, self._signals, self._recent, self._readiness = policy, signals, recent, readiness
        self.pages = Pages(self._state)

    async def exchange(self, request: Request) -> Response:
        entry = self._recent.get(request.path_params["id"])
        if entry is None:
            return self.pages.page(request, "gone.html.j2", status=404)
        policy = self._policy.current
        if not policy.telemetry.log_text:
            entry = entry.without_text()  # kept under a policy that allowed it
        return self.pages.page(
            request, "exchange.html.j2", entry=entry, shown=shown_entry(entry, policy.models or {})
        )

    async def healthz(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(self, _request: Request) -> Response:
        state = self._state()
        return JSONResponse(state, status_code=200 if state["ready"] else 503)

    async def metrics(self, _request: Request) -> Response:
        return Response(self._signals.exposition(), media_type=CONTENT_TYPE_LATEST)

    def _state(self) -> dict[str, Any]:
        policy, error = self._policy.current, self._policy.last_error
        return {
            "ready": self._readiness.warm and not self._readiness.draining,
            "models": list(self._readiness.models),
            "policy": {
                "version": policy.version,
                "decisions": len(policy.plans),
                "last_error": str(error) if error else None,
            },
            "warnings": [warning.render() for warning in policy.warnings],
        }


def console_app(
    *,
    policy: PolicyHolder,
    pipeline: Pipeline,
    signals: Metrics,
    recent: Recent,
    readiness: Readiness,
    addresses: Callable[[], Sequence[tuple[str, str]]] = tuple,
    access: Access | None = None,
    reviews_waiting: Callable[[], int | None] | None = None,
    reviews: ReviewQueue | None = None,
) -> ASGIApp:
    """Return the console as an ASGI application.

    Args:
        policy: the policy in force.
        pipeline: scores for ``/v1/detect`` and the playground.
        signals: the metrics.
        recent: the last exchanges, for the page.
        readiness: kept up to date by the composition root.
        addresses: (name, address) pairs to show on the page.
        access: who may use it; left out, anyone who reaches it by its own address may do all.
        reviews_waiting: gives how many reviews wait, ``None`` where that is not known; left out, the first page says
            nothing of reviews.
        reviews: the answers that await review; left out, the pages say that the queue is switched off.
    """
    console = _Console(policy=policy, signals=signals, recent=recent, readiness=readiness)
    pages, bodies = console.pages, Bodies(policy, pipeline)
    api = Api(bodies, pipeline)
    overview = Overview(pages, policy, signals, recent, addresses=addresses, reviews_waiting=reviews_waiting)
    control = AccessControl(access or Access())
    form = ["GET", "POST"]
    routes = Starlette(
        routes=[
            Route("/", overview.page),
            Route("/exchanges/{id}", console.exchange),
            Route("/decisions", DecisionsPage(pages, policy, signals).page),
            Route("/playground", Playground(bodies, pages, pipeline, policy).page, methods=form),
            Route("/evidence", EvidencePage(bodies, pages, pipeline, policy).page, methods=form),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
            Route("/healthz", console.healthz),
            Route("/readyz", console.readyz),
            Route("/metrics", console.metrics),
            Route("/v1/detect", api.detect, methods=["POST"]),
            Route("/v1/evidence", api.evidence, methods=["POST"]),
            *control.routes,
            Route("/reviews/thresholds", ThresholdsPage(pages, policy, reviews).page),
            *review_routes(reviews, pages, recent),
        ],
        exception_handlers={AccessError: _refused},
    )
    # Outermost, so that errors of the server have the headers too.
    return Security(routes, control=control)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, AccessError)
    return refusal(request.headers, error)
