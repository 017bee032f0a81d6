"""The console's routes. It reads the gateway's state and never changes it.

GET  /                 status page           GET  /healthz     the process answers
GET  /exchanges/{id}   one exchange          GET  /readyz      model and policy are loaded and warm
GET  /evidence         a form for a request  GET  /metrics     Prometheus text
POST /evidence         what is its evidence  POST /v1/detect   score one answer
GET  /static/...       its style and script  POST /v1/evidence what of a request is evidence

GET, POST /login       see ``access``         GET, POST /logout
/reviews, /api/reviews see ``reviews``

Who may ask is decided before any of them: ``access``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import jinja2
import pydantic
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from truthlens.api.requests import exchange_of, read_request
from truthlens.console.access import AccessControl, AccessError, Security, refusal, signed_in
from truthlens.console.reviews import review_routes
from truthlens.console.views import ShownEvidence, shown_entry, shown_evidence
from truthlens.core.errors import BodyTooLargeError, DialectError, OverloadedError, StoppedError
from truthlens.core.json_size import check_values
from truthlens.core.limits import Limits, check
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict
from truthlens.delivery import evidence_object, format_score, verdict_object
from truthlens.pipeline import Pipeline
from truthlens.policy import Policy, PolicyHolder
from truthlens.policy.policy import DEFAULT_DECISION
from truthlens.review.queue import ReviewQueue
from truthlens.settings import Access
from truthlens.telemetry.drift import DRIFT_LIMIT
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent
from truthlens.ticket import HeldBytes

_FOLDER = Path(__file__).parent
_SHOWN = 25
_FORM_FIELDS = 2
_LONGEST_REPEATED = 200_000
_EXAMPLE = """\
{
  "messages": [
    {"role": "system", "content": "You answer questions of patients.\\n\\nContext:\\nVaccinations are given on Wednesdays."},
    {"role": "user", "content": "When can I get a vaccination?"}
  ],
  "documents": ["The clinic is open from Monday to Friday, 8:00 to 17:00."]
}
"""

_Work = Callable[[Request, Policy, bytes], Awaitable[Response]]


@dataclass(slots=True)
class Readiness:
    """What ``/readyz`` answers; the composition root keeps it up to date."""

    models: list[str] = field(default_factory=list)
    warm: bool = False
    draining: bool = False


class DetectRequest(pydantic.BaseModel):
    """Body of ``POST /v1/detect``; ``decision`` picks the plan, left out means the default one."""

    model_config = pydantic.ConfigDict(extra="forbid")

    context: list[Any] | str
    query: str = ""
    response: str
    decision: str | None = None

    @pydantic.field_validator("context")
    @classmethod
    def _texts(cls, context: list[Any] | str) -> list[str] | str:
        # One error for all items: pydantic's own would be one for each of a million.
        if not isinstance(context, str) and not all(isinstance(text, str) for text in context):
            raise ValueError("every item has to be a text")
        return context


class _Console:
    def __init__(
        self,
        *,
        policy: PolicyHolder,
        pipeline: Pipeline,
        signals: Metrics,
        recent: Recent,
        readiness: Readiness,
        addresses: Callable[[], Sequence[tuple[str, str]]],
    ) -> None:
        self._policy, self._pipeline, self._signals, self._recent = policy, pipeline, signals, recent
        self._readiness, self._addresses = readiness, addresses
        self._pages = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._pages.filters["score"] = format_score
        self._pages.globals["signed_in"] = signed_in.get

    async def index(self, _request: Request) -> Response:
        return self._page(
            "index.html.j2",
            plans=[*self._policy.current.plans, self._policy.current.default],
            recent=self._recent.entries()[:_SHOWN],
            addresses=self._addresses(),
            drifts=[drift for drift in self._signals.detectors.drift.figures() if drift.beyond],
            drift_limit=DRIFT_LIMIT,
        )

    async def exchange(self, request: Request) -> Response:
        entry = self._recent.get(request.path_params["id"])
        if entry is None:
            return self._page("gone.html.j2", status=404)
        policy = self._policy.current
        if not policy.telemetry.log_text:
            entry = entry.without_text()  # kept under a policy that allowed it
        return self._page("exchange.html.j2", entry=entry, shown=shown_entry(entry, policy.models or {}))

    def _page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        page = self._pages.get_template(template).render(state=self._state(), **values)
        return HTMLResponse(page, status_code=status)

    async def healthz(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(self, _request: Request) -> Response:
        state = self._state()
        return JSONResponse(state, status_code=200 if state["ready"] else 503)

    async def metrics(self, _request: Request) -> Response:
        return Response(self._signals.exposition(), media_type=CONTENT_TYPE_LATEST)

    async def detect(self, request: Request) -> Response:
        return await self._answer(request, self._detect, _error)

    async def evidence(self, request: Request) -> Response:
        return await self._answer(request, self._evidence, _error)

    async def evidence_form(self, request: Request) -> Response:
        if request.method != "POST":
            return self._evidence_page()
        return await self._answer(
            request,
            self._evidence_of_form,
            lambda status, why: self._evidence_page(status=status, problem=why),
        )

    async def _answer(
        self, request: Request, work: _Work, refuse: Callable[[int, str], Response]
    ) -> Response:
        """What ``work`` makes of the request's body, within the gateway's limits."""
        held = self._pipeline.held_bytes()
        try:
            # One for the whole request: the policy may be reloaded while it is read.
            policy = self._policy.current
            return await work(request, policy, await self._body(request, policy.limits, held))
        except DialectError as error:
            return refuse(422, str(error))
        except BodyTooLargeError as error:
            return refuse(413, str(error))
        except (OverloadedError, StoppedError, TimeoutError):
            return refuse(503, "too much is being checked at present; try again later")
        finally:
            held.release()

    async def _body(self, request: Request, limits: Limits, held: HeldBytes) -> bytes:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            check(len(body), limits.max_body_bytes, key="max_body_bytes")
            held.add(len(chunk))
            self._pipeline.check_room(0)
        return bytes(body)

    async def _evidence(self, request: Request, policy: Policy, body: bytes) -> Response:
        plan = _named(policy, request.query_params.get("decision"))
        shown = await self._pipeline.read(
            lambda: evidence_object(_exchange(body, plan, policy.limits)), len(body), policy.default.timeout_s
        )
        return JSONResponse(shown)

    async def _evidence_of_form(self, _request: Request, policy: Policy, body: bytes) -> Response:
        def read() -> tuple[str, Plan, ShownEvidence | str]:
            fields = _form_fields(body)
            plan, text = _named(policy, fields.get("decision") or None), fields.get("body", "")
            try:
                return text, plan, shown_evidence(_exchange(text.encode(), plan, policy.limits))
            except DialectError as error:
                return text, plan, str(error)

        text, plan, found = await self._pipeline.read(read, len(body), policy.default.timeout_s)
        if isinstance(found, str):
            return self._evidence_page(status=422, problem=found, text=text, decision=plan.decision)
        return self._evidence_page(shown=found, text=text, decision=plan.decision)

    def _evidence_page(
        self,
        *,
        status: int = 200,
        problem: str = "",
        shown: ShownEvidence | None = None,
        text: str = _EXAMPLE,
        decision: str = DEFAULT_DECISION,
    ) -> Response:
        return self._page(
            "evidence.html.j2",
            status=status,
            plans=[self._policy.current.default, *self._policy.current.plans],
            problem=problem,
            shown=shown,
            # A page that repeats megabytes is of use to nobody.
            text=text if len(text) <= _LONGEST_REPEATED else "",
            decision=decision,
        )

    async def _detect(self, _request: Request, policy: Policy, body: bytes) -> Response:
        limits = policy.limits
        try:
            asked, exchange, answer = await self._pipeline.read(
                lambda: _read(body, limits), len(body), policy.default.timeout_s
            )
        except pydantic.ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, e['loc'])) or 'body'}: {e['msg']}"
                for e in error.errors(include_url=False, include_context=False, include_input=False)
            )
            return _error(422, f"{problems}. Expected {{context: [text], query: text, response: text}}")
        plan = _named(policy, asked.decision)
        verdict = await self._pipeline.score(plan, exchange, answer)
        return JSONResponse(_detect_object(plan, verdict, exchange, answer))

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


def _named(policy: Policy, decision: str | None) -> Plan:
    """The plan of that decision, by default the default one.

    Raises:
        DialectError: There is none.
    """
    plan = policy.default if decision is None else policy.plan_named(decision)
    if plan is None:
        known = ", ".join(policy.decision_names)
        raise DialectError(f"decision: no decision of that name is loaded; known: {known}")
    return plan


def _exchange(body: bytes, plan: Plan, limits: Limits) -> Exchange:
    return exchange_of(read_request(body, None, limits), plan.evidence, limits)


def _form_fields(body: bytes) -> dict[str, str]:
    try:
        return dict(
            parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FORM_FIELDS, errors="strict")
        )
    except ValueError:
        raise DialectError("the form cannot be read; expected its fields in UTF-8") from None


def _read(body: bytes, limits: Limits) -> tuple[DetectRequest, Exchange, Answer]:
    check_values(body.decode("utf-8", "replace"), limits.max_json_values)
    asked = DetectRequest.model_validate_json(body)
    if not isinstance(asked.context, str):
        check(len(asked.context), limits.max_passages, key="max_passages")
    return asked, *_records(asked)


def _records(asked: DetectRequest) -> tuple[Exchange, Answer]:
    texts = [asked.context] if isinstance(asked.context, str) else asked.context
    passages = tuple(Passage(text, Provenance.DOCUMENTS) for text in texts if text.strip())
    exchange = Exchange(endpoint=Endpoint.CHAT, model="", query=asked.query, passages=passages)
    kind = AnswerKind.TEXT if asked.response.strip() else AnswerKind.EMPTY
    return exchange, Answer(0, kind, asked.response)


def _detect_object(plan: Plan, verdict: Verdict, exchange: Exchange, answer: Answer) -> dict[str, Any]:
    return {
        "decision": plan.decision,
        **verdict_object(verdict, text=answer.text, passages=exchange.passages),
    }


def _error(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "type": "invalid_request_error"}}, status_code=status)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, AccessError)
    return refusal(request.headers, error)


def console_app(
    *,
    policy: PolicyHolder,
    pipeline: Pipeline,
    signals: Metrics,
    recent: Recent,
    readiness: Readiness,
    addresses: Callable[[], Sequence[tuple[str, str]]] = tuple,
    access: Access | None = None,
    reviews: ReviewQueue | None = None,
) -> ASGIApp:
    """Return the console as an ASGI application.

    Args:
        policy: the policy in force.
        pipeline: scores for ``/v1/detect``.
        signals: the metrics.
        recent: the last exchanges, for the page.
        readiness: kept up to date by the composition root.
        addresses: (name, address) pairs to show on the page.
        access: who may use it; left out, anyone who reaches it by its own address may do all.
        reviews: the answers that await review; left out, that part is switched off.
    """
    console = _Console(
        policy=policy,
        pipeline=pipeline,
        signals=signals,
        recent=recent,
        readiness=readiness,
        addresses=addresses,
    )
    control = AccessControl(access or Access())
    routes = Starlette(
        routes=[
            Route("/", console.index),
            Route("/exchanges/{id}", console.exchange),
            Route("/evidence", console.evidence_form, methods=["GET", "POST"]),
            Mount("/static", StaticFiles(directory=_FOLDER / "static")),
            Route("/healthz", console.healthz),
            Route("/readyz", console.readyz),
            Route("/metrics", console.metrics),
            Route("/v1/detect", console.detect, methods=["POST"]),
            Route("/v1/evidence", console.evidence, methods=["POST"]),
            *control.routes,
            *review_routes(reviews, recent),
        ],
        exception_handlers={AccessError: _refused},
    )
    # Outermost, so that errors of the server have the headers too.
    return Security(routes, control=control)
