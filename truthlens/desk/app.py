"""The pages for people, next to the endpoints of every process. They read the gateway's state and never change it.

GET  /                 status page               GET  /evidence    a form for a request
GET  /exchanges/{id}   one exchange              POST /evidence    what is its evidence
GET  /decisions        thresholds and scores     GET  /static/...  styles and scripts
GET  /playground       a form for an answer      GET, POST /login, /logout   see ``process.access``
POST /playground       what is found in it            /reviews, /api/reviews   see ``reviews``
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from truthlens.core.errors import DialectError
from truthlens.core.records.plan import Plan
from truthlens.desk.pages import FOLDER, Pages
from truthlens.desk.playground import Playground
from truthlens.desk.reviews import review_routes
from truthlens.desk.reviews.thresholds import ThresholdsPage
from truthlens.desk.views import ShownEvidence, shown_entry, shown_evidence
from truthlens.pipeline import Pipeline
from truthlens.policy import Policy, PolicyHolder
from truthlens.policy.policy import DEFAULT_DECISION
from truthlens.process.access import AccessControl
from truthlens.process.detect_api import LONGEST_REPEATED, Bodies, evidence_of, form_fields, named
from truthlens.process.endpoints import Endpoints, WebParts, guarded
from truthlens.process.settings import Access
from truthlens.telemetry.drift import DRIFT_LIMIT
from truthlens.telemetry.score_history import BINS, ScoreFigures

# Of the drawing, in its own units.
WIDTH, HEIGHT = 500, 100
_BAR = WIDTH / BINS
_TENTHS = 10


@dataclass(frozen=True, slots=True)
class ThresholdStep:
    """One row of the table: what a threshold of ``threshold`` would flag, and the scores up to the next one."""

    threshold: float
    reaching: int
    share: float
    between: int


@dataclass(frozen=True, slots=True)
class ShownDecision:
    """A decision with its drawing; ``under`` and ``over`` are the paths of the bars below its threshold and from it on."""

    plan: Plan
    figures: ScoreFigures
    under: str
    over: str
    line: float
    steps: tuple[ThresholdStep, ...]

    @property
    def flagged_share(self) -> float:
        """The share (0..1) of scored answers that were flagged; 0 where there are none."""
        return self.figures.flagged / self.figures.scored if self.figures.scored else 0.0


EXAMPLE = """\
{
  "messages": [
    {"role": "system", "content": "You answer questions of patients.\\n\\nContext:\\nVaccinations are given on Wednesdays."},
    {"role": "user", "content": "When can I get a vaccination?"}
  ],
  "documents": ["The clinic is open from Monday to Friday, 8:00 to 17:00."]
}
"""


class EvidencePage:
    """``GET`` and ``POST /evidence``."""

    def __init__(self, bodies: Bodies, pages: Pages, pipeline: Pipeline, policy: PolicyHolder) -> None:
        self._bodies, self._pages, self._pipeline, self._policy = bodies, pages, pipeline, policy

    async def page(self, request: Request) -> Response:
        """Return the form, and what the one that was sent came to."""
        if request.method != "POST":
            return self._made(request)
        return await self._bodies.answer(
            request, self._of_form, lambda status, why: self._made(request, status=status, problem=why)
        )

    async def _of_form(self, request: Request, policy: Policy, body: bytes) -> Response:
        def read() -> tuple[str, Plan, ShownEvidence | str]:
            fields = form_fields(body)
            plan, text = named(policy, fields.get("decision") or None), fields.get("body", "")
            try:
                return text, plan, shown_evidence(evidence_of(text.encode(), plan.evidence, policy.limits))
            except DialectError as error:
                return text, plan, str(error)

        text, plan, found = await self._pipeline.read(read, len(body), policy.default.timeout_s)
        if isinstance(found, str):
            return self._made(request, status=422, problem=found, text=text, decision=plan.decision)
        return self._made(request, shown=found, text=text, decision=plan.decision)

    def _made(
        self,
        request: Request,
        *,
        status: int = 200,
        problem: str = "",
        shown: ShownEvidence | None = None,
        text: str = EXAMPLE,
        decision: str = DEFAULT_DECISION,
    ) -> Response:
        policy = self._policy.current
        return self._pages.page(
            request,
            "evidence.html.j2",
            status=status,
            plans=policy.all_plans,
            problem=problem,
            shown=shown,
            text=text if len(text) <= LONGEST_REPEATED else "",
            decision=decision,
        )


_SHOWN = 25  # exchanges of the first page


def desk_app(parts: WebParts) -> ASGIApp:
    """Return endpoints and pages as one ASGI application."""
    policy, pipeline, signals, recent = parts.policy, parts.pipeline, parts.signals, parts.recent
    endpoints = Endpoints(parts)
    pages, bodies = Pages(endpoints.state), endpoints.bodies

    async def overview(request: Request) -> Response:
        current = policy.current
        return pages.page(
            request,
            "index.html.j2",
            gateway=parts.gateway,
            plans=[*current.plans, current.default],
            recent=recent.entries()[:_SHOWN],
            addresses=parts.addresses(),
            drifts=[drift for drift in signals.detectors.drift.figures() if drift.beyond],
            drift_limit=DRIFT_LIMIT,
            hour=signals.last_hour.figures(),
            reviews=parts.reviews_waiting() if parts.reviews_waiting is not None else None,
        )

    async def exchange(request: Request) -> Response:
        entry = recent.get(request.path_params["id"])
        if entry is None:
            return pages.page(request, "gone.html.j2", status=404)
        current = policy.current
        if not current.telemetry.log_text:
            entry = entry.without_text()  # kept under a policy that allowed it
        shown = shown_entry(entry, current.models or {})
        return pages.page(request, "exchange.html.j2", entry=entry, shown=shown)

    async def decisions(request: Request) -> Response:
        shown = [
            shown_decision(plan, signals.score_history.figures(plan.decision))
            for plan in (*policy.current.plans, policy.current.default)
        ]
        return pages.page(request, "decisions.html.j2", decisions=shown, width=WIDTH, height=HEIGHT)

    control = AccessControl(parts.access or Access())
    form = ["GET", "POST"]
    routes = [
        Route("/", overview),
        Route("/exchanges/{id}", exchange),
        Route("/decisions", decisions),
        Route("/playground", Playground(bodies, pages, parts).page, methods=form),
        Route("/evidence", EvidencePage(bodies, pages, pipeline, policy).page, methods=form),
        Mount("/static", StaticFiles(directory=FOLDER / "static")),
        *endpoints.routes,
        *control.routes,
        Route("/reviews/thresholds", ThresholdsPage(pages, policy, parts.reviews).page),
        *review_routes(parts.reviews, pages, recent, detect=endpoints.api.detect, ask=endpoints.ask),
    ]
    return guarded(routes, control, pages=True)


def shown_decision(plan: Plan, figures: ScoreFigures) -> ShownDecision:
    """Return what the page shows of a decision."""
    most = max(figures.bins) or 1
    bars = [_bar(place, count, most) for place, count in enumerate(figures.bins)]
    cut = max(0, min(BINS, math.ceil(plan.threshold * BINS - 1e-9)))
    scored = figures.scored
    reaching = [figures.reaching(step / _TENTHS) for step in range(_TENTHS)]
    return ShownDecision(
        plan=plan,
        figures=figures,
        under="".join(bars[:cut]),
        over="".join(bars[cut:]),
        line=round(plan.threshold * WIDTH, 1),
        steps=tuple(
            ThresholdStep(step / _TENTHS, count, count / scored if scored else 0.0, count - behind)
            for step, (count, behind) in enumerate(zip(reaching, [*reaching[1:], 0], strict=True))
        ),
    )


def _bar(place: int, count: int, most: int) -> str:
    if not count:
        return ""
    # Square roots: next to thousands of clean answers the flagged ones would not be seen.
    height = max(1.0, HEIGHT * math.sqrt(count / most))
    return f"M{place * _BAR + 0.5:g} {HEIGHT}v-{height:.1f}h{_BAR - 1:g}v{height:.1f}z"
