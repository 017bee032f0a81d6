"""``POST /v1/ask``: how often and how many at once may ask, and what a run that failed is answered with."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pydantic
import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from truthlens.core.errors import BodyTooLargeError
from truthlens.core.json_size import check_values
from truthlens.core.limits import Limits
from truthlens.core.records.agentic_run import AgenticStop
from truthlens.core.records.calls import CallFailure
from truthlens.policy import Policy
from truthlens.process.access import RateLimit, callers_of, check_csrf, user_of
from truthlens.process.ask import FAILURES
from truthlens.process.detect_api import Bodies, named, problem, problems_of
from truthlens.process.questions.choice import NotConfiguredError, model_for, scope_of, sources_for
from truthlens.process.questions.schema import AskRequest
from truthlens.process.questions.service import AnsweredQuestion, AskedQuestion, QuestionService

log = structlog.get_logger("truthlens.process.questions")

# More than any question takes, with its names and values.
_MOST_BYTES = 512 * 1024
_EXPECTED = "{question: text, decision: name, model: name, sources: [name], scope: {name: value}}"
_FULL = "as many questions are being answered as limits.max_questions allows; try again later"
_BROKEN = "the question could not be answered: an error of TruthLens, see its log"
_STOPPING = "the process is stopping; ask again"
_UPSTREAM = "upstream_error"
# Failures of calls that pass by themselves; all others are 502, of a server that does not do its work.
_STATUS: Mapping[str, int] = {CallFailure.TIMEOUT: 504, CallFailure.BUSY: 503, CallFailure.CIRCUIT_OPEN: 503}


class AskApi:
    """Answers ``POST /v1/ask``.

    Args:
        bodies: reads what a request brings.
        questions: answers them.
    """

    def __init__(self, bodies: Bodies, questions: QuestionService) -> None:
        self._bodies, self._questions = bodies, questions
        self._rate: RateLimit | None = None

    async def ask(self, request: Request) -> Response:
        """Answer a question from the policy's sources, and check the answer."""
        # It costs money: a page of the console would have to say that its user means it.
        check_csrf(request, None)
        return await self._bodies.answer(request, self._ask, problem)

    async def _ask(self, request: Request, policy: Policy, body: bytes) -> Response:
        try:
            question = self._chosen(request, policy, body)
        except pydantic.ValidationError as error:
            problems = problems_of(
                error.errors(include_url=False, include_context=False, include_input=False)
            )
            return problem(422, f"{problems}. Expected {_EXPECTED}, of which question is required")
        except NotConfiguredError as error:
            return problem(409, str(error), code="not-configured")
        if self._questions.running >= policy.limits.max_questions:
            return problem(503, _FULL, code="overloaded")
        self._limit(policy.limits).take(*callers_of(request))
        task = self._questions.begin(question)
        await _until_gone(request, task)
        if task.cancelled():
            return problem(503, _STOPPING, code="stopping")
        if (failure := task.exception()) is not None:
            # The type alone: a message may quote the question.
            log.error("a question failed", error=type(failure).__name__, decision=question.plan.decision)
            return problem(500, _BROKEN, kind="server_error", code="internal")
        return _reply(task.result())

    def _chosen(self, request: Request, policy: Policy, body: bytes) -> AskedQuestion:
        if len(body) > _MOST_BYTES:
            raise BodyTooLargeError(f"the body has more than {_MOST_BYTES} bytes")
        check_values(body.decode("utf-8", "replace"), policy.limits.max_json_values)
        asked = AskRequest.model_validate_json(body)
        plan, role = named(policy, asked.decision), user_of(request).role
        scope = scope_of(asked.scope, role)
        sources = sources_for(policy, asked.sources, scope, role)
        model = model_for(policy, plan, asked.model, reachable=self._questions.reachable)
        return AskedQuestion(asked.question, model, plan, sources, scope, policy.models, policy.limits)

    def _limit(self, limits: Limits) -> RateLimit:
        """Return what counts questions; a policy with another limit begins anew."""
        if self._rate is None or self._rate.per_minute != limits.questions_per_minute:
            self._rate = RateLimit(limits.questions_per_minute)
        return self._rate


async def _until_gone(request: Request, task: asyncio.Task[AnsweredQuestion]) -> None:
    """Wait until the task has ended; cancel it where the client goes away first, or the server stops."""
    gone = asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.wait({task, gone})


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _reply(answered: AnsweredQuestion) -> Response:
    """Return the run as JSON, accepted or not; the error of one that failed."""
    run = answered.run
    if run.stop not in FAILURES:
        return JSONResponse(answered.reply)
    status = 502
    match run.stop:
        case AgenticStop.BAD_DECISION:
            why = "the model did not reply in the form that was asked for; name another model"
        case AgenticStop.SEARCH_FAILED:
            searches = answered.searches
            failed = sorted(
                {f"{each.source}: {each.result.value}" for each in searches if each.result.is_failure}
            )
            why = f"not all sources could be searched ({', '.join(failed)}), and nothing was found"
        case _:
            status = _STATUS.get(run.failure, 502)
            why = f"a model gave no answer: {run.failure}"
    return problem(status, why, kind=_UPSTREAM, code=run.stop.value)
