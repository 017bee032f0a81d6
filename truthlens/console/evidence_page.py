"""The page ``/evidence``: what of a request that somebody pastes is evidence. Its form works without script."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from truthlens.console.api import LONGEST_REPEATED, Bodies, evidence_of, form_fields, named
from truthlens.console.pages import Pages
from truthlens.console.views import ShownEvidence, shown_evidence
from truthlens.core.errors import DialectError
from truthlens.core.records.plan import Plan
from truthlens.pipeline import Pipeline
from truthlens.policy import Policy, PolicyHolder
from truthlens.policy.policy import DEFAULT_DECISION

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
            plans=[policy.default, *policy.plans],
            problem=problem,
            shown=shown,
            text=text if len(text) <= LONGEST_REPEATED else "",
            decision=decision,
        )
