"""The endpoints that every process serves: probes, metrics, and scoring and evidence for programs.

GET  /healthz     the process answers              POST /v1/detect   score one answer
GET  /readyz      model and policy are loaded      POST /v1/evidence what of a request is evidence
GET  /metrics     Prometheus text                  POST /v1/ask      answer a question from sources

The pages for people are the desk's (``truthlens.desk``), which adds its routes to these. Who may ask is decided before any of
them: ``access``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from truthlens.pipeline import Pipeline
from truthlens.policy import PolicyHolder
from truthlens.process.access import AccessControl, AccessError, Security, refusal
from truthlens.process.detect_api import Api, Bodies, problem
from truthlens.process.settings import Access
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

if TYPE_CHECKING:
    from truthlens.exchange.retrieval_step import RetrievalStep
    from truthlens.process.questions.api import AskApi
    from truthlens.process.questions.service import QuestionService
    from truthlens.review.store.queue import ReviewQueue

NO_QUESTIONS = (
    "this policy answers no questions: name what can be searched under sources (docs/ask.md), and let "
    "limits.max_questions be more than 0"
)


@dataclass(slots=True)
class Readiness:
    """What ``/readyz`` answers; the composition root keeps it up to date."""

    models: list[str] = field(default_factory=list)
    warm: bool = False
    draining: bool = False


@dataclass(frozen=True, slots=True)
class WebParts:
    """What endpoints and pages are made of.

    ``pipeline`` scores for ``/v1/detect`` and the playground; ``recent`` are the last exchanges; ``addresses`` gives (name,
    address) pairs to show; ``access`` says who may ask (left out, anyone who reaches the process by its own address);
    ``reviews_waiting`` gives how many reviews wait, ``None`` where that is not known; ``reviews`` is the queue, ``None``
    where it is switched off. ``questions`` gives what answers questions, asked where the policy has sources.
    ``gateway`` is False for a process that serves pages alone. ``retrieval`` gives what searches the policy's
    sources, ``None`` where no policy had any.
    """

    policy: PolicyHolder
    pipeline: Pipeline
    signals: Metrics
    recent: Recent
    readiness: Readiness
    addresses: Callable[[], Sequence[tuple[str, str]]] = tuple
    access: Access | None = None
    reviews_waiting: Callable[[], int | None] | None = None
    reviews: ReviewQueue | None = None
    questions: Callable[[], Awaitable[QuestionService]] | None = None
    gateway: bool = True
    retrieval: Callable[[], RetrievalStep | None] | None = None


WebApp = Callable[[WebParts], ASGIApp]


class Endpoints:
    """What probes, Prometheus and programs ask for."""

    def __init__(self, parts: WebParts) -> None:
        self._parts = parts
        self.bodies = Bodies(parts.policy, parts.pipeline)
        self.api = Api(self.bodies, parts.pipeline)
        self._ask_api: AskApi | None = None
        self.routes: tuple[BaseRoute, ...] = (
            Route("/healthz", self._healthz),
            Route("/readyz", self._readyz),
            Route("/metrics", self._metrics),
            Route("/v1/detect", self.api.detect, methods=["POST"]),
            Route("/v1/evidence", self.api.evidence, methods=["POST"]),
            Route("/v1/ask", self.ask, methods=["POST"]),
        )

    async def ask(self, request: Request) -> Response:
        """Answer a question from the policy's sources, and check the answer."""
        parts, policy = self._parts, self._parts.policy.current
        if parts.questions is None or not policy.sources or not policy.limits.max_questions:
            return problem(409, NO_QUESTIONS, code="not-configured")
        if parts.readiness.draining:
            return problem(503, "the process is stopping; ask another one", code="stopping")
        questions = await parts.questions()
        if self._ask_api is None:
            # Only a process that is asked something imports it.
            from truthlens.process.questions.api import AskApi

            self._ask_api = AskApi(self.bodies, questions)
        return await self._ask_api.ask(request)

    def state(self) -> dict[str, Any]:
        """Return what ``/readyz`` says."""
        parts = self._parts
        policy, error = parts.policy.current, parts.policy.last_error
        return {
            "ready": parts.readiness.warm and not parts.readiness.draining,
            "models": list(parts.readiness.models),
            "policy": {
                "version": policy.version,
                "decisions": len(policy.plans),
                "last_error": str(error) if error else None,
            },
            "warnings": [warning.render() for warning in policy.warnings],
        }

    async def _healthz(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _readyz(self, _request: Request) -> Response:
        state = self.state()
        return JSONResponse(state, status_code=200 if state["ready"] else 503)

    async def _metrics(self, request: Request) -> Response:
        # The library's own negotiation fails on versions that are no numbers.
        wanted = OPENMETRICS.partition(";")[0] in request.headers.get("accept", "")
        text = self._parts.signals.exposition(openmetrics=wanted)
        return Response(text, media_type=OPENMETRICS if wanted else CONTENT_TYPE_LATEST)


def endpoints_app(parts: WebParts) -> ASGIApp:
    """Return the endpoints alone as an ASGI application: what a sidecar serves."""
    return guarded(Endpoints(parts).routes, AccessControl(parts.access or Access()), pages=False)


def guarded(routes: Sequence[BaseRoute], control: AccessControl, *, pages: bool) -> ASGIApp:
    """Return ``routes`` behind ``control``; with ``pages`` browsers see refusals as pages and are sent to the login."""

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, AccessError)
        return refusal(request.headers, error, pages=pages)

    app = Starlette(routes=routes, exception_handlers={AccessError: refused})
    # Outermost, so that errors of the server have the headers too.
    return Security(app, control=control, pages=pages)
