"""Ask models our own questions about an exchange, or the client's, and clean their answers.

A failed call, a text that was cut off and a text that may not replace the answer are results here, not
errors. What is asked, and what a usable text is good for, is decided by the caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CUT_OFF, Ask, CallFailure, ModelRequest, ModelSpec, Role
from truthlens.core.records.enums import Endpoint
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.plan import Plan
from truthlens.mitigation import candidate_checks
from truthlens.mitigation.follow_up import same_request
from truthlens.mitigation.interfaces import Attempt, CandidateFate, Task, Tools, failed
from truthlens.mitigation.standard.correction_prompt import evidence_for
from truthlens.prompts import delimiters, model_requests, render
from truthlens.prompts.model_requests import with_evidence
from truthlens.text.sentences import is_json

# However short the first answer: some 15,000 words.
_MOST_OPINION_CHARS = 100_000
# Of the time that is left, for those who are asked while the first answer is still being scored.
_SHARE_OF_TIME = 0.5
_MOST_TOKENS = 2000  # of an answer by the completions API, which gives 16 unless told


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one model wrote, or why there is nothing of it to use.

    ``text`` is ``None`` where the call failed (``failure``, and ``code`` where more is known) or the text
    cannot be used (``rejected``, a code of ``rejection``).
    """

    model: str
    text: str | None
    failure: CallFailure | None = None
    rejected: str = ""
    code: str = ""

    def attempts(self, role: Role) -> tuple[Attempt, ...]:
        """Return the attempts of an opinion that gave nothing.

        It is empty if there is a text, which is not yet scored.
        """
        if self.failure is not None:
            return (failed(self.model, role, self.code or self.failure.value),)
        return (
            (Attempt(self.model, role, CandidateFate.REJECTED, reason=self.rejected),)
            if self.rejected
            else ()
        )


async def said(ask: Ask, asked: ModelRequest, *, time_s: float | None = None) -> Opinion:
    """Return what a model answers; ``time_s``, if given, bounds the call."""
    if time_s is not None and time_s <= 0.0:
        return Opinion(asked.model, None, failure=CallFailure.DEADLINE)
    try:
        async with asyncio.timeout(time_s):
            completion = await ask(asked)
    except CallError as error:
        code = "" if error.code == error.failure.value else error.code
        return Opinion(asked.model, None, failure=error.failure, code=code)
    except TimeoutError:
        return Opinion(asked.model, None, failure=CallFailure.DEADLINE)
    if completion.finish_reason in CUT_OFF:
        return Opinion(asked.model, None, rejected=candidate_checks.TRUNCATED)
    return Opinion(asked.model, completion.text)


async def opinions(
    *,
    plan: Plan,
    exchange: Exchange,
    request: Mapping[str, object],
    answering: str,
    models: Mapping[str, ModelSpec],
    ask: Ask,
    deadline: Deadline,
) -> tuple[Opinion, ...]:
    """Return each verification model's answer to the client's request, in the plan's order.

    All are asked at once; a call that fails is an opinion with a failure, and so is one that has not come
    after half of the time: one slow model must not cost what the others said. A model that is configured with
    a reliability of 0 has no say and is not asked, nor is the model that answered: it would verify itself.
    Cancelling this cancels every call.

    Args:
        plan: its ``premium.verification_models`` are asked.
        exchange: the request half.
        request: the client's JSON request; it is not changed.
        answering: the model that answers it.
        models: the configured models by name.
        ask: bound to the exchange.
        deadline: of the exchange.
    """
    time_s = deadline.remaining_s * _SHARE_OF_TIME
    body = same_request(request, exchange.endpoint)
    names = dict.fromkeys(plan.premium.verification_models)
    async with asyncio.TaskGroup() as group:
        asked = [
            group.create_task(
                said(ask, ModelRequest(name, Role.VERIFIER, body, exchange.endpoint), time_s=time_s)
            )
            for name in names
            if name != answering and (name not in models or models[name].reliability > 0.0)
        ]
    return tuple(each.result() for each in asked)


async def written(task: Task, tools: Tools, asked: ModelRequest) -> Opinion:
    """Return what a model writes in place of the first answer, cleaned, in the format of the client."""
    if "response_format" in task.request:
        asked = replace(asked, body={**asked.body, "response_format": task.request["response_format"]})
    opinion = await said(tools.ask, asked, time_s=tools.deadline.remaining_s)
    # Who writes from several answers owes the first one not its words.
    return await asyncio.to_thread(acceptable, task, opinion, passing={candidate_checks.LOST_CONTENT})


def acceptable(task: Task, opinion: Opinion, *, passing: Collection[str] = ()) -> Opinion:
    """Return the opinion with its text cleaned, or without it if the text may not replace the first answer.

    Much evidence takes long to look through; keep it off the event loop.

    Args:
        task: the first answer.
        opinion: of any model.
        passing: codes of ``candidate_checks.rejection`` that are no hindrance.
    """
    if opinion.text is None:
        return opinion
    # Before anything reads it: a text without bound would hold up every other exchange.
    if len(opinion.text) > max(_MOST_OPINION_CHARS, candidate_checks.most_chars(task.answer.text)):
        return Opinion(opinion.model, None, rejected=candidate_checks.TOO_LONG)
    text = candidate_checks.clean(opinion.text, first=task.answer.text)
    code = candidate_checks.rejection(task, text, finish_reason=None)
    if code is not None and code not in passing:
        return Opinion(opinion.model, None, rejected=code)
    return Opinion(opinion.model, text)


def prompted(
    task: Task, prompt: str, *, model: str, role: Role, values: Mapping[str, object], own: bool = False
) -> ModelRequest:
    """Return a question about an exchange: both parts of a prompt, with the evidence and the user's question.

    Args:
        task: the exchange.
        prompt: name of the template.
        model: who is asked.
        role: for the accounts.
        values: what the template names besides; data must have gone through ``delimiters``.
        own: whether that is the model that gave the first answer; it is asked by the API of the exchange.
    """
    chinese = render.in_chinese(task.answer.text, task.exchange.query)
    system = render.render(prompt, chinese=chinese, part="system")
    endpoint = task.exchange.endpoint if own else Endpoint.CHAT

    def body(most_chars: int) -> dict[str, object]:
        user = render.render(
            prompt,
            chinese=chinese,
            part="user",
            evidence=evidence_for(task.exchange, task.verdict, text=task.answer.text, most_chars=most_chars),
            question=delimiters.tag("question", task.exchange.query),
            **values,
        )
        if endpoint is Endpoint.COMPLETIONS:
            return model_requests.stand_alone_text(system=system, user=user, max_tokens=_MOST_TOKENS)
        return model_requests.stand_alone(system=system, user=user)

    asked = ModelRequest(model, role, {}, endpoint, own)
    return with_evidence(asked, task.exchange, body, most_chars=delimiters.MOST_CHARS)


def is_structured(task: Task) -> bool:
    """Return whether the answer is JSON, or should have been: nothing may be cut out of it or put into it."""
    return task.exchange.structured or is_json(task.answer.text)
