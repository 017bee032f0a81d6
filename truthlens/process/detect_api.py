"""Score an answer and show a request's evidence, as JSON; and read the body of any request within the gateway's limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

import pydantic
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from truthlens.api.requests import exchange_of, read_request
from truthlens.core.errors import BodyTooLargeError, DialectError, OverloadedError, StoppedError, check
from truthlens.core.json_size import check_values
from truthlens.core.limits import Limits
from truthlens.core.records.exchange import Answer, Exchange, plain_exchange
from truthlens.core.records.plan import Plan
from truthlens.core.records.settings import EvidenceRules
from truthlens.delivery import evidence_object, scored_object
from truthlens.exchange.ticket import HeldBytes
from truthlens.pipeline import Pipeline
from truthlens.policy import Policy, PolicyHolder
from truthlens.process.detect_schema import DetectRequest

LONGEST_REPEATED = 200_000
"""Characters of a text from which a page does not repeat it: it would be of use to nobody."""
_FORM_FIELDS = 10

Work = Callable[[Request, Policy, bytes], Awaitable[Response]]


class Bodies:
    """Reads what a request of the console brings, and lets it be worked on, within the policy's limits."""

    def __init__(self, policy: PolicyHolder, pipeline: Pipeline) -> None:
        self._policy, self._pipeline = policy, pipeline

    async def answer(self, request: Request, work: Work, refuse: Callable[[int, str], Response]) -> Response:
        """Return what ``work`` makes of the request's body, or ``refuse(status, why)`` where that cannot be done."""
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


class Api:
    """``POST /v1/detect`` and ``POST /v1/evidence``."""

    def __init__(self, bodies: Bodies, pipeline: Pipeline) -> None:
        self._bodies, self._pipeline = bodies, pipeline

    async def detect(self, request: Request) -> Response:
        """Give the verdict on one answer, claim by claim."""
        return await self._bodies.answer(request, self._detect, problem)

    async def evidence(self, request: Request) -> Response:
        """Show what of a request is evidence."""
        return await self._bodies.answer(request, self._evidence, problem)

    async def _detect(self, request: Request, policy: Policy, body: bytes) -> Response:
        limits = policy.limits
        try:
            asked, exchange, answer = await self._pipeline.read(
                lambda: _read(body, limits), len(body), policy.default.timeout_s
            )
        except pydantic.ValidationError as error:
            problems = problems_of(
                error.errors(include_url=False, include_context=False, include_input=False)
            )
            return problem(422, f"{problems}. Expected {{context: [text], query: text, response: text}}")
        plan = named(policy, asked.decision)
        verdict = await self._pipeline.score(plan, exchange, answer, request.headers)
        return JSONResponse(scored_object(plan, verdict, text=answer.text, passages=exchange.passages))

    async def _evidence(self, request: Request, policy: Policy, body: bytes) -> Response:
        plan = named(policy, request.query_params.get("decision"))
        shown = await self._pipeline.read(
            lambda: evidence_object(evidence_of(body, plan.evidence, policy.limits)),
            len(body),
            policy.default.timeout_s,
        )
        return JSONResponse(shown)


def named(policy: Policy, decision: str | None) -> Plan:
    """Return the plan of that decision, by default the default one.

    Raises:
        DialectError: There is none.
    """
    plan = policy.default if decision is None else policy.plan_named(decision)
    if plan is None:
        known = ", ".join(policy.decision_names)
        raise DialectError(f"decision: no decision of that name is loaded; known: {known}")
    return plan


def evidence_of(body: bytes, rules: EvidenceRules, limits: Limits) -> Exchange:
    """Return the exchange of a request's JSON body.

    Raises:
        DialectError: It is no request.
        BodyTooLargeError: It exceeds a limit.
    """
    return exchange_of(read_request(body, None, limits), rules, limits)


def problems_of(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return what is wrong with a request by pydantic's ``errors``, the first five things, without its values."""
    told = [f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in errors[:5]]
    return "; ".join(told) + (f"; and {len(errors) - 5} more" if len(errors) > 5 else "")


def form_fields(body: bytes) -> dict[str, str]:
    """Return the fields of a form by name.

    Raises:
        DialectError: It is no form, has too many fields, or is not UTF-8.
    """
    return dict(form_pairs(body))


def form_pairs(body: bytes, *, more: int = 0) -> list[tuple[str, str]]:
    """Return names and values of a form that may give a name several times, ``more`` fields than other forms.

    Raises:
        DialectError: It is no form, has too many fields, or is not UTF-8.
    """
    most = _FORM_FIELDS + more
    try:
        return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=most, errors="strict")
    except ValueError:
        raise DialectError("the form cannot be read; expected its fields in UTF-8") from None


def _read(body: bytes, limits: Limits) -> tuple[DetectRequest, Exchange, Answer]:
    check_values(body.decode("utf-8", "replace"), limits.max_json_values)
    asked = DetectRequest.model_validate_json(body)
    passages = [asked.context] if isinstance(asked.context, str) else asked.context
    check(len(passages), limits.max_passages, key="max_passages")
    return asked, *plain_exchange(asked.query, passages, asked.response)


def problem(
    status: int, message: str, *, kind: str = "invalid_request_error", code: str | None = None
) -> JSONResponse:
    """Return an error as JSON; with a ``code``, a name for programs."""
    error = {"message": message, "type": kind, **({} if code is None else {"code": code})}
    return JSONResponse({"error": error}, status_code=status)
